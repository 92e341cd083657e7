"""N-best lists: reading, what is wrong with them, and writing; overlap of training text with references, by hand."""

import gzip
import json

import pytest

from tasks.errors import SpeechError
from tasks.speech.rescoring.nbest_lists import NbestList, ScoredHypothesis, read_nbest, write_nbest
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.word_errors.references import check_overlap, measure_overlap, read_hypotheses, read_references


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
    lists = [NbestList("u1", "Été", (ScoredHypothesis("été", -0.5),), "abc123"), NbestList("u2", "b", ())]
    for name in ("lists.jsonl", "lists.jsonl.gz"):
        write_nbest(tmp_path / name, lists)
        assert read_nbest(tmp_path / name) == lists
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert gzip.decompress((tmp_path / "lists.jsonl.gz").read_bytes()) == (tmp_path / "lists.jsonl").read_bytes()
    first = (tmp_path / "lists.jsonl.gz").read_bytes()
    write_nbest(tmp_path / "again.jsonl.gz", lists)
    assert (tmp_path / "again.jsonl.gz").read_bytes() == first


def test_references_and_hypotheses_from_either_kind_of_file(tmp_path):
    lists = write(tmp_path / "lists.jsonl", [record(scores=(-3, -1)), record("u2", "b", scores=())])
    manifest = write(
        tmp_path / "manifest.jsonl", [{"utterance_id": "u1", "audio": "not/there.flac", "text": "what was said"}]
    )
    assert read_references(lists) == {"u1": "what was said", "u2": "b"}
    assert read_references(manifest) == {"u1": "what was said"}
    assert read_hypotheses(lists) == {"u1": "text 1"}
    assert read_hypotheses(manifest) == {"u1": "what was said"}
    with pytest.raises(SpeechError, match=r"2 problems: line 1 has no 'utterance_id'; line 2 has no 'text'"):
        read_hypotheses(write(tmp_path / "bad.jsonl", [{"text": "a"}, {"utterance_id": "u"}]))


REFERENCES = ["Yes!", "one two three four five six seven eight nine", "", "no such thing here"]


def test_overlap(tmp_path):
    train = tmp_path / "train.txt"
    # The second reference's first stretch of eight words stands across a line end; its second one nowhere.
    train.write_text("yes\nzero one two three\nfour FIVE six seven, eight ten\nno such thing\n", encoding="utf-8")
    overlap = measure_overlap(REFERENCES, [train])
    assert overlap == {
        "references": 3,
        "shared_sentences": 1,
        "shared_sentence_share": 1 / 3,
        "eight_grams": 2,
        "shared_8_grams": 1,
        "shared_8_gram_share": 0.5,
    }
    check_overlap(overlap, RescoringSettings())
    check_overlap(overlap, RescoringSettings(maximum_shared_8_grams=0.5, maximum_shared_sentences=0.4))
    with pytest.raises(SpeechError, match=r"50.00% of the test 8-grams stand in the training text"):
        check_overlap(overlap, RescoringSettings(maximum_shared_8_grams=0.49))
    with pytest.raises(SpeechError, match=r"33.33% of the test references"):
        check_overlap(overlap, RescoringSettings(maximum_shared_sentences=0.0))
    # Stretches do not reach across files.
    for name, line in (("a.txt", "one two three four"), ("b.txt", "five six seven eight nine")):
        (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    assert measure_overlap(REFERENCES, [tmp_path / "a.txt", tmp_path / "b.txt"])["shared_8_grams"] == 0
    assert measure_overlap(["yes"], [tmp_path / "a.txt"])["shared_8_gram_share"] is None  # too short for a stretch


@pytest.mark.parametrize(
    "line",
    [
        "u1-1 WHAT WAS SAID",
        "what was said\t-1.2",
        '{"utt_id": "u", "nbest": []}',
        '["what was said"]',
        "u1 1 0.1 0.2 what",
    ],
)
@pytest.mark.parametrize("count", [4, 500])
def test_a_refusal_is_short_and_shows_the_right_form(tmp_path, line, count):
    with pytest.raises(SpeechError) as caught:
        read_nbest(write(tmp_path / "lists.jsonl", [line] * count))
    said = str(caught.value)
    assert len(said) < 700
    assert "\n" not in said
    assert " more problems. A line looks like {" in said
    assert "line 1" in said
    assert "line 4" not in said
    form = said.partition("A line looks like ")[2]
    assert read_nbest(write(tmp_path / "right.jsonl", [form]))[0].reference == "what was said"


def test_the_folder_of_a_toolkit_is_named_as_such(tmp_path):
    (tmp_path / "decode" / "1best_recog").mkdir(parents=True)
    with pytest.raises(SpeechError, match="is a folder, such as toolkits write; give one file of JSON lines"):
        read_nbest(tmp_path / "decode")
