import math

import pytest

from dashboards.app.differences import (
    groups_of,
    has_scores,
    has_word_errors,
    sentence_differences,
    utterance_differences,
)
from tasks.errors import CorpusError
from tasks.language_model.settings import EvaluationSettings
from tasks.records.cell import Cell

BASELINE = Cell("chat", "allow_list", "baseline1", None, 1)
FILLED = Cell("chat", "allow_list", "top_k", "minilm", 1)
SETTINGS = EvaluationSettings(bootstrap_samples=200, confidence=0.95, seed=1)
COLUMNS = [
    *("line", "targets", "log_probability", "known_targets", "known_log_probability"),
    *("masked:allow_list:targets", "masked:allow_list:log_probability"),
    *("masked_known:allow_list:targets", "masked_known:allow_list:log_probability"),
]


def write_scores(folder, cell, perplexities, signature="ppl|unit=word"):
    """Two targets a sentence; the first sentence has a masked word with half of its log-probability."""
    lines = [f"# {signature}", "\t".join(COLUMNS)]
    for number, perplexity in enumerate(perplexities, start=1):
        loss = -2 * math.log(perplexity)
        masked = (1, loss / 2) if number == 1 else (0, 0)
        lines.append("\t".join(map(str, (number, 2, loss, 2, loss, *masked, *masked))))
    path = folder / f"{cell.path}.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_errors(folder, cell, errors):
    names = "utterance_id words hits insertions deletions substitutions characters character_errors missing".split()
    lines = ["# wer|unit=word|empty_references=0", "\t".join(names)]
    for number, wrong in enumerate(errors):
        lines.append("\t".join(map(str, (f"u{number}", 10, 10 - wrong, 0, 0, wrong, 50, wrong, 0))))
    path = folder / f"{cell.path}.errors.tsv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_sentences_stand_in_the_order_of_what_they_differ_in(tmp_path):
    write_scores(tmp_path, BASELINE, [100.0, 100.0, 100.0])
    write_scores(tmp_path, FILLED, [100.0, 25.0, 200.0])
    found = sentence_differences(BASELINE, FILLED, "all", SETTINGS, tmp_path)
    # exp of the mean of log 1, log 1/4 and log 2, each over two targets.
    assert found.value == pytest.approx((1 / 4 * 2) ** (1 / 3), rel=1e-9)
    assert found.low < found.value < found.high
    assert found.apart(1.0) == 0
    assert found.frame["line"].tolist() == [2, 3, 1]
    assert found.frame["perplexity_a"].tolist() == pytest.approx([100, 100, 100])
    assert found.frame["perplexity_b"].tolist() == pytest.approx([25, 200, 100])
    assert found.frame["difference"].tolist() == pytest.approx([-math.log(4), math.log(2), 0], abs=1e-12)
    assert found.frame["weight"].tolist() == pytest.approx([-2 * math.log(4), 2 * math.log(2), 0], abs=1e-12)


def test_half_the_perplexity_everywhere_is_told_apart(tmp_path):
    write_scores(tmp_path, BASELINE, [100.0, 10.0, 30.0])
    write_scores(tmp_path, FILLED, [50.0, 5.0, 15.0])
    found = sentence_differences(BASELINE, FILLED, "known", SETTINGS, tmp_path)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert found.apart(1.0) == -1


def test_a_group_has_only_sentences_with_its_words(tmp_path):
    for cell in (BASELINE, FILLED):
        write_scores(tmp_path, cell, [100.0, 10.0])
    assert groups_of(BASELINE, FILLED, tmp_path) == {
        "all": "all words",
        "known": "words of the vocabulary",
        "masked_known:allow_list": "words that allow list would mask",
        "rest_known:allow_list": "all that allow list leaves",
    }
    found = sentence_differences(BASELINE, FILLED, "masked_known:allow_list", SETTINGS, tmp_path)
    assert found.frame["line"].tolist() == [1]
    assert found.frame["targets"].tolist() == [1]
    assert found.frame["perplexity_a"].tolist() == pytest.approx([100.0])


def test_another_protocol_is_refused(tmp_path):
    write_scores(tmp_path, BASELINE, [100.0, 10.0])
    write_scores(tmp_path, FILLED, [100.0, 10.0], signature="ppl|unit=piece")
    with pytest.raises(CorpusError, match="different protocols"):
        sentence_differences(BASELINE, FILLED, "all", SETTINGS, tmp_path)


def test_utterances_stand_in_the_order_of_what_they_differ_in(tmp_path):
    write_errors(tmp_path, BASELINE, [1, 4, 2, 3])
    write_errors(tmp_path, FILLED, [1, 1, 3, 3])
    found = utterance_differences(BASELINE, FILLED, SETTINGS, tmp_path)
    assert found.value == pytest.approx(100 * (8 - 10) / 40)
    assert found.frame["utterance_id"].tolist() == ["u1", "u2", "u0", "u3"]
    assert found.frame["difference"].tolist() == [-3, 1, 0, 0]
    assert found.frame["errors_a"].tolist() == [4, 2, 1, 3]
    assert found.frame["substitutions_b"].tolist() == [1, 3, 1, 3]


def test_what_is_not_on_this_machine_is_known(tmp_path):
    assert not has_scores(BASELINE, tmp_path)
    write_scores(tmp_path, BASELINE, [100.0])
    assert has_scores(BASELINE, tmp_path)
    assert not has_word_errors(BASELINE, tmp_path)
    assert not has_scores(Cell("chat", None, "no_language_model"), tmp_path)
