"""Perplexity by language: whose words they are, counted by hand."""

import numpy as np

from tasks.language_model.evaluation.by_language import language_groups
from tasks.language_model.evaluation.reference_text import reference_text_of

LINES = [
    "the house was very big but my sister pero mi hermana no quería comer nada",
    "we went to the school with all of our friends yesterday",
    "mi hermana quiere mucho a su familia porque siempre están juntos",
]


def test_words_lines_and_switches_by_hand():
    """Each target counts its place in the sentence, so that sums tell which targets were taken."""
    text = reference_text_of(LINES, "text")
    places = np.concatenate([np.arange(len(line.split()) + 1) for line in LINES]).astype(np.float64)
    known = np.ones(len(places), dtype=bool)
    known[0] = False
    found = {
        name: (sums.total.targets, sums.total.log_probability)
        for name, sums in language_groups(places, known, text, ["en", "es"]).items()
    }
    assert found == {
        "en": (7 + 11, sum(range(1, 8)) + sum(range(11))),
        "es": (7 + 11, sum(range(8, 15)) + sum(range(11))),
        "mixed": (0, 0),
        "switch points": (1, 8),
        "1 word behind a switch point": (1, 9),
        "2 words behind a switch point": (1, 10),
        "3 words behind a switch point": (1, 11),
        "4 words behind a switch point": (1, 12),
        "5 words behind a switch point": (1, 13),
        "6 words and more behind a switch point": (1, 14),
        "lines in one language": (24, 2 * sum(range(12))),
        "lines mixed up to 20": (0, 0),
        "lines mixed more than 20": (15, sum(range(1, 16))),
    }
