import json

import pytest

from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance, read_manifest


def write_entries(path, entries):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((entry if isinstance(entry, str) else json.dumps(entry)) + "\n" for entry in entries))
    return path


def test_a_manifest_is_read_in_order_with_paths_from_its_own_folder(tmp_path, monkeypatch):
    (tmp_path / "a.flac").write_bytes(b"x")
    (tmp_path / "lists").mkdir()
    entries = [
        {"utterance_id": "2", "audio": "../a.flac", "text": "Tom said.", "speaker": 7, "seconds": 1.5},
        {"utterance_id": "1", "audio": "../a.flac", "text": "", "synthetic": True},
    ]
    manifest = write_entries(tmp_path / "lists" / "m.jsonl", entries)
    monkeypatch.chdir("/")
    assert read_manifest(manifest) == [
        Utterance("2", tmp_path / "a.flac", "Tom said.", "7", False),
        Utterance("1", tmp_path / "a.flac", "", None, True),
    ]


def test_all_problems_are_listed_with_their_lines_and_without_the_words(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"x")
    entries = [
        {"utterance_id": "one", "audio": "a.wav", "text": "secret words"},
        {"utterance_id": "one", "audio": "a.wav", "text": "secret words"},
        {"utterance_id": "two", "audio": str(tmp_path / "a.wav"), "text": "secret words"},
        {"utterance_id": "three", "audio": "C:\\speech\\a.wav", "text": "secret words"},
        {"utterance_id": "four", "audio": "gone.wav", "text": "secret words"},
        {"audio": "a.wav", "txt": "secret words"},
        "secret words",
        '["secret words"]',
        {"utterance_id": "", "audio": "", "text": ["secret words"], "speaker": 1.5, "synthetic": "yes"},
    ]
    with pytest.raises(SpeechError) as caught:
        read_manifest(write_entries(tmp_path / "m.jsonl", entries))
    message = str(caught.value)
    assert "13 problems" in message
    for said in (
        "line 2: utterance_id 'one' is in line 1 too",
        "line 3: audio path",
        "line 4: audio path 'C:\\\\speech\\\\a.wav' is absolute",
        "line 5: audio file 'gone.wav' does not exist",
        "line 6: has no 'utterance_id'",
        "line 6: has no 'text'",
        "line 7: is not JSON",
        "line 8: is no JSON object but list",
        "line 9: 'synthetic' is not true or false but str",
    ):
        assert said in message
    assert "secret" not in message
    assert "\n" not in message
