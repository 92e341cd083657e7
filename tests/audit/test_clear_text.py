"""What stands in clear: shares that can be counted by hand."""

import pytest
from marked_text import MaskedText, Names

from tasks.audit.attacked import AttackSettings, AuditFiles
from tasks.audit.clear_text import (
    clear_share,
    clear_text,
    hidden_words,
    masked_words,
    missing_words,
    other_tagger,
    residual_entities,
    verbatim_lines,
)
from tasks.audit.figure import share_figure
from tasks.audit.text_attacks import text_figures
from tasks.errors import CorpusError
from tasks.filling.methods.paraphrase import Paraphrase
from tasks.masking.combination import AllowList, Combination, EntityTagger
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings

LINES = ["{anna} saw {bob} at {noon}", "they met {carla} and {dora}", "{emil} slept"]
TAGGER = Names("anna", "bob", "carla", "dora", "emil", DATE="noon")


def values(figures):
    return {name: figure.value for name, figure in figures.items()}


def test_both_ends(tmp_path):
    """What masks every private word leaves nothing in clear; Oracle's text leaves all of it."""
    text = MaskedText.write(tmp_path, LINES)
    fill = text.other("fill.txt", ["gina saw hans at dusk", "they met ida and jan", "kurt slept"] * 2)
    sidecars = {"list": text.sidecar}
    masked = clear_text(text.raw, fill, sidecars, "list", TAGGER, copies=2)
    nothing = {"clear_share": 0, "verbatim_lines": 0, "residual_entities": 0, "document_recall": 1}
    nothing |= dict.fromkeys(("residual_direct", "residual_quasi", "residual_person", "residual_date"), 0)
    assert values(masked) == nothing
    assert values(clear_text(text.raw, text.raw, sidecars, None, TAGGER)) == {
        name: 1 - nothing[name] for name in nothing
    }
    assert masked["clear_share"].interval is None
    assert masked["residual_entities"].interval[1] > 0.3, "six words of six say little of others"


def test_private_is_what_any_technique_masks(tmp_path):
    one = MaskedText.write(tmp_path / "one", ["{anna} saw {bob} at noon", "{anna} slept"])
    two = MaskedText.write(tmp_path / "two", ["anna saw {bob} at {noon}", "anna slept"])
    called = [list(masked_words(text.sidecar)) for text in (one, two)]
    # Of anna, bob, noon and anna the first leaves noon, the second both of anna.
    for hidden, clear in ((called[0], 1), (called[1], 2)):
        figure = clear_share(called, hidden)
        assert (figure.value, figure.places) == (clear / 4, 4)


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
    ours, theirs = (list(hidden_words(text.raw, fill, sidecar)) for sidecar in (text.sidecar, None))
    assert ours == theirs
    assert verbatim_lines(text.raw, fill).value == pytest.approx(1 / 3)


def test_a_document_is_masked_where_all_its_words_are(tmp_path):
    text = MaskedText.write(
        tmp_path, ["{anna} saw {bob}", "{anna} slept", "{anna} saw bob", "{anna} slept", "they met"]
    )
    documents = text.other("documents.txt", ["a", "a", "b", "b", "c"])
    hidden = list(masked_words(text.sidecar))
    figures = residual_entities(text.raw, hidden, TAGGER, documents)
    assert (figures["residual_entities"].value, figures["document_recall"].value) == (1 / 6, 1 / 2)
    assert figures["document_recall"].places == 2, "nothing is to be masked in the third"
    lines = residual_entities(text.raw, hidden, TAGGER)
    assert (lines["residual_entities"].value, lines["document_recall"].value) == (1 / 6, 3 / 4)


def test_an_entity_is_masked_where_every_mention_is(tmp_path):
    lines = {
        "{anna} {smith} met {anna} in {rome} on {monday}": "a",
        "anna smith left {rome}": "a",
        "{bob} was in {rome} from monday to {monday}": "b",
        "{bob} saw anna {smith}": "c",
    }
    text = MaskedText.write(tmp_path, list(lines))
    tagger = Names("anna", "smith", "bob", LOCATION="rome", DATE="monday")
    hidden = list(masked_words(text.sidecar))
    figures = residual_entities(text.raw, hidden, tagger, text.other("documents.txt", list(lines.values())))
    shares = {name: (figure.value, figure.places) for name, figure in figures.items()}
    # Of a Anna Smith and Anna, of b Bob, of c Bob and Anna Smith; the latter has a mention, or a part of one, in clear.
    assert shares["residual_direct"] == shares["residual_person"] == (2 / 5, 5)
    assert shares["residual_quasi"] == (1 / 4, 4)
    assert (shares["residual_location"], shares["residual_date"]) == ((0, 2), (1 / 2, 2))
    assert figures["residual_direct"].interval is not None


def test_documents_are_drawn_whole(tmp_path):
    text = MaskedText.write(tmp_path, ["{anna} saw bob"] * 40)
    documents = text.other("documents.txt", [str(number // 4) for number in range(40)])
    hidden = list(masked_words(text.sidecar))
    figures = residual_entities(text.raw, hidden, TAGGER, documents, most_lines=10)
    assert (figures["residual_entities"].places, figures["document_recall"].places) == (24, 3)
    assert residual_entities(text.raw, hidden, Names("zoe"))["document_recall"].value is None


def test_lines_that_were_written_anew_are_no_fill_of_the_masked_ones(tmp_path):
    """Whatever the sidecar says, a private word that such a line has stands in clear; nobody has the masked text."""
    text = MaskedText.write(tmp_path / "masked" / "list", ["{anna} saw {bob} at noon", "{carla} slept"])
    anew = text.other("anew.txt", ["At noon Anna was there", "somebody slept"])
    files = AuditFiles(members=str(text.raw), text=str(anew), masked=str(tmp_path / "masked"))
    settings = AttackSettings(filling=Paraphrase(kind="paraphrase"))
    cell, resources = Cell(technique="list", method="paraphrase"), ResourceSettings(threads=1, parallel_stages=1)
    figures = text_figures(settings, files, cell, resources, [])
    assert (figures["clear_share"].value, figures["clear_share"].places) == (pytest.approx(1 / 3), 3)
    assert "reidentified_1" not in figures


def test_the_tagger_is_not_the_one_that_masked():
    crf, spacy, presidio, best = (
        EntityTagger.model_validate({"kind": "entity_tagger", "tagger": {"kind": kind}})
        for kind in ("crf", "spacy", "presidio", "word_classifier")
    )
    words = AllowList(kind="allow_list")
    parts = [part.model_dump(exclude={"markers"}) for part in (spacy, presidio)]
    both = Combination.model_validate({"kind": "combination", "rule": "union", "parts": parts})
    for techniques, own, kind in (
        ({"words": words, "spacy": spacy}, "words", "spacy"),
        ({"words": words, "spacy": spacy}, None, "spacy"),
        ({"words": words, "spacy": spacy}, "spacy", "crf"),
        ({"crf": crf}, "crf", "spacy"),
        ({"crf": crf, "best": best}, None, "word_classifier"),
        ({"crf": crf, "best": best}, "best", "crf"),
        ({"both": both, "spacy": spacy}, "both", "crf"),
        ({"both": both, "spacy": spacy}, "spacy", "presidio"),
        ({"words": words}, "words", "crf"),
    ):
        assert other_tagger(techniques, own).tagger.kind == kind, (own, kind)


def test_texts_of_other_lengths_are_refused_without_a_word_of_them(tmp_path):
    text = MaskedText.write(tmp_path, LINES)
    short = text.other("short.txt", ["gina saw hans at dusk"])
    for own in ("list", None):
        with pytest.raises(CorpusError) as refused:
            clear_text(text.raw, short, {"list": text.sidecar}, own, TAGGER)
        assert "not equally many lines" in str(refused.value)
        assert not any(word in str(refused.value) for word in ("anna", "gina"))


def test_the_interval_is_over_documents():
    alone = share_figure([1, 0] * 50, [1] * 100, "nobody")
    together = share_figure([10, 0] * 5, [10] * 10, "nobody")
    assert alone.value == together.value == 0.5
    assert alone.places == together.places == 100
    low, high = together.interval
    assert low < alone.interval[0] - 0.1 < alone.interval[1] + 0.1 < high
    assert share_figure([0] * 10, [3] * 10, "nobody").interval[1] == pytest.approx(0.1135, abs=1e-3)  # Wilson, 0 of 30
    assert share_figure([], [], "nobody").value is None
