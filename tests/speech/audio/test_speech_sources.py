"""Published corpora in the layouts of their publishers, with recordings made here, by 'palimpsest speech-corpus'."""

import numpy as np
import soundfile
from command_results import refusal, report
from stage_commands import settings

from tasks.speech.audio.manifest import read_manifest


def record(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.ones(1600, dtype=np.int16), 16000)


def text(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def command(tmp_path, *values):
    return ["speech-corpus", *settings(*values), "--output", tmp_path / "out"]


def corpus(tmp_path, *values):
    """Utterances by id, and what was left out."""
    (said,) = report(*command(tmp_path, *values))["warnings"] or [""]
    return {one.utterance_id: one for one in read_manifest(tmp_path / "out" / "manifest.jsonl")}, said


def test_librispeech_is_read_as_published_and_what_it_lacks_is_counted_by_name(tmp_path):
    for part, speaker in (("test-clean", "61"), ("dev-clean", "84")):
        chapter = tmp_path / "LibriSpeech" / part / speaker / "7"
        text(chapter / f"{speaker}-7.trans.txt", f"{speaker}-7-0001 SHE SAID\n{speaker}-7-0000 HE DIDN'T\n")
        for number in (0, 1):
            record(chapter / f"{speaker}-7-000{number}.flac")
    every = ["kind=librispeech", f"source={tmp_path}"]
    assert len(corpus(tmp_path, *every)[0]) == 4
    found, said = corpus(tmp_path, *every, "parts=[test-clean]")
    assert [(name, one.text) for name, one in found.items()] == [("61-7-0000", "HE DIDN'T"), ("61-7-0001", "SHE SAID")]
    assert ({utterance.speaker for utterance in found.values()}, said) == ({"61"}, "")
    chapter = tmp_path / "LibriSpeech" / "test-clean" / "61" / "7"
    (chapter / "61-7-0001.flac").rename(chapter / "61-7-0009.flac")
    found, said = corpus(tmp_path, *every, "parts=[test-clean]")
    assert list(found) == ["61-7-0000"]
    assert said == "left out: 1 no_recording (61-7-0001); 1 no_transcript (61-7-0009)"
    (tmp_path / "empty").mkdir()
    for value, says in (
        ("parts=[test-other]", f"['test-other'] not in source '{tmp_path}'; it has: dev-clean, test-clean"),
        (f"source={tmp_path / 'empty'}", "has no *.trans.txt"),
    ):
        assert says in refusal(*command(tmp_path, *every, value))


def test_wsj_recordings_meet_their_transcripts(tmp_path):
    wsj0 = tmp_path / "11-13.1" / "wsj0"
    dots = "The deal [loud_breath] is *done* ,COMMA he said . (440c0401)\nA %PERCENT ~ rise (440C0402)\n"
    text(wsj0 / "transcrp" / "dots" / "si_et_20" / "440" / "440c0400.dot", dots)
    for name in ("440c0401.wav", "440c0401.flac", "440c0405.flac"):
        record(wsj0 / "si_et_20" / "440" / name)
    record(tmp_path / "converted" / "440C0402.WAV")
    discs = ["kind=wsj", f"source={tmp_path}"]
    found, said = corpus(tmp_path, *discs)
    assert {name: (one.text, one.speaker) for name, one in found.items()} == {
        "440c0401": ("The deal is done ,COMMA he said", "440"), "440c0402": ("A %PERCENT rise", "440"),
    }  # fmt: skip
    assert said == "left out: 1 no_transcript (440c0405)"
    assert list(corpus(tmp_path, *discs, "folders=[si_et_20]")[0]) == ["440c0401"]
    assert "it has: 11-13.1, 440, converted, si_et_20, wsj0" in refusal(
        *command(tmp_path, *discs, "folders=[si_dt_20]")
    )
