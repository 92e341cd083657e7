import json
import math

import pytest
from handmade_experiment import FEW, MASKED, PERPLEXITIES, SIGNATURE, make_experiment

from tasks.cli import main

TOP_K = "results/reports/perplexity/chat/allow_list/minilm-top_k-1.json"


def rows_of(folder):
    return json.loads((folder / "results" / "summary.json").read_text(encoding="utf-8"))


def change(path, edit):
    document = json.loads(path.read_text(encoding="utf-8"))
    edit(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def test_rows_hold_what_the_reports_measured(summarised):
    rows = {(row["technique"], row["method"]): row for row in rows_of(summarised)}
    assert len(rows) == 2 + 3 * 6
    row = rows["allow_list", "top_k"]
    assert (row["dataset"], row["filler"]) == ("chat", "minilm")
    assert row["seed"] == 1
    assert row["masked_fraction"] == MASKED["allow_list"]
    assert row["perplexity"] == 445.0
    assert row["perplexity_ci"] == [445.0 * 0.97, 445.0 * 1.03]
    assert row["perplexity_known"] == 411.0
    assert (row["oov_rate"], row["words"], row["sentences"]) == (0.021, 20_000, 2000)
    assert (row["restoration_rate"], row["restoration_by_frequency"]) == (0.034, 0.0008)
    assert row["signature"] == SIGNATURE
    assert row["command"] == "dvc repro evaluate@chat-allow_list-minilm-top_k-1"
    assert row["key"].startswith("chat/allow_list/minilm-top_k-1#")
    assert all(row[name] is None for name in ("wer", "wer_ci", "insertions", "deletions", "substitutions"))


def test_ratios_are_those_of_the_perplexities(summarised):
    """The handmade scores have exactly the perplexities of the reports."""
    rows = {(row["technique"], row["method"]): row for row in rows_of(summarised)}
    sample = rows["allow_list", "sample"]
    assert sample["ratio_to_oracle"] == pytest.approx(273.0 / 191.6, rel=1e-9)
    assert sample["ratio_to_baseline1"] == pytest.approx(273.0 / 427.0, rel=1e-9)
    assert sample["ratio_to_baseline1_known"] == pytest.approx(294.0 / 389.0, rel=1e-9)
    low, high = sample["ratio_to_baseline1_ci"]
    assert low < sample["ratio_to_baseline1"] < high < 1
    threshold = rows["vocabulary_threshold", "sample"]
    assert threshold["ratio_to_baseline1"] == pytest.approx(249.0 / 353.0, rel=1e-9)
    assert rows[None, "pretrained"]["ratio_to_oracle"] == pytest.approx(386.0 / 191.6, rel=1e-9)


def test_masked_words_apart_for_every_technique(summarised):
    rows = {(row["technique"], row["method"]): row for row in rows_of(summarised)}
    sample, oracle = rows["allow_list", "sample"], rows[None, "oracle"]
    assert sample["perplexity_masked_known"] == pytest.approx(10 * 294 * 1.169)
    assert sample["perplexity_masked_known_ci"] == pytest.approx([9 * 294 * 1.169, 11 * 294 * 1.169])
    assert sample["perplexity_rest_known"] == 90
    assert sample["ratio_to_oracle_masked_known"] == pytest.approx(294 / 227, rel=1e-9)
    assert sample["ratio_to_baseline1_masked_known"] == pytest.approx(294 / 389, rel=1e-9)
    # Six of seven known targets are left: what the masked one has more than the others, they have less.
    log_rest = (7 * math.log(294 / 227) - math.log(294 / 227)) / 6
    assert sample["ratio_to_oracle_rest_known"] == pytest.approx(math.exp(log_rest), rel=1e-9)
    assert oracle["perplexity_masked_known"] is None
    assert {name: words["perplexity_known"] for name, words in oracle["masked_words"].items()} == pytest.approx(
        {name: 10 * 227 * (1 + share) for name, share in MASKED.items()}
    )


def test_the_share_of_the_gap_that_a_fill_closes(summarised):
    rows = {(row["technique"], row["method"]): row for row in rows_of(summarised)}
    sample = rows["allow_list", "sample"]
    assert sample["gap_closed_known"] == pytest.approx(math.log(389 / 294) / math.log(389 / 227), rel=1e-9)
    assert sample["gap_closed_known_ci"][0] < sample["gap_closed_known"] < sample["gap_closed_known_ci"][1]
    oracle, baseline = rows[None, "oracle"], rows["allow_list", "baseline1"]
    assert oracle["gap_closed_known"] is oracle["ratio_to_oracle"] is baseline["ratio_to_baseline1"] is None


def test_every_missing_file_is_named_at_once(experiment, capsys):
    missing = [
        experiment / TOP_K,
        experiment / "results/reports/mask/chat/entity_tagger.json",
        experiment / "results/scores/chat/oracle-1.tsv",
    ]
    for path in missing:
        path.unlink()
    assert main(["summarise"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    # 20 cells, each with an evaluation, its scores and a training; 3 maskings and 12 fillings, which are read at once.
    assert "3 of 76 files" in error
    for path in missing:
        assert path.relative_to(experiment).as_posix() in error
    assert not (experiment / "results" / "summary.json").exists()


def test_missing_fields_are_named_with_their_reports(experiment, capsys):
    change(experiment / TOP_K, lambda report: report["measured"].pop("oov_rate"))
    sample = experiment / "results/reports/fill/chat/allow_list/minilm-sample-1.json"
    change(sample, lambda report: report["measured"].pop("markers"))
    assert main(["summarise"]) == 1
    error = capsys.readouterr().err
    assert f"'{TOP_K}' has no measured field 'oov_rate'" in error
    assert "minilm-sample-1.json' has no measured field 'markers'" in error


def test_what_is_measured_by_language_is_in_the_tables(experiment):
    by_language = {"most_masked_language": 0.893, "least_masked_language": 0.061}
    mask = experiment / "results/reports/mask/chat/allow_list.json"
    change(mask, lambda report: report["measured"].update(by_language))
    at_switches = {"targets": 30, "perplexity": 4321.0, "perplexity_ci": [3000.0, 5000.0]}
    change(experiment / TOP_K, lambda report: report["measured"].update(by_language={"switch points": at_switches}))
    behind = {"1 word": {"targets": 40, "perplexity": 876.0, "perplexity_ci": [654.0, 987.0]}}
    oracle = experiment / "results/reports/perplexity/chat/oracle-1.json"
    change(oracle, lambda report: report["measured"]["masked_words"]["allow_list"].update(behind=behind))
    assert main(["summarise"]) == 0
    assert [row["perplexity_at_switches"] for row in rows_of(experiment) if row["perplexity_at_switches"]] == [4321.0]
    document = (experiment / "results" / "summary.md").read_text(encoding="utf-8")
    assert "4321.0 [3000, 5000]" in document
    assert "| Oracle | 876.0 [654, 987] | – | – |" in document
    assert "mix languages" not in document
    assert "masked; 6.1% to 89.3% by language" in document


def test_what_a_text_says_of_labels_stands_beside_its_perplexity(tmp_path, monkeypatch):
    make_experiment(tmp_path, **FEW, conclusions={"chat": {"languages": ["en", "es"]}})
    monkeypatch.chdir(tmp_path)
    assert main(["summarise"]) == 0
    found = {row["method"]: row["cramers_v"] for row in rows_of(tmp_path)}
    assert found == {"pretrained": None, "oracle": 0.1, "baseline1": 0.1 * 0.9, "top_k": 0.1 * 0.9**2}
    (tmp_path / "results/reports/conclusion/chat.json").unlink()
    assert main(["summarise"]) == 1


def test_timings_commit_and_machine_are_not_in_the_rows(summarised):
    before = rows_of(summarised)
    for path in (summarised / "results" / "reports").rglob("*.json"):
        change(
            path,
            lambda report: report.update(
                wall_seconds=99.0, started="2027-01-01T00:00:00+00:00", code={"commit": None, "dirty": None}
            ),
        )
    assert main(["summarise"]) == 0
    assert rows_of(summarised) == before


def test_several_datasets_and_seeds(tmp_path, monkeypatch):
    folder = make_experiment(tmp_path, datasets=["chat", "mail"], seeds=[1, 2], techniques=["allow_list"])
    monkeypatch.chdir(folder)
    assert main(["summarise"]) == 0
    rows = rows_of(folder)
    assert len(rows) == 2 * (1 + 2 + 6 * 2)
    second = next(row for row in rows if row["key"].startswith("mail/allow_list/minilm-sample-2#"))
    # Both have seed 2, so the factor of the seed cancels.
    assert second["perplexity"] == pytest.approx(273.0 * 1.01)
    assert second["ratio_to_oracle"] == pytest.approx(273.0 / 191.6)
    assert PERPLEXITIES["oracle"] == (191.6, 227.0)
    # Every row of a condition says the same of all its seeds.
    first = next(row for row in rows if row["key"].startswith("mail/allow_list/minilm-sample-1#"))
    together = second["over_seeds"]
    assert together == first["over_seeds"]
    assert together["seeds"] == [1, 2]
    assert together["perplexity_mean"] == pytest.approx(273.0 * 1.005)
    assert together["perplexity_deviation"] == pytest.approx(273.0 * 0.01 / 2**0.5)
    assert together["ratio_to_oracle"] == pytest.approx(273.0 / 191.6)
    assert together["ratio_to_oracle_ci"][0] < 273.0 / 191.6 < together["ratio_to_oracle_ci"][1]
    # The pretrained model has no seed: it is held against each Oracle.
    pretrained = next(row for row in rows if row["key"].startswith("mail/pretrained#"))
    assert pretrained["ratio_to_oracle"] == pytest.approx(386 / 191.6)
    assert pretrained["over_seeds"]["ratio_to_oracle"] == pytest.approx(386 / 191.6 / 1.01**0.5)
    assert pretrained["over_seeds"]["perplexity_deviation"] is None
