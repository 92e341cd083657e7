import hashlib
import json
from pathlib import Path

import pytest
import tracked_state
import yaml
from handmade_experiment import make_experiment

from tasks.cli import main
from tasks.reports.cell import Cell
from tasks.reports.tracking.run_artifacts import sample
from tasks.reports.tracking.run_plots import curve_plot, perplexity_plot

TOP_K = Cell("chat", "allow_list", "top_k", "minilm", 1)
ORACLE = Cell("chat", method="oracle", seed=1)
BASELINE1 = Cell("chat", "allow_list", "baseline1", None, 1)
CELLS = [TOP_K, ORACLE, BASELINE1, Cell("chat", method="pretrained")]
OBFUSCATED = f"data/obfuscated/{TOP_K.path}.txt"
LINES = "".join(f"Filled sentence {number}.\n" for number in range(30))


def write_text(folder, path, text):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def edit(path, change):
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def set_tracking(folder, **values):
    document = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    document["tracking"] |= values
    (folder / "params.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.fixture
def filled(tracked):
    """An experiment whose Top-K text is there, as its fill's report says; canaries in all private files."""
    write_text(tracked, OBFUSCATED, LINES)
    digest = hashlib.sha256(LINES.encode()).hexdigest()
    report = tracked / "results" / "reports" / "fill" / f"{TOP_K.path}.json"
    edit(report, lambda document: document["outputs"].update({OBFUSCATED: digest}))
    for number, path in enumerate(
        (
            "data/private/corpora/chat/train.txt",
            "data/private/corpora/chat/test.txt",
            "data/private/sidecars/chat/allow_list.jsonl",
            "data/masked/chat/allow_list/train.txt",
            "data/private/models/chat/oracle-1/vocabulary.txt",
        )
    ):
        write_text(tracked, path, f"canary{number} zebrafinch\n")
    return tracked


def artifacts(folder, cell=TOP_K):
    keys = tracked_state.runs(folder)
    run = next(run for key, run in keys.items() if key.startswith(f"{cell.path}#"))
    place = tracked_state.artifacts(folder, run)
    return {path.relative_to(place).as_posix(): path for path in place.rglob("*") if path.is_file()}


def test_a_run_has_plots_and_the_first_lines_of_its_obfuscated_text(filled):
    assert main(["publish"]) == 0
    files = artifacts(filled)
    assert set(files) == {"plots/training_curve.svg", "plots/perplexity_by_method.svg", "samples/obfuscated.txt"}
    assert files["samples/obfuscated.txt"].read_text(encoding="utf-8").splitlines() == LINES.splitlines()[:10]
    assert "samples/obfuscated.txt" not in artifacts(filled, ORACLE)
    assert "samples/obfuscated.txt" not in artifacts(filled, BASELINE1)


def test_no_canary_reaches_the_store(filled):
    assert main(["publish"]) == 0
    written = [file for cell in CELLS for file in artifacts(filled, cell).values()]
    assert len(written) == 4 * 2 + 1
    for path in (*written, filled / "mlflow.db"):
        assert b"zebrafinch" not in path.read_bytes()


def test_publishing_again_writes_no_file(filled, capsys):
    assert main(["publish"]) == 0
    before = {file: file.stat().st_mtime_ns for cell in CELLS for file in artifacts(filled, cell).values()}
    assert main(["publish"]) == 0
    assert "0 created, 0 completed, 4 unchanged" in capsys.readouterr().out
    assert {file: file.stat().st_mtime_ns for file in before} == before


def test_switching_samples_off_takes_those_away_that_are_there(filled):
    assert main(["publish"]) == 0
    set_tracking(filled, sample_lines=0)
    assert main(["publish"]) == 0
    assert set(artifacts(filled)) == {"plots/training_curve.svg", "plots/perplexity_by_method.svg"}
    set_tracking(filled, artifacts=False)
    assert main(["publish"]) == 0
    assert artifacts(filled) == {}


def test_a_text_that_is_not_the_fills_own_is_no_sample(filled):
    write_text(filled, OBFUSCATED, LINES + "one more\n")
    assert main(["publish"]) == 0
    assert "samples/obfuscated.txt" not in artifacts(filled)


@pytest.mark.parametrize(
    "path", ["data/masked/chat/allow_list/train.txt", "data/obfuscated/../private/corpora/chat/train.txt"]
)
def test_a_report_that_names_another_folder_gets_no_sample(filled, path):
    digest = hashlib.sha256(Path(path).read_bytes() if Path(path).exists() else b"").hexdigest()
    assert sample({"outputs": {path: digest}}, 10) is None


def test_the_curve_plot_has_a_point_for_every_validation():
    plot = curve_plot(
        TOP_K, {("train_loss", 10): 6.0, ("train_loss", 20): 5.0, ("valid_loss", 0): 7.0, ("valid_loss", 20): 5.5}
    )
    assert plot.count("<circle") == 2
    assert "5.00" in plot
    assert "7.00" in plot
    assert curve_plot(TOP_K, {}) is None


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


def test_seeds_have_a_mean_and_a_deviation(tmp_path, monkeypatch, empty_store):
    """Handmade perplexities: 445 for seed 1 and 1 % more for seed 2."""
    folder = make_experiment(
        tmp_path / "seeds",
        techniques=["allow_list"],
        baselines=["baseline1"],
        methods=["top_k"],
        controls=[],
        seeds=[1, 2],
    )
    (folder / "mlflow.db").write_bytes(empty_store.read_bytes())
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert main(["summarise"]) == 0
    assert main(["publish"]) == 0
    for key, run in tracked_state.runs(folder).items():
        if key.startswith("chat/allow_list/minilm-top_k-"):
            assert tracked_state.metric(folder, run, "perplexity_mean") == [(0, pytest.approx(447.225))]
            assert tracked_state.metric(folder, run, "perplexity_deviation") == [(0, pytest.approx(4.45 / 2**0.5))]
            assert tracked_state.tags(folder, run)["condition"] == "chat/allow_list/minilm-top_k"
