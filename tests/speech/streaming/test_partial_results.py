"""Partial results by hand: what is held back and taken back, how late words are, and what the command says of them."""

import json

import pytest

from tasks.errors import SpeechError
from tasks.speech.streaming.partial_results import (
    Partial,
    average_lag,
    committed,
    erased_words,
    held_back,
    partial,
    read_partials,
)

SPOKEN = [
    partial(1, "we"),
    partial(2, "we wreck a"),
    partial(3, "we recognise speech"),
    partial(4, "we recognise speech now"),
]


def shown(partials):
    return [" ".join(each.words) for each in partials]


@pytest.mark.parametrize(
    ("words", "seen", "erased", "lag"),
    [
        # "we" from 1 s on, two words from 3 s, "now" at 4 s: 1 - 0, 3 - 1, 3 - 2, 4 - 3; "wreck a" is taken back.
        (0, ["we", "we wreck a", "we recognise speech", "we recognise speech now"], 2, 5 / 4),
        (1, ["", "we wreck", "we recognise", "we recognise speech now"], 1, (2 + 2 + 2) / 3),
        (2, ["", "we", "we", "we recognise speech now"], 0, (2 + 3) / 2),
        (None, ["", "", "", "we recognise speech now"], 0, 4),
    ],
)
def test_words_held_back(words, seen, erased, lag):
    found = held_back(SPOKEN, words)
    assert shown(found) == seen
    assert erased_words(found) == erased
    assert average_lag(found) == pytest.approx(lag)


def test_what_was_shown_stays_where_nothing_is_taken_back():
    assert shown(committed(SPOKEN)) == ["we", "we wreck a", "we wreck a", "we wreck a now"]
    assert erased_words(committed(SPOKEN)) == 0
    assert shown(committed(held_back(SPOKEN, 2))) == shown(held_back(SPOKEN, 2))
    assert average_lag([Partial(1, ("a",)), Partial(2, ())]) is None
    assert partial(1, "我们book").words == ("我", "们", "book")


def test_lines_that_are_no_partial_results_are_named(tmp_path):
    path = tmp_path / "partials.jsonl"
    back = [{"seconds": 2, "text": "a"}, {"seconds": 1, "text": "a"}]
    for line, message in [
        ({"partials": []}, "line 1: has no 'utterance_id'"),
        ({"utterance_id": "u", "partials": []}, "line 1: 'partials' needs objects with 'seconds', which do not fall"),
        ({"utterance_id": "u", "partials": back}, "line 1: 'partials' needs"),
    ]:
        path.write_text(json.dumps(line) + "\n")
        with pytest.raises(SpeechError, match=message):
            read_partials(path)


def test_the_command_measures_results_of_any_recogniser(tmp_path, measured, refusal):
    said = {"u1": "we recognise speech now", "u2": "yes"}
    manifest, partials = tmp_path / "manifest.jsonl", tmp_path / "partials.jsonl"
    manifest.write_text("".join(f"{json.dumps({'utterance_id': n, 'text': t})}\n" for n, t in said.items()))
    heard = {"u1": [(each.seconds, " ".join(each.words)) for each in SPOKEN], "u2": [(1, "yes")]}
    lines = [
        {"utterance_id": name, "partials": [{"seconds": seconds, "text": text} for seconds, text in each]}
        for name, each in heard.items()
    ]
    partials.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = measured("stream", "--references", manifest, "--partials", partials, "--set", "held_back=[0, 2]")
    assert found["wer"] == 0
    by_words = found["held_back"]
    taken_back = {
        words: (each["normalised_erasure"], each["nothing_taken_back"]["wer"]) for words, each in by_words.items()
    }
    assert taken_back == {"0": (2 / 5, 2 / 5), "2": (0, 0), "all": (0, 0)}
    assert by_words["all"]["average_lag_seconds"] == 5 / 2
    assert "give --partials, or --recogniser and --encoded" in refusal("stream", "--references", manifest)
