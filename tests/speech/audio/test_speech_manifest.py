import json

import pytest

from tasks.errors import SpeechError
from tasks.speech.audio.manifest import Utterance, read_manifest, write_manifest


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
        "line 9: 'synthetic' is neither true nor false but str",
    ):
        assert said in message
    assert "secret" not in message
    assert "\n" not in message


def test_a_manifest_that_is_missing_empty_or_in_another_encoding_is_an_error(tmp_path):
    with pytest.raises(SpeechError, match="does not exist"):
        read_manifest(tmp_path / "m.jsonl")
    not_text = (b'{"utterance_id": "\xff"}\n', r"line 1: byte 19 \(0xff\) is not UTF-8")
    for content, message in [(b"", "is empty"), (b"\n \n", "is empty"), not_text]:
        (tmp_path / "m.jsonl").write_bytes(content)
        with pytest.raises(SpeechError, match=message):
            read_manifest(tmp_path / "m.jsonl")


def test_a_manifest_is_for_its_owner_alone_and_moves_with_its_folder(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "a.wav").write_bytes(b"x")
    utterances = [Utterance("u", tmp_path / "here" / "a.wav", "words", "s", True)]
    write_manifest(tmp_path / "here" / "m.jsonl", utterances)
    assert (tmp_path / "here" / "m.jsonl").stat().st_mode & 0o777 == 0o600
    (tmp_path / "here").rename(tmp_path / "there")
    assert read_manifest(tmp_path / "there" / "m.jsonl")[0].audio == tmp_path / "there" / "a.wav"


def test_files_that_are_links_into_a_cache_keep_their_names_and_neighbours(tmp_path):
    cache, folder = tmp_path / "cache", tmp_path / "speech"
    cache.mkdir()
    folder.mkdir()
    write_manifest(cache / "1f", [Utterance("u", cache / "a.flac", "words")])
    (cache / "2e").write_bytes(b"x")
    (folder / "m.jsonl").symlink_to(cache / "1f")
    (folder / "a.flac").symlink_to(cache / "2e")
    (tmp_path / "link").symlink_to(folder)
    [utterance] = read_manifest(tmp_path / "link" / "m.jsonl")
    assert utterance.audio == folder / "a.flac"
    write_manifest(tmp_path / "other.jsonl", [utterance])
    assert read_manifest(tmp_path / "other.jsonl") == [utterance]
