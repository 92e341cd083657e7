from pathlib import Path

import pytest

from tasks.speech.audio.manifest import Utterance
from tasks.speech.fusion.token_languages import token_language_numbers


def said(name, text, languages):
    return Utterance(name, Path("x.wav"), text, languages=languages)


def test_recognised_words_count_where_their_language_is_known():
    utterances = [
        said("a", "the red-hot casa, is mía", ["en", "en", "es", "en", "es"]),
        said("b", "Maria come", [None, "s"]),
        said("c", "nobody knows", None),
    ]
    found = {
        # "red" is told wrong; "mía" is not recognised.
        "a": ("the red hot casa is mama", ["en", "es", "en", "es", "en", "es"]),
        "b": ("maria come", ["en", "en"]),
        "c": ("nobody knows", ["en", "en"]),
    }
    numbers = token_language_numbers(utterances, ["en", "es"], found)
    assert numbers == {"token_languages": 6, "token_languages_right": pytest.approx(4 / 6)}
    assert token_language_numbers(utterances[2:], ["en", "es"], found)["token_languages_right"] is None
