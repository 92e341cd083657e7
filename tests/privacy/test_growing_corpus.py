"""A corpus that grows by a line a night, counted and released each night: what all releases say of one word."""

import math
from functools import cache

import numpy as np
import pytest

from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import ParameterError
from tasks.filling.frequencies import released_counts
from tasks.filling.frequencies.counted_frequencies import counted_frequencies
from tasks.filling.frequencies.released_counts import CountSeries, mark_released, refuse_lost
from tasks.filling.frequencies.word_frequencies import KeptWords, WordFrequencies
from tasks.filling.settings import NoisyCounts

PUBLIC = WordFrequencies.of([("the", 900), ("digits", 10), ("spectral", 10)])
KEPT = KeptWords(["the"])
KEY = bytes(range(32))
NIGHTS, ROUNDS, EPSILON = 48, 40, 1.0


def line(word, text):
    return text, [MaskedSpan(0, 5, "MASK", "list", word, 0)]


def corpus(word, nights):
    """A private word in the first line, and another line for each night; what the others say is known."""
    return [line(word, "first [MASK]"), *(line("digits", f"night {n} [MASK]") for n in range(nights))]


def night(home, lines, key=KEY, **settings):
    settings = NoisyCounts(**{"epsilon": EPSILON, **settings})
    return counted_frequencies(PUBLIC, KEPT, lines, settings, key, of=("mail", "crf"), home=home)


def test_releases_of_many_nights_tell_a_word_no_surer_than_epsilon_allows(tmp_path, monkeypatch):
    """The attacker has the noisy counts of every night, and takes the likelier of two words, by all of them together.

    With fresh noise over all lines each night that is nearly always right.
    """
    monkeypatch.setattr(
        "tasks.filling.frequencies.counted_frequencies.posterior_rates", lambda noisy, *_: np.maximum(noisy, 0) + 1e-3
    )
    # Released batches stay as they are, and a test need not survive a power cut.
    monkeypatch.setattr(released_counts, "_read", cache(released_counts._read))
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    right = 0.0
    for number in range(ROUNDS):
        word = ("digits", "spectral")[number % 2]
        home = tmp_path / str(number)
        for nights in range(NIGHTS):
            measured = night(home, corpus(word, nights), key=number.to_bytes(32, "big")).measured
            mark_released(measured, home)
        evidence = sum(log_odds(batch) for batch in CountSeries(measured["counts"], home).released())
        right += 0.5 if evidence == 0 else (evidence > 0) == (word == "digits")
    allowed = math.exp(EPSILON) / (1 + math.exp(EPSILON))
    assert right / ROUNDS <= allowed + 3 * math.sqrt(allowed * (1 - allowed) / ROUNDS)


def log_odds(batch):
    """Of 'digits' against 'spectral' in the first line, by one batch, if that line is in it; the others' are known."""
    digits, spectral = (batch.counts[:2] - (batch.places - 1, 0)).tolist()
    return (abs(digits) - abs(digits - 1) + abs(spectral - 1) - abs(spectral)) * EPSILON / 2


def test_what_has_left_is_counted_once_and_only_new_lines_anew(tmp_path):
    first = night(tmp_path, corpus("spectral", 3), epsilon=64.0).measured
    assert night(tmp_path, corpus("spectral", 5), epsilon=64.0).measured["batches"] != first["batches"]
    # Nothing has left yet: another night counts everything, and the first one is as it was.
    assert night(tmp_path, corpus("spectral", 3), epsilon=64.0).measured == first
    mark_released(first, tmp_path)
    assert night(tmp_path, corpus("spectral", 3), epsilon=64.0).measured == first
    later = night(tmp_path, corpus("spectral", 5), epsilon=64.0)
    assert later.measured["counts"] == first["counts"]
    assert [name in first["batches"] for name in later.measured["batches"]].count(True) == 1
    assert (len(later.measured["batches"]), later.measured["counted_places"]) == (2, 6)
    mark_released(later.measured, tmp_path)
    batches = CountSeries(first["counts"], tmp_path).released()
    assert sorted(batch.counts[:2].tolist() for batch in batches) == [[2, 0], [3, 1]]
    folder = tmp_path / "counts" / first["counts"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.npz")} == {0o600}
    assert "spectral" not in repr([path.read_bytes() for path in folder.iterdir()])


def test_of_equal_lines_and_of_lines_that_went_only_what_is_more_is_counted(tmp_path):
    """How many are counted says the masked text, whatever words are behind it."""
    same = [line("digits", "the [MASK]")] * 2
    mark_released(night(tmp_path, same, epsilon=64.0).measured, tmp_path)
    three = night(tmp_path, [*same, line("digits", "the [MASK]")], epsilon=64.0).measured
    edited = night(tmp_path, [line("spectral", "the [MASK]")] * 3, epsilon=64.0).measured
    assert three["counted_places"] == edited["counted_places"] == 3
    assert night(tmp_path, [line("spectral", "the [MASK]")], epsilon=64.0).measured["counted_places"] == 2


def test_counts_that_another_release_has_overtaken_do_not_leave(tmp_path):
    early, late = (night(tmp_path, corpus("spectral", nights)).measured for nights in (3, 5))
    mark_released(late, tmp_path)
    mark_released(late, tmp_path)
    with pytest.raises(ParameterError, match=r"were made before counts .* fill again"):
        mark_released(early, tmp_path)
    (path,) = (tmp_path / "counts" / late["counts"]).glob("*.released.npz")
    path.unlink()
    with pytest.raises(ParameterError, match=r"counts .* have left, .* bring back that folder"):
        refuse_lost(night(tmp_path, corpus("spectral", 5)).measured, {late["counts"]}, tmp_path)
