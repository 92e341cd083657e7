import json

import pytest

from tasks.speech.audio.utterance_lines import given_languages
from tasks.speech.fusion.token_languages import token_language_numbers
from tasks.speech.word_errors.references import read_references


def test_recognised_words_count_where_their_language_is_known(tmp_path):
    lines = [
        {"utterance_id": "a", "text": "the red-hot casa, is mía", "languages": ["en", "en", "es", "en", "es"]},
        {"utterance_id": "b", "text": "Maria come", "languages": [None, "s"]},
        {"utterance_id": "c", "text": "nobody knows"},
    ]
    manifest = tmp_path / "manifest.jsonl"
    # Its recordings are not there: what was said is all that is needed.
    manifest.write_text("".join(json.dumps({"audio": "x.wav", **line}) + "\n" for line in lines))
    references, given = read_references(manifest), given_languages(manifest, ["en", "es"])
    found = {
        # "red" is told wrong; "mía" is not recognised.
        "a": ("the red hot casa is mama", ["en", "es", "en", "es", "en", "es"]),
        "b": ("maria come", ["en", "en"]),
        "c": ("nobody knows", ["en", "en"]),
    }
    numbers = token_language_numbers(references, given, found, ["en", "es"])
    assert numbers == {"token_languages": 6, "token_languages_right": pytest.approx(4 / 6)}
    assert token_language_numbers(references, {}, found, ["en", "es"])["token_languages_right"] is None
