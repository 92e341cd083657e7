"""The stage that takes n-best lists into an experiment."""

import json

import pytest

from tasks.cli import main
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, read_nbest, write_nbest


def lists() -> list[NbestList]:
    """Four utterances of two words: the first list begins with its best hypothesis, the second does not, the third has
    only wrong ones (equally wrong), the fourth is empty."""

    def entries(*texts):
        return tuple(ScoredHypothesis(text, -float(place)) for place, text in enumerate(texts))

    return [
        NbestList("a", "red house", entries("red house", "red mouse")),
        NbestList("b", "blue house", entries("blue mouse", "blue house", "Blue house.")),
        NbestList("c", "old tree", entries("odd tree", "old three")),
        NbestList("d", "my hat", ()),
    ]


@pytest.fixture
def source(tmp_path):
    write_nbest(tmp_path / "lists.jsonl.gz", lists())
    return tmp_path / "lists.jsonl.gz"


def test_what_can_be_won_by_hand(source, tmp_path, capsys):
    output, report = tmp_path / "taken.jsonl.gz", tmp_path / "report.json"
    options = ["--set", f"source={source}", "--output", str(output), "--report", str(report)]
    assert main(["check-nbest", *options]) == 0
    assert json.loads(report.read_text(encoding="utf-8"))["measured"] == {
        "utterances_of_source": 4,
        "utterances": 4,
        "empty_references": 0,
        "empty_lists": 1,
        "words": 8,
        "hypotheses": 7,
        "distinct_hypotheses": 6,
        # One word of b, one of c, both of d; the best of b has none.
        "wer": 4 / 8,
        "oracle_wer": 3 / 8,
        # All but b: of c and of d nothing better is there.
        "best_first_share": 3 / 4,
    }
    assert read_nbest(output) == read_nbest(source)
    assert output.stat().st_mode & 0o777 == 0o600
    text = report.read_text(encoding="utf-8")
    assert "mouse" not in text
    (warning,) = json.loads(text)["warnings"]
    assert warning == "1 lists hold no hypothesis; the words of their references are deleted"
    assert capsys.readouterr().err == f"warning: {warning}\n"
