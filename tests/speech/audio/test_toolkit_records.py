"""Transcripts and n-best lists of other toolkits; all say the same two utterances."""

import json
import math

import pytest

from tasks.cli import main
from tasks.errors import SpeechError
from tasks.speech.rescoring.nbest_lists import read_nbest
from tasks.speech.word_errors.references import read_hypotheses, read_references

LISTS = {"u-1": [("red house", -1.5), ("red mouse", -2.0)], "u-2": [("my hat", -3.0), ("", -4.5)]}
REFERENCES = {"u-1": "red house", "u-2": "my cat"}


def pairs():
    return [
        (name, rank, words, score) for name, entries in LISTS.items() for rank, (words, score) in enumerate(entries, 1)
    ]


def lines(path, texts):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def kaldi(folder):
    lines(folder / "text", [f"{name}-{rank} {words}" for name, rank, words, _ in pairs()])
    lines(folder / "ac_cost", [f"{name}-{rank} {-score - 1}" for name, rank, _, score in pairs()])
    lines(folder / "lm_cost", [f"{name}-{rank} 1" for name, rank, _, _ in pairs()])
    return folder


def espnet(folder):
    for rank in (1, 2):
        of_rank = [one for one in pairs() if one[1] == rank]
        best = folder / f"logdir/output.1/{rank}best_recog"
        lines(best / "text", [f"{name} {words}" for name, _, words, _ in of_rank])
        lines(best / "score", [f"{name} tensor({score}, device='cpu')" for name, _, _, score in of_rank])
    return folder


def as_json(form):
    def write(folder):
        records = [form(name, entries) for name, entries in LISTS.items()]
        path = folder / "lists.json"
        lines(path, [json.dumps(record) for record in records])
        return path

    return write


def whole(make):
    def write(folder):
        path = folder / "whole.json"
        path.write_text(json.dumps(make(), indent=1), encoding="utf-8")
        return path

    return write


FORMS = {
    "Kaldi": kaldi,
    "Kaldi's text": lambda folder: kaldi(folder) / "text",
    "ESPnet": espnet,
    "ESPnet 1": whole(
        lambda: {
            "utts": {
                name: {"output": [{"rec_text": t, "text": REFERENCES[name], "score": str(s)} for t, s in many]}
                for name, many in LISTS.items()
            }
        }
    ),
    "an array": whole(
        lambda: [
            {"id": name, "nbest": [{"transcript": t, "score": s} for t, s in many]} for name, many in LISTS.items()
        ]
    ),
    "confidences": as_json(
        lambda name, many: {"utt": name, "nbest": [{"transcript": t, "confidence": math.exp(s)} for t, s in many]}
    ),
    "pairs": as_json(lambda name, many: {"key": name, "hyps": many}),
    "two lists": as_json(
        lambda name, many: {"utt_id": name, "beams": [t for t, _ in many], "scores": [s for _, s in many]}
    ),
    "NeMo": as_json(
        lambda name, many: {"audio_filepath": f"/data/{name}.wav", "text": REFERENCES[name],
                            "beams": [{"pred_text": t, "score": s} for t, s in many]}
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_lists_of_a_toolkit(tmp_path, form):
    found = read_nbest(FORMS[form](tmp_path), measured=False)
    assert {
        one.utterance_id: [(each.text, pytest.approx(each.score)) for each in one.hypotheses] for one in found
    } == LISTS
    if form in ("NeMo", "ESPnet 1"):
        assert {one.utterance_id: one.reference for one in found} == REFERENCES


TEXTS = {
    "Kaldi": "u-1 red house\nu-2 my hat\n",
    "trn": "red house (u-1)\nmy hat (u-2)\n",
    "ctm": ";; words\nu-1 1 0.00 0.30 red 0.9\nu-1 1 0.30 0.40 house\nu-2 A 0.1 0.2 my\nu-2 A 0.3 0.2 hat\n",
    "NeMo": '{"audio_filepath": "a/u-1.wav", "text": "x", "pred_text": "red house"}\n'
    '{"audio_filepath": "a/u-2.wav", "text": "y", "pred_text": "my hat"}\n',
}


@pytest.mark.parametrize("form", TEXTS)
def test_hypotheses_of_a_toolkit(tmp_path, form):
    (tmp_path / "found").write_text(TEXTS[form], encoding="utf-8")
    assert read_hypotheses(tmp_path / "found") == {"u-1": "red house", "u-2": "my hat"}


def test_a_transcript_of_whisper_has_the_name_of_its_file(tmp_path):
    (tmp_path / "u-1.json").write_text(json.dumps({"text": " Red house", "segments": []}, indent=2), encoding="utf-8")
    assert read_hypotheses(tmp_path / "u-1.json") == {"u-1": " Red house"}


def test_errors_of_files_of_two_toolkits(tmp_path, capsys):
    (tmp_path / "ref.trn").write_text("red house (u-1)\nmy cat (u-2)\n", encoding="utf-8")
    options = ["--references", str(tmp_path / "ref.trn"), "--hypotheses", str(espnet(tmp_path / "espnet"))]
    assert read_references(tmp_path / "ref.trn") == REFERENCES
    assert main(["word-error-rate", *options]) == 0
    assert "25" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("files", "given", "says"),
    [
        ({"text": "u-1 red\n"}, ".", "has no costs of the hypotheses"),
        ({"text": "u-1 red\n", "ac_cost": "u-1 x\n"}, ".", "the score of 'u-1' is no number"),
        ({"text": "u-1 red\n", "ac_cost": "u-2 1\n"}, ".", "'u-1' has no score"),
        ({"notes": ""}, ".", "neither '1best_recog' .* nor 'text'"),
        ({"lists.tsv": "red house\t-1.5\n"}, "lists.tsv", "A line looks like"),
        ({"lists.json": '[{"id": "u", "nbest": ["red"]}]'}, "lists.json", "have no 'score'"),
        (
            {"lists.json": '[{"id": "u", "nbest": [{"transcript": "a", "confidence": 2}]}]'},
            "lists.json",
            "have no 'score'",
        ),
        ({"lists.json": '[{"id": "u", "nbest": []}, {"id": "u", "nbest": []}]'}, "lists.json", "is in line 1 too"),
        ({"lists.json": '[["red"]]'}, "lists.json", "is no JSON object but list"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, files, given, says):
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(SpeechError, match=says) as caught:
        read_nbest(tmp_path / given, measured=False)
    assert "\n" not in str(caught.value)
