"""Published corpora in the layouts of their publishers, with recordings made here."""

import numpy as np
import pytest
import soundfile

from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance
from tasks.speech.audio.recordings import LeftOut
from tasks.speech.audio.settings import LibriSpeech, WallStreetJournalSpeech
from tasks.speech.audio.speech_sources import read_librispeech, read_wsj_speech


def record(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(1600, dtype=np.int16), 16000, format="NIST" if path.suffix == ".wv1" else None)


def text(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def librispeech(source, *parts):
    return divided(read_librispeech(LibriSpeech(kind="librispeech", source=str(source), parts=list(parts))))


def divided(found):
    """Utterances by id, and pairs of reason and id."""
    found = list(found)
    return {one.utterance_id: one for one in found if isinstance(one, Utterance)}, [
        tuple(one) for one in found if isinstance(one, LeftOut)
    ]


def test_librispeech_is_read_as_published_and_what_it_lacks_is_counted_by_name(tmp_path):
    for part, speaker in (("test-clean", "61"), ("dev-clean", "84")):
        chapter = tmp_path / "LibriSpeech" / part / speaker / "7"
        text(chapter / f"{speaker}-7.trans.txt", f"{speaker}-7-0001 SHE SAID\n{speaker}-7-0000 HE DIDN'T\n")
        for number in (0, 1):
            record(chapter / f"{speaker}-7-000{number}.flac")
    found, left_out = librispeech(tmp_path, "test-clean")
    assert [(name, one.text) for name, one in found.items()] == [("61-7-0000", "HE DIDN'T"), ("61-7-0001", "SHE SAID")]
    assert {utterance.speaker for utterance in found.values()} == {"61"}
    assert left_out == []
    assert len(librispeech(tmp_path)[0]) == 4
    chapter = tmp_path / "LibriSpeech" / "test-clean" / "61" / "7"
    (chapter / "61-7-0001.flac").rename(chapter / "61-7-0009.flac")
    found, left_out = librispeech(tmp_path, "test-clean")
    assert list(found) == ["61-7-0000"]
    assert left_out == [("no_recording", "61-7-0001"), ("no_transcript", "61-7-0009")]
    with pytest.raises(SpeechError, match=r"\['test-other'\] not in source .* it has: dev-clean, test-clean"):
        librispeech(tmp_path, "test-other")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpeechError, match=r"has no \*.trans.txt"):
        librispeech(tmp_path / "empty")


@pytest.fixture
def discs(tmp_path):
    wsj0 = tmp_path / "11-13.1" / "wsj0"
    dots = "The deal [loud_breath] is *done* ,COMMA he said . (440c0401)\nA %PERCENT ~ rise (440c0402)\n"
    text(wsj0 / "transcrp" / "dots" / "si_et_20" / "440" / "440c0400.dot", dots)
    text(wsj0 / "si_et_20" / "440" / "440c0400.lsn", "THE DEAL IS DONE (440C0401)\nHE SOLD (440C0403)\n")
    for name in ("440c0401.wav", "440c0401.wv1", "440c0402.wv1", "440c0405.flac"):
        record(wsj0 / "si_et_20" / "440" / name)
    record(tmp_path / "converted" / "440C0403.WAV")
    return tmp_path


def wsj(source):
    return divided(read_wsj_speech(WallStreetJournalSpeech(kind="wsj", source=str(source))))


def test_wsj_recordings_meet_their_transcripts(discs):
    found, left_out = wsj(discs)
    assert {name: one.text for name, one in found.items()} == {
        "440c0401": "The deal is done ,COMMA he said", "440c0402": "A %PERCENT rise", "440c0403": "HE SOLD",
    }  # fmt: skip
    assert {utterance.speaker for utterance in found.values()} == {"440"}
    assert found["440c0401"].audio.suffix == ".wav"
    assert left_out == [("no_transcript", "440c0405")]


def test_wsj_transcripts_of_another_form_are_named(discs):
    text(discs / "more.dot", "fine (440c0407)\nsecret words\n")
    with pytest.raises(SpeechError, match="line 2 is no utterance") as caught:
        wsj(discs)
    assert "secret" not in str(caught.value)
