"""The stage that takes n-best lists into an experiment."""

import json
from pathlib import Path

import pytest
import yaml

from tasks.cli import main
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, drawn_lists, read_nbest, write_nbest


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


def test_a_draw_keeps_the_order_and_goes_by_ids_alone():
    many = [NbestList(f"u{number:02}", "word", ()) for number in range(40)]
    drawn = drawn_lists(many, 10, seed=1)
    assert len(drawn) == 10
    assert drawn == [nbest for nbest in many if nbest in drawn]
    assert [nbest.utterance_id for nbest in drawn_lists(many[::-1], 10, seed=1)] == [
        nbest.utterance_id for nbest in drawn[::-1]
    ]
    assert drawn_lists(many, 10, seed=2) != drawn
    assert drawn_lists(many, None, seed=1) == drawn_lists(many, 40, seed=1) == many


def test_the_section_of_params_names_source_and_draw(source, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    document = yaml.safe_load((Path(__file__).parents[3] / "params.yaml").read_text())
    part = {"source": source.name, "utterances": 2}
    document["speech"]["nbest"] = {"mail": {"dev": part, "test": part}}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(document))
    section = ["--params", "params.yaml", "--name", "speech.nbest.mail.test"]
    assert main(["check-nbest", *section]) == 0
    assert capsys.readouterr().out.startswith("2 of ")
