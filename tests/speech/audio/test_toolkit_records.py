"""Transcripts and n-best lists of other toolkits; all say the same two utterances."""

import pytest
from command_results import measured

from tasks.errors import SpeechError
from tasks.speech.rescoring.nbest_lists import read_nbest
from tasks.speech.word_errors.references import read_hypotheses, read_references

LISTS = {"u-1": [("red house", -1.5), ("red mouse", -2.0)], "u-2": [("my hat", -3.0), ("", -4.5)]}
REFERENCES = {"u-1": "red house", "u-2": "my cat"}

KALDI = {
    "text": "u-1-1 red house\nu-1-2 red mouse\nu-2-1 my hat\nu-2-2\n",
    "ac_cost": "u-1-1 0.5\nu-1-2 1\nu-2-1 2\nu-2-2 3.5\n",
    "lm_cost": "u-1-1 1\nu-1-2 1\nu-2-1 1\nu-2-2 1\n",
}
ESPNET = {
    "logdir/output.1/1best_recog/text": "u-1 red house\nu-2 my hat\n",
    "logdir/output.1/1best_recog/score": "u-1 tensor(-1.5, device='cpu')\nu-2 tensor(-3.0, device='cpu')\n",
    "logdir/output.1/2best_recog/text": "u-1 red mouse\nu-2\n",
    "logdir/output.1/2best_recog/score": "u-1 tensor(-2.0, device='cpu')\nu-2 tensor(-4.5, device='cpu')\n",
}
ARRAY = """[
    {"id": "u-1", "nbest": [{"transcript": "red house", "score": -1.5}, {"transcript": "red mouse", "score": -2.0}]},
    {"id": "u-2", "nbest": [{"transcript": "my hat", "score": -3.0}, {"transcript": "", "score": -4.5}]}]"""
TWO_LISTS = """
    {"utt_id": "u-1", "beams": ["red house", "red mouse"], "scores": [-1.5, -2.0]}
    {"utt_id": "u-2", "beams": ["my hat", ""], "scores": [-3.0, -4.5]}"""
NEMO = """
    {"audio_filepath": "/data/u-1.wav", "text": "red house",
     "beams": [{"pred_text": "red house", "score": -1.5}, {"pred_text": "red mouse", "score": -2.0}]}
    {"audio_filepath": "/data/u-2.wav", "text": "my cat",
     "beams": [{"pred_text": "my hat", "score": -3.0}, {"pred_text": "", "score": -4.5}]}""".replace(",\n", ",")


def write(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")


@pytest.mark.parametrize(
    ("files", "given", "has_references"),
    [
        (KALDI, ".", False),
        (ESPNET, ".", False),
        ({"lists.json": ARRAY}, "lists.json", False),
        ({"lists.json": TWO_LISTS}, "lists.json", False),
        ({"lists.json": NEMO}, "lists.json", True),
    ],
    ids=["Kaldi", "ESPnet", "an array", "two lists", "NeMo"],
)
def test_lists_of_a_toolkit(tmp_path, files, given, has_references):
    write(tmp_path, files)
    found = read_nbest(tmp_path / given, measured=False)
    assert {
        one.utterance_id: [(each.text, pytest.approx(each.score)) for each in one.hypotheses] for one in found
    } == LISTS
    assert {one.utterance_id: one.reference for one in found} == (
        REFERENCES if has_references else dict.fromkeys(LISTS, "")
    )


@pytest.mark.parametrize(
    "content",
    [
        "u-1 red house\nu-2 my hat\n",
        "red house (u-1)\nmy hat (u-2)\n",
        '{"audio_filepath": "a/u-1.wav", "text": "x", "pred_text": "red house"}\n'
        '{"audio_filepath": "a/u-2.wav", "text": "y", "pred_text": "my hat"}\n',
    ],
    ids=["Kaldi", "trn", "NeMo"],
)
def test_hypotheses_of_a_toolkit(tmp_path, content):
    write(tmp_path, {"found": content})
    assert read_hypotheses(tmp_path / "found") == {"u-1": "red house", "u-2": "my hat"}


def test_a_transcript_of_whisper_has_the_name_of_its_file(tmp_path):
    write(tmp_path, {"u-1.json": '{"text": " Red house", "segments": [], "language": "en"}'})
    assert read_hypotheses(tmp_path / "u-1.json") == {"u-1": " Red house"}


def test_errors_of_files_of_two_toolkits(tmp_path):
    write(
        tmp_path, {"ref.trn": "red house (u-1)\nmy cat (u-2)\n", **{f"found/{name}": ESPNET[name] for name in ESPNET}}
    )
    files = ["--references", tmp_path / "ref.trn", "--hypotheses", tmp_path / "found"]
    assert read_references(tmp_path / "ref.trn") == REFERENCES
    assert measured("word-error-rate", *files)["wer"] == 0.25


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"text": "u-1 red\n", "ac_cost": "u-1 x\n"}, "the score of 'u-1' is no number"),
        ({"notes": ""}, "'1best_recog' .ESPnet., or with 'text'"),
        ({"lists.tsv": "red house\t-1.5\n"}, "A line looks like"),
        ({"lists.json": '[{"id": "u", "nbest": ["red"]}]'}, "have no 'score'"),
        ({"lists.json": '[{"id": "u", "nbest": []}, {"id": "u", "nbest": []}]'}, "is in line 1 too"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, files, says):
    write(tmp_path, files)
    given = next((name for name in files if name.startswith("lists.")), ".")
    with pytest.raises(SpeechError, match=says) as caught:
        read_nbest(tmp_path / given, measured=False)
    assert "\n" not in str(caught.value)
