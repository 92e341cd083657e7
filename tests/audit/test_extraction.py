"""Extraction by hand: which runs of words count, for whom, and beside what."""

import numpy as np
import pytest

from tasks.audit.attacked import AttackedModel
from tasks.audit.canaries import Canaries, Canary
from tasks.audit.extraction import extraction
from tasks.audit.settings import AuditSettings

LINES = [
    "One two three four five six!",
    "one, two, three, four, five, nine",
    "red green blue black white",
    "nobody knows who wrote it",
]
IS_MEMBER = np.array([True, True, False, False])
WRITTEN = [
    "one two three four five six",  # the first run is that of two lines
    "red green blue black white",
    "nobody knows who wrote it",
    "two three four five nine",
    "a b c d e",
    "too short to count",
]


class Writer:
    """A model that writes what it is told to."""

    def __init__(self, lines):
        self.lines = [tuple(line.split()) for line in lines]

    def sample(self, drawing):
        return self.lines[: drawing.sentences]


def attacked(written, **options):
    settings = AuditSettings(bootstrap_samples=200)
    return extraction(AttackedModel(Writer(written), LINES, IS_MEMBER, list("abcd"), settings, **options))


def test_a_run_counts_that_one_line_alone_has(tmp_path):
    found = attacked(WRITTEN)["extracted"]
    # Two of six of members; two of others, who have two runs where members have four.
    assert (found.value, found.blind, found.places) == (pytest.approx(2 / 6), pytest.approx(2 * 2 / 6), 6)
    assert found.interval[0] < 2 / 6 < found.interval[1]
    (tmp_path / "public.txt").write_text("Nobody knows who wrote it, they say.\n", encoding="utf-8")
    options = {"public": str(tmp_path / "public.txt"), "planted": ["a b c d e"]}
    found = attacked(WRITTEN, **options, text=["one two", "two three four five nine", "red", "nobody"])
    assert (found["extracted"].value, found["extracted"].blind) == (pytest.approx(2 / 5), pytest.approx(2 * 1 / 5))
    assert found["extracted_masked"].value == pytest.approx(1 / 5)


def test_canaries_are_found_word_for_word():
    planted = [(name, 16 if name != "Carla" else 4) for name in ("Anna", "Bob", "Carla")]
    canaries = Canaries(
        [Canary(f"{name} lives here", (0,), "masked", 0, times) for name, times in planted],
        {("masked", 0): [f"{name} lives here" for name in ("dora", "emil", "fritz", "gina")]},
        {("masked", 0): 3.0},
    )
    found = attacked(["anna lives here", "carla lives here", "emil lives here"], canaries=canaries)
    names = found["extracted_planted"]
    assert (names.value, names.blind, names.places) == (0.5, 0.25, 2)
    assert found["extracted_planted_unmasked"].value is None


def test_nothing_written_is_nothing_known_and_nothing_found_has_an_upper_end():
    assert attacked(["too short to count"])["extracted"].value is None
    nothing = attacked(["a b c d e"] * 99)["extracted"]
    assert (nothing.value, nothing.blind) == (0.0, 0.0)
    assert nothing.interval == (0.0, pytest.approx(0.0374, abs=1e-3))
