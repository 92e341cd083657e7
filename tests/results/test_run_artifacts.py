import json
import sqlite3

import pytest
import tracked_state
import yaml

from tasks.cli import main
from tasks.records.cell import Cell
from tasks.results.tracking.run_artifacts import perplexity_plot

TOP_K = Cell("chat", "allow_list", "top_k", "minilm", 1)
ORACLE = Cell("chat", method="oracle", seed=1)
CELLS = [TOP_K, ORACLE, Cell("chat", "allow_list", "baseline1", None, 1), Cell("chat", method="pretrained")]
PLOTS = {"plots/training_curve.svg", "plots/perplexity_by_method.svg"}


def artifacts(folder, cell=TOP_K):
    keys = tracked_state.runs(folder)
    run = next(run for key, run in keys.items() if key.startswith(f"{cell.path}#"))
    place = tracked_state.artifacts(folder, run)
    return {path.relative_to(place).as_posix(): path for path in place.rglob("*") if path.is_file()}


@pytest.fixture
def with_examples(tracked):
    """The experiment with the report of made-up sentences that its page shows."""
    reports = tracked / "results" / "reports"
    document = json.loads((reports / "fill" / f"{TOP_K.path}.json").read_text(encoding="utf-8"))
    filled = [
        {"method": "top_k", "filler": "minilm", "lines": ["Ben met Eva."]},
        {"method": "unigram", "filler": None, "lines": ["The met of."]},
    ]
    examples = {"technique": "allow_list", "masked": ["[MASK] met [MASK]."], "filled": filled}
    document |= {
        "stage": "examples",
        "cell": {"dataset": "chat", "filler": "minilm", "seed": 1},
        "measured": {"raw": ["Ann met Bob."], "by_technique": [examples]},
    }
    path = reports / "examples" / "chat" / "minilm.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return tracked


def test_a_run_has_plots_and_made_up_sentences_as_its_own_cell_fills_them(with_examples):
    assert main(["publish"]) == 0
    files = artifacts(with_examples)
    assert set(files) == PLOTS | {"samples/made_up.txt"}
    assert files["samples/made_up.txt"].read_text(encoding="utf-8") == (
        "Made-up sentences, not of the corpus.\n\n"
        "raw     Ann met Bob.\nmasked  [MASK] met [MASK].\nfilled  Ben met Eva.\n"
    )
    assert all(set(artifacts(with_examples, cell)) == PLOTS for cell in CELLS if cell != TOP_K)


def test_publishing_again_writes_no_file_and_switched_off_takes_them_away(with_examples):
    assert main(["publish"]) == 0
    before = {file: file.stat().st_mtime_ns for cell in CELLS for file in artifacts(with_examples, cell).values()}
    assert main(["publish"]) == 0
    assert {file: file.stat().st_mtime_ns for file in before} == before
    document = yaml.safe_load((with_examples / "params.yaml").read_text(encoding="utf-8"))
    document["tracking"]["artifacts"] = False
    (with_examples / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    assert main(["publish"]) == 0
    assert artifacts(with_examples) == {}


def test_runs_that_an_earlier_version_published_with_text_are_named(tracked, capsys):
    assert main(["publish"]) == 0
    assert capsys.readouterr().err == ""
    with sqlite3.connect(tracked / "mlflow.db") as store:
        store.execute("update tags set key = 'palimpsest.artifacts' where key = 'palimpsest.files'")
    assert main(["publish"]) == 0
    error = capsys.readouterr().err
    assert error.startswith("warning: 4 runs in sqlite:///")
    assert "remove the store with its artifacts, and publish again" in error


def test_the_perplexity_plot_compares_within_technique_and_seed():
    def row(cell, perplexity):
        return {**cell.as_dict(), "perplexity": perplexity, "perplexity_ci": [perplexity * 0.9, perplexity * 1.1]}

    rows = [
        row(TOP_K, 228.0),
        row(Cell("chat", method="oracle", seed=1), 187.0),
        row(Cell("chat", method="pretrained"), 1150.0),
        row(Cell("chat", "entity_tagger", "top_k", "minilm", 1), 190.0),
        row(Cell("chat", "allow_list", "top_k", "minilm", 2), 229.0),
        row(Cell("mail", "allow_list", "top_k", "minilm", 1), 99.0),
    ]
    plot = perplexity_plot(TOP_K, rows)
    assert all(number in plot for number in ("228.0", "187.0"))
    assert not any(number in plot for number in ("1150.0", "190.0", "229.0", "99.0"))
    assert "1150.0" in perplexity_plot(Cell("chat", method="pretrained"), rows)
    assert perplexity_plot(TOP_K, rows, "perplexity_at_switches") is None
    switches = perplexity_plot(TOP_K, [{**rows[0], "perplexity_at_switches": 2434.0}], "perplexity_at_switches")
    assert "2434.0" in switches
    assert "chat: perplexity at code-switch points" in switches
