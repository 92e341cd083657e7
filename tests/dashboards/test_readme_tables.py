"""README.md and docs/privacy.md show the numbers of the stored run, and no others."""

import json
import shutil
from pathlib import Path

from handmade_experiment import COMMIT

from benchmarks.readme_tables import STORED, pages, store_run
from tasks.results.summary.summary_file import summarised_cell

ROOT = Path(__file__).parents[2]


def test_the_pages_show_the_stored_run():
    for path, made in pages(json.loads(STORED.read_text(encoding="utf-8")), ROOT).items():
        assert path.read_text(encoding="utf-8") == made, f"python -m benchmarks.readme_tables updates {path.name}"


def test_a_run_is_stored_with_the_stronger_attack_and_without_text(experiment_folder, tmp_path):
    results = experiment_folder / "results"
    rows = json.loads((results / "summary.json").read_text(encoding="utf-8"))
    attacked = next(row for row in rows if row["filler"])
    path, full = summarised_cell(attacked).path, {"membership_lira_auc": 0.764, "reidentified": 0.08}
    (tmp_path / "summary.json").write_text(json.dumps([attacked | full | {"exposure": 9.9}]), encoding="utf-8")
    shutil.copytree(results / "reports" / "fill", tmp_path / "reports" / "fill")
    filled = [{"method": attacked["method"], "filler": attacked["filler"], "lines": ["c"]}]
    entry = {"technique": attacked["technique"], "masked": ["b"], "filled": filled}
    report = json.loads((results / "reports" / "fill" / f"{path}.json").read_text(encoding="utf-8"))
    report["measured"] = {"raw": ["a"], "by_technique": [entry]}
    (results / "reports" / "examples").mkdir()
    (results / "reports" / "examples" / "made_up.json").write_text(json.dumps(report), encoding="utf-8")
    store_run(results, path, tmp_path / "summary.json", tmp_path / "run.json")
    shutil.rmtree(results / "reports" / "examples")
    run = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert (run["commit"], run["full_audit"]["commit"], len(run["rows"])) == (COMMIT, COMMIT, len(rows))
    assert run["example"] == {"raw": "a", "masked": "b", "filled": "c"}
    found = next(row for row in run["rows"] if summarised_cell(row).path == path)
    assert (found["full"], found["perplexity"]) == (full, attacked["perplexity"])
    assert not {"exposure", "key", "over_seeds", "examples"} & set(found)
