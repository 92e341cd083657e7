"""Which words a text hides, and what the reference reader finds in those that it does not."""

import pytest
from marked_text import MaskedText, Names

from tasks.audit.attacked import AttackedText, AttackSettings, AuditFiles
from tasks.audit.attacks import figures_of
from tasks.audit.clear_text import masked_words, missing_words, verbatim_lines
from tasks.audit.figure import share_figure
from tasks.errors import CorpusError
from tasks.filling.methods.distilled import Distilled
from tasks.masking.every_tagger import EveryTagger
from tasks.records.cell import Cell
from tasks.review.reader import accuracies
from tasks.settings.resources import ResourceSettings

DISTILLED = Distilled(kind="distilled")
RESOURCES = ResourceSettings(threads=1, parallel_stages=1)


@pytest.fixture
def _reader(monkeypatch):
    """A reader that finds these words alone."""
    names = Names("anna", "bob", "carla", DATE="noon")
    monkeypatch.setattr(EveryTagger, "build", lambda settings, word_counts, threads: names)


def test_words_that_another_text_has_not():
    for raw, other, missing in (
        ("anna saw bob", "anna saw bob", []),
        ("anna saw bob", "Carla saw BOB!", ["anna"]),
        ("anna saw anna", "anna saw eve", ["anna"]),
        ("anna, bob and eve", "somebody wrote", ["anna", "bob", "and", "eve"]),
        ("anna saw bob", "yesterday anna really saw a bob", []),
    ):
        (found,) = missing_words([raw], [other])
        assert [raw[start:end] for start, end in sorted(found)] == missing


def test_a_text_of_another_program_is_judged_as_a_fill_is(tmp_path):
    text = MaskedText.write(tmp_path, ["anna saw {bob} at noon", "anna slept", "they met {carla}"])
    fill = text.other("fill.txt", ["anna saw hans at noon", "anna slept", "they met ida"])
    theirs = missing_words(text.raw.read_text().splitlines(), fill.read_text().splitlines())
    assert list(masked_words(text.sidecar)) == list(theirs)
    assert verbatim_lines(text.raw, fill).value == pytest.approx(1 / 3)
    with pytest.raises(CorpusError, match="not equally many lines") as refused:
        verbatim_lines(text.raw, text.other("short.txt", ["gina saw hans at dusk"]))
    assert not any(word in str(refused.value) for word in ("anna", "gina"))


def figures(text, fill, filling=None, masked=None, **cell):
    files = AuditFiles(members=str(text.raw), text=str(fill), masked=masked)
    return figures_of(AttackedText(AttackSettings(filling=filling), files, Cell(**cell), RESOURCES))


@pytest.mark.usefixtures("_reader")
def test_a_text_without_a_sidecar_is_read_by_the_reference_reader(tmp_path):
    """Of three direct identifiers one is left in two lines: 500 per 1,000, before what the reader gets wrong."""
    text = MaskedText.write(tmp_path / "masked" / "list", ["{anna} saw {bob} at noon", "carla slept"])
    found = figures(text, text.other("other.txt", ["Eve saw Hans at noon", "carla slept"]))
    direct, quasi = found["unmasked_direct"], found["unmasked_quasi"]
    ends = [1000 * (k.precision + 3 * k.precision * (1 - k.recall) / k.recall) / 2 for k in accuracies("direct")]
    assert direct.interval == pytest.approx((min(ends), max(ends)))
    assert (direct.places, quasi.places) == (3, 1)
    assert "precision" in direct.attacker
    less = figures(text, text.other("nothing.txt", ["somebody spoke", "somebody slept"]))
    assert 0 < less["unmasked_direct"].value < direct.value, "what the reader misses is still counted"


@pytest.mark.usefixtures("_reader")
def test_lines_that_were_rewritten_are_no_fill_of_the_masked_ones(tmp_path):
    """Whatever the sidecar says, a private word that such a line has is not hidden; nobody has the masked text."""
    text = MaskedText.write(tmp_path / "masked" / "list", ["{anna} saw {bob} at noon", "{carla} slept"])
    cell = {"technique": "list", "method": "distilled", "masked": str(tmp_path / "masked")}
    told, nothing = (
        figures(text, text.other("fill.txt", [f"At {said} was there", "somebody slept"]), DISTILLED, **cell)
        for said in ("noon Anna", "dusk Eve")
    )
    assert told["unmasked_direct"].value > nothing["unmasked_direct"].value
    assert "reidentified_1" not in told


def test_the_interval_is_over_documents():
    alone = share_figure([1, 0] * 50, [1] * 100, "nobody")
    together = share_figure([10, 0] * 5, [10] * 10, "nobody")
    assert alone.value == together.value == 0.5
    assert alone.places == together.places == 100
    low, high = together.interval
    assert low < alone.interval[0] - 0.1 < alone.interval[1] + 0.1 < high
    assert share_figure([0] * 10, [3] * 10, "nobody").interval[1] == pytest.approx(0.1135, abs=1e-3)  # Wilson, 0 of 30
    alike = share_figure([1, 2] * 5, [2, 4] * 5, "nobody").interval
    assert alike == pytest.approx((0.2366, 0.7634), abs=1e-3)  # all documents alike: Wilson, 5 of 10
    assert share_figure([], [], "nobody").value is None
