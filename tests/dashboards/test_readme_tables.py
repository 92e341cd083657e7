"""README.md and docs/privacy.md show the numbers of the stored run, and no others."""

import json
import shutil
from pathlib import Path

from handmade_experiment import COMMIT

from benchmarks.readme_tables import pages
from benchmarks.stored_run import STORED, read_run, store_run
from tasks.results.summary.summary_file import summarised_cell

ROOT = Path(__file__).parents[2]


def test_the_pages_show_the_stored_run():
    for path, made in pages(read_run(STORED), ROOT).items():
        assert path.read_text(encoding="utf-8") == made, f"python -m benchmarks.readme_tables updates {path.name}"


def test_another_number_gives_other_pages():
    run = read_run(STORED)
    cell = next(row for row in run["rows"] if row.get("membership_auc") and row["technique"] and row.get("wer"))
    cell |= {"perplexity": 1234.5, "membership_auc": 0.9876, "wer": 0.123}
    text = pages(run, ROOT)[ROOT / "docs/results.md"]
    assert all(text.count(shown) == 1 for shown in ("1234.5", "0.988", "12.3"))


def test_a_run_is_stored_with_the_stronger_attack_and_without_text(experiment_folder, tmp_path):
    rows = json.loads((experiment_folder / "results" / "summary.json").read_text(encoding="utf-8"))
    attacked = next(row for row in rows if row["filler"])
    full = {"membership_lira_auc": 0.764, "reidentified": 0.08}
    strong = tmp_path / "summary.json"
    strong.write_text(json.dumps([attacked | full | {"exposure": 9.9}]), encoding="utf-8")
    results = experiment_folder / "results"
    path = summarised_cell(attacked).path
    made_up = results / "reports" / "examples" / "made_up.json"
    made_up.parent.mkdir(parents=True)
    report = json.loads((results / "reports" / "fill" / f"{path}.json").read_text(encoding="utf-8"))
    filled = [{"method": attacked["method"], "filler": attacked["filler"], "lines": ["c"]}]
    entry = {"technique": attacked["technique"], "masked": ["b"], "filled": filled}
    report["measured"] = {"raw": ["a"], "by_technique": [entry]}
    made_up.write_text(json.dumps(report), encoding="utf-8")
    shutil.copytree(results / "reports" / "fill", tmp_path / "reports" / "fill")
    store_run(results, strong, path, tmp_path / "run.json")
    made_up.unlink()
    run = read_run(tmp_path / "run.json")
    assert (run["commit"], run["recommended"], len(run["rows"])) == (COMMIT, path, len(rows))
    assert run["full_audit"]["commit"] == COMMIT
    assert run["example"] == {"raw": "a", "masked": "b", "filled": "c"}
    cell = ("dataset", "technique", "method", "filler", "seed")
    found = {tuple(row[name] for name in cell): row for row in run["rows"]}[tuple(attacked[name] for name in cell)]
    assert found["full"] == full
    assert "exposure" not in found
    assert found["perplexity"] == attacked["perplexity"]
    assert not {"key", "over_seeds", "examples"} & set(found)
