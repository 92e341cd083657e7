import json
import math
import subprocess
import sys

import tracked_state
from handmade_experiment import (
    COMMIT,
    FEW,
    SIGNATURE,
    curve,
    make_experiment,
    perplexities_of,
    write_examples,
    write_forgetting,
)

from tasks.cli import main
from tasks.records.cell import Cell

DIMENSIONS = ("dataset", "technique", "method", "filler", "seed", "group", "condition")
TOP_K = Cell("chat", "allow_list", "top_k", "minilm", 1)


def key_of(folder, cell=TOP_K):
    rows = json.loads((folder / "results" / "summary.json").read_text(encoding="utf-8"))
    return next(row["key"] for row in rows if row["key"].startswith(f"{cell.path}#"))


def change_report(folder, name, edit):
    path = folder / "results" / "reports" / f"{name}.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    edit(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def test_one_run_per_cell_with_numbers_curves_parameters_inputs_and_tags(tracked):
    assert main(["publish"]) == 0
    assert tracked_state.count_runs(tracked) == 4
    run = tracked_state.runs(tracked)[key_of(tracked)]
    assert tracked_state.metric(tracked, run, "perplexity") == [(0, 445.0)]
    assert tracked_state.metric(tracked, run, "perplexity_low") == [(0, 445.0 * 0.97)]
    assert tracked_state.metric(tracked, run, "masked_fraction") == [(0, 0.169)]
    assert tracked_state.metric(tracked, run, "restoration_rate") == [(0, 0.034)]
    assert tracked_state.metric(tracked, run, "wer") == []
    parameters = tracked_state.parameters(tracked, run)
    assert parameters["fill.k"] == "10"
    assert parameters["mask.kind"] == "allow_list"
    assert parameters["adapt.epochs"] == "2.0"
    tags = tracked_state.tags(tracked, run)
    assert {name: tags[name] for name in DIMENSIONS} == {
        "dataset": "chat",
        "technique": "allow_list",
        "method": "top_k",
        "filler": "minilm",
        "seed": "1",
        "group": "fill",
        "condition": "chat/allow_list/minilm-top_k",
    }
    assert (tags["commit"], tags["dirty"], tags["protocol"]) == (COMMIT, "false", SIGNATURE)
    assert tags["dvc_stage"] == "evaluate@chat-allow_list-minilm-top_k-1"
    assert tags["palimpsest.current"] == "true"
    points = list(curve(6.1, math.log(perplexities_of(TOP_K)[0])))
    expected = [(point["step"], point["train_loss"]) for point in points if "train_loss" in point]
    assert tracked_state.metric(tracked, run, "train_loss") == expected
    assert [step for step, _ in tracked_state.metric(tracked, run, "valid_loss")] == [0, 240]
    inputs = {row[2]: row[3] for row in tracked_state.tables(tracked, "datasets")["datasets"]}
    assert {len(digest) for digest in inputs.values()} == {10}
    text = "data/obfuscated/chat/allow_list/minilm-top_k-1.txt"
    assert {"models/pretrained", "data/private/corpora/chat/test.txt", text} <= set(inputs)
    contexts = {row[-1] for row in tracked_state.tables(tracked, "input_tags")["input_tags"]}
    assert contexts == {"training", "validation", "testing", "initial model"}


def test_publishing_twice_changes_nothing_and_an_empty_store_is_filled_again(tracked, empty_store, capsys):
    assert main(["publish"]) == 0
    before = tracked_state.tables(tracked)
    published = (tracked / "results" / "published.json").read_bytes()
    assert set(json.loads(published)) == {"runs", "keys"}
    assert "4 created" in capsys.readouterr().out
    assert main(["publish"]) == 0
    assert "0 created, 0 completed, 4 unchanged" in capsys.readouterr().out
    assert tracked_state.tables(tracked) == before
    assert (tracked / "results" / "published.json").read_bytes() == published
    keys, points = set(tracked_state.runs(tracked)), {row[:2] for row in before["metrics"]}
    assert len(points) > 100
    (tracked / "mlflow.db").write_bytes(empty_store.read_bytes())
    assert main(["publish"]) == 0
    assert set(tracked_state.runs(tracked)) == keys
    assert {row[:2] for row in tracked_state.tables(tracked, "metrics")["metrics"]} == points


def test_two_publishers_at_once_make_no_duplicate_and_one_new_store(few):
    """Both begin without any store: making it is a race too."""
    publisher = [sys.executable, "-m", "tasks.cli", "publish"]
    processes = [
        subprocess.Popen(publisher, cwd=few, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    said = sorted(output for output, _ in outputs)
    assert "0 created, 0 completed, 4 unchanged" in said[0]
    assert "4 created" in said[1]
    assert tracked_state.count_runs(few) == len(tracked_state.runs(few)) == 4


def test_an_earlier_state_stays_and_is_no_longer_current(tracked, tmp_path, monkeypatch, capsys):
    assert main(["publish"]) == 0
    old = key_of(tracked)
    other = make_experiment(tmp_path / "other", k=20, **FEW)
    (tracked / "mlflow.db").rename(other / "mlflow.db")
    monkeypatch.chdir(other)
    assert main(["summarise"]) == 0
    assert main(["publish"]) == 0
    assert "1 created, 0 completed, 3 unchanged, 1 earlier superseded" in capsys.readouterr().out
    runs = tracked_state.runs(other)
    assert len(runs) == 5
    assert old != key_of(other)
    assert tracked_state.tags(other, runs[old])["palimpsest.current"] == "false"
    assert tracked_state.parameters(other, runs[old])["fill.k"] == "10"
    assert tracked_state.tags(other, runs[key_of(other)])["palimpsest.current"] == "true"
    assert tracked_state.parameters(other, runs[key_of(other)])["fill.k"] == "20"


def test_a_number_that_was_measured_again_is_shown_and_the_run_stays(tracked):
    assert main(["publish"]) == 0
    change_report(tracked, f"perplexity/{TOP_K.path}", lambda report: report["measured"].update(perplexity=444.0))
    assert main(["summarise"]) == 0
    assert main(["publish"]) == 0
    run = tracked_state.runs(tracked)[key_of(tracked)]
    assert tracked_state.count_runs(tracked) == 4
    assert [value for _, value in tracked_state.metric(tracked, run, "perplexity")] == [445.0, 444.0]
    latest = tracked_state.tables(tracked, "latest_metrics")["latest_metrics"]
    assert next(row[1] for row in latest if run in row and row[0] == "perplexity") == 444.0


def test_a_training_with_another_curve_takes_the_place_of_the_run(tracked):
    """The same parameters and inputs, but other code: the old curve cannot be taken back, so its run is retired."""

    def lower(report):
        for point in report["measured"]["curve"]:
            if "train_loss" in point:
                point["train_loss"] -= 0.5

    assert main(["publish"]) == 0
    key = key_of(tracked)
    old = tracked_state.runs(tracked)[key]
    change_report(tracked, f"adapt/{TOP_K.path}", lower)
    assert main(["publish"]) == 0
    new = tracked_state.runs(tracked)[key]
    assert new != old
    assert tracked_state.count_runs(tracked) == 5
    assert tracked_state.runs(tracked, "palimpsest.retired_key") == {key: old}
    assert tracked_state.tags(tracked, old)["palimpsest.current"] == "false"
    first, second = tracked_state.metric(tracked, old, "train_loss"), tracked_state.metric(tracked, new, "train_loss")
    assert [value for _, value in second] == [value - 0.5 for _, value in first]
    before = tracked_state.tables(tracked)
    assert main(["publish"]) == 0
    assert tracked_state.tables(tracked) == before


def test_a_summary_of_another_state_is_refused(tracked, capsys):
    change_report(tracked, f"adapt/{TOP_K.path}", lambda report: report["parameters"].update(more=1))
    assert main(["publish"]) == 1
    assert "it is of an earlier state; run 'palimpsest summarise' first" in capsys.readouterr().err


def test_an_unusable_store_and_a_missing_summary_are_one_line(few, capsys, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://name:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert main(["publish"]) == 75
    error = capsys.readouterr().err
    assert "the MLflow store 'http://127.0.0.1:9' cannot be used" in error
    assert "secret" not in error
    (few / "results" / "summary.json").unlink()
    assert main(["publish"]) == 1
    assert "summary 'results/summary.json' does not exist" in capsys.readouterr().err


def test_each_way_to_forget_is_a_run(tracked):
    write_forgetting(tracked)
    assert main(["publish"]) == 0
    runs = tracked_state.runs(tracked)
    assert tracked_state.count_runs(tracked) == 8
    run = next(run for key, run in runs.items() if "unlearned_steering" in key)
    assert tracked_state.metric(tracked, run, "exposure_template_1") == [(0, 20.0)]
    assert tracked_state.metric(tracked, run, "exposure_template_1_high") == [(0, 21.0)]
    assert tracked_state.parameters(tracked, run)["unlearning.way.rank"] == "64"
    assert tracked_state.tags(tracked, run)["group"] == "forgetting"
    assert main(["publish"]) == 0
    assert tracked_state.count_runs(tracked) == 8


def test_a_run_has_made_up_sentences_as_its_own_cell_fills_them(tracked):
    write_examples(tracked)
    assert main(["publish"]) == 0
    runs = tracked_state.runs(tracked)
    files = [file for run in runs.values() for file in tracked_state.artifacts(tracked, run).rglob("*.*")]
    assert files == [tracked_state.artifacts(tracked, runs[key_of(tracked)]) / "samples" / "made_up.txt"]
    assert files[0].read_text(encoding="utf-8") == (
        "Made-up sentences, not of the corpus.\n\n"
        "raw     Ann met Bob.\nmasked  [MASK] met [MASK].\nfilled  Ben met Eva.\n"
    )


def test_the_environment_names_the_store(tracked, tmp_path, monkeypatch, empty_store):
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "mlflow.db").write_bytes(empty_store.read_bytes())
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{other / 'mlflow.db'}")
    assert main(["publish"]) == 0
    assert tracked_state.count_runs(other) == 4
    assert tracked_state.count_runs(tracked) == 0
