"""N-best lists: reading, what is wrong with them, and writing."""

import gzip
import json

import pytest

from tasks.cli import main
from tasks.errors import SpeechError
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, read_nbest, write_nbest


def record(name="u1", reference="what was said", scores=(-1.0, -2.0), **more):
    hypotheses = [{"text": f"text {place}", "score": score} for place, score in enumerate(scores)]
    return {"utterance_id": name, "reference": reference, "hypotheses": hypotheses, **more}


def write(path, records):
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records), encoding="utf-8")
    return path


def test_best_first_and_cut(tmp_path):
    path = write(tmp_path / "lists.jsonl", [record(scores=(-3, -1.5, -2)), record("u2", scores=())])
    first, second = read_nbest(path, at_most=2)
    assert [hypothesis.text for hypothesis in first.hypotheses] == ["text 1", "text 2"]
    assert first.best == ScoredHypothesis("text 1", -1.5)
    assert second.hypotheses == ()  # the recogniser found nothing: the test set stays whole


def test_compressed_lists_are_read_and_written_alike(tmp_path):
    lists = [NbestList("u1", "Été", (ScoredHypothesis("été", -0.5),)), NbestList("u2", "b", ())]
    for name in ("lists.jsonl", "lists.jsonl.gz"):
        write_nbest(tmp_path / name, lists)
        assert read_nbest(tmp_path / name) == lists
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert gzip.decompress((tmp_path / "lists.jsonl.gz").read_bytes()) == (tmp_path / "lists.jsonl").read_bytes()
    first = (tmp_path / "lists.jsonl.gz").read_bytes()
    write_nbest(tmp_path / "again.jsonl.gz", lists)
    assert (tmp_path / "again.jsonl.gz").read_bytes() == first


@pytest.mark.parametrize("line", ["u1-1 WHAT WAS SAID", '{"utt_id": "u", "nbest": []}', '["what was said"]'])
def test_a_refusal_is_short_and_shows_the_right_form(tmp_path, line):
    with pytest.raises(SpeechError) as caught:
        read_nbest(write(tmp_path / "lists.jsonl", [line] * 500))
    said = str(caught.value)
    assert len(said) < 700
    assert "\n" not in said
    assert " more problems. A line looks like {" in said
    assert "line 1" in said
    assert "line 4" not in said
    form = said.partition("A line looks like ")[2]
    assert read_nbest(write(tmp_path / "right.jsonl", [form]))[0].reference == "what was said"


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
