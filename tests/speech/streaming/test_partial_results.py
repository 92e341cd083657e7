"""Partial results by hand: what is held back and taken back, how late words are, and what the command says of them."""

import json

import pytest

from tasks.speech.streaming.partial_results import (
    average_lag,
    erased_words,
    held_back,
    partial,
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
