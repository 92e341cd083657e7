"""How frequent words are in a domain: by hand, and on texts whose domain is known."""

import math

import numpy as np
import pytest

from tasks.errors import CorpusError
from tasks.filling.frequencies.word_frequencies import WordFrequencies, domain_frequencies

BANK = ["the bank pays interest today", "our bank has a low price", "the price of money is interest"]
SEA = ["the ship sails on water today", "our ship has a low mast", "the captain of water is old"]


def frequencies_of(lines: list[str]) -> WordFrequencies:
    counts: dict[str, int] = {}
    for word in " ".join(lines).split():
        counts[word] = counts.get(word, 0) + 1
    return WordFrequencies.of(counts.items())


def count(frequencies: WordFrequencies, word: str) -> float:
    return float(frequencies.counts[frequencies.words.index(word)])


def test_the_multiplier_is_the_formula():
    """One known word that decides: p_masked / p_generic by hand, K = 20, strength from what was found."""
    generic = ["x y"] * 60 + ["y z"] * 60 + ["w q"] * 60
    frequencies = WordFrequencies(("x", "y", "z", "w", "q"), np.array([60, 120, 60, 60, 60]))
    masked = ["x w"] * 1000 + ["w x"] * 1000
    found = domain_frequencies(frequencies, masked, generic)
    # Shown: x and w, each half of both texts: the ratio is 1, the scores 0 and nothing moves.
    assert found.frequencies.counts.tolist() == [60000, 120000, 60000, 60000, 60000]
    masked = ["x"] * 3000 + ["w"] * 1000
    found = domain_frequencies(frequencies, masked, generic)
    p_x, p_w = (3000 + 500) / 5000, (1000 + 500) / 5000
    strength = found.measured["strength"]
    weights = {"x": math.exp(strength * math.log(p_x / 0.5)), "w": math.exp(strength * math.log(p_w / 0.5))}
    # Unshown words keep their number together: y (60 with x, 60 with z), z (60), q (60 with w).
    total = 60 * weights["x"] + 60 + 60 + 60 * weights["w"]
    scale = 240 / total
    z = (60 * scale + 20) / 80
    q = (60 * weights["w"] * scale + 20) / 80
    assert count(found.frequencies, "z") == pytest.approx(60000 * z, abs=1)
    assert count(found.frequencies, "q") == pytest.approx(60000 * q, abs=1)


def test_masked_words_play_no_part():
    generic = (BANK + SEA) * 10
    frequencies = frequencies_of(generic)
    one = domain_frequencies(frequencies, ["the bank pays [MASK] today"] * 9, generic)
    other = domain_frequencies(frequencies, ["the bank pays [MONEY] today"] * 9, generic)
    assert one.frequencies.counts.tolist() == other.frequencies.counts.tolist()


def test_texts_without_a_common_word_are_one_line():
    frequencies = frequencies_of(BANK)
    with pytest.raises(CorpusError, match=r"no word in common.*prior: word_counts") as error:
        domain_frequencies(frequencies, ["xyzzy [MASK]"], BANK)
    assert "\n" not in str(error.value)
    assert "xyzzy" not in str(error.value)
