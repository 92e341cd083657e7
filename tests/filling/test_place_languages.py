"""Fills that keep the language of their place."""

import json
import sys

import numpy as np
import pytest
from stage_commands import settings
from tiny_causal_models import causal_tokenizer, random_llama, save

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan
from tasks.filling.masked_sentence import read_masked_line, with_spans
from tasks.filling.place_languages import PlaceLanguages
from tasks.languages.word_lists import word_list

MASKED = [
    "we went to the [MASK] with my [MASK] yesterday, and then we were [MASK]",
    "mi [MASK] no quería [MASK] nada esta mañana porque estaba muy [MASK]",
    "pero después I told you that [MASK] already and you did not listen",
    "([MASK]) the children were playing in the [MASK] [MASK], y nosotros nos fuimos a la [MASK] con ella",
] * 10


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "masked.txt").write_text("\n".join(MASKED) + "\n", encoding="utf-8")
    kept = [f"{word}\t{language}" for language in ("en", "es") for word in list(word_list(language))[:300]]
    (tmp_path / "kept.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    return tmp_path


def sentences(lines):
    return [read_masked_line(line, number, merge_markers=True) for number, line in enumerate(lines, start=1)]


def test_a_marker_that_names_its_language_is_believed():
    """Whatever the neighbours speak; a language that is none of the text's is not."""
    line = "we went to the [MASK:es] with my [MASK:fr] [MASK] [MASK:es] and [MASK]"
    languages = PlaceLanguages(["en", "es"], MASKED)
    (told,) = languages.with_languages([line], sentences([line]))
    assert [slot.language for slot in told.slots] == ["es", "en", "en", "es", "en"]


@pytest.mark.parametrize("method", ["unigram", "sample"])
def test_fills_have_the_language_of_their_place(corpus, method, monkeypatch):
    """By frequency, and by a causal model of random weights whose pieces are words of either language."""
    given = ["fill", "--output", corpus / "filled.txt", "--method", method, "--report", corpus / "report.json"]
    given += ["--allowed-words", corpus / "kept.txt", *settings("languages=[en, es]")]
    if method == "sample":
        words = [word for language in ("en", "es") for word in list(word_list(language))[300:400]]
        tokenizer = causal_tokenizer(" ".join(words))
        given += ["--filler", save(random_llama(tokenizer), tokenizer, corpus / "llama")]
    given = [str(part) for part in given]
    assert main([*given, "--input", str(corpus / "masked.txt")]) == 0
    measured = json.loads((corpus / "report.json").read_text())["measured"]
    assert measured["languages"]["match_rate"] > 0.95
    assert measured["off_list_share"] == 1
    if method == "sample":
        return
    from_file = (corpus / "filled.txt").read_text(encoding="utf-8")
    shares = [
        np.mean([word_list("es").get(word.lower(), 0) > word_list("en").get(word.lower(), 0) for word in words])
        for words in ([line.split()[at] for line in from_file.splitlines()[row::4]] for row, at in ((1, 1), (0, 4)))
    ]
    assert shares[1] < 0.25 < 0.75 < shares[0]
    # Learning the languages does not use up the lines of a stream.
    with (corpus / "masked.txt").open(encoding="utf-8") as text:
        monkeypatch.setattr(sys, "stdin", text)
        assert main([*given, "--input", "-"]) == 0
    assert (corpus / "filled.txt").read_text(encoding="utf-8") == from_file


def test_a_fill_is_held_against_the_line_that_was_masked():
    """By hand: 8 words with 2 switches in 3 islands were masked; the fill turns one word, the one between them."""
    languages = PlaceLanguages(["en", "es"], MASKED)
    spans = [MaskedSpan(0, 0, "MASK", "", word, 0) for word in ("casa", "blanca")]
    (told,) = languages.with_languages(
        ["the [MASK] with the children of my"], sentences(["the [MASK] with the children of my"])
    )
    filled, private = "the house with the children of my", "the casa blanca with the children of my"
    rates = languages.measured(languages.counts([with_spans(told, spans)], [filled], [private]))
    assert rates["match_rate"] == 1
    assert rates["word_match_rate"] == 0
    assert (rates["switch_rate_before"], rates["switch_rate"]) == (2 / 7, 0)
    assert (rates["mean_island_before"], rates["mean_island"]) == (8 / 3, 7)
    assert (rates["code_mixing_index_before"], rates["code_mixing_index"]) == (25, 0)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (settings("languages=[en]"), "two different codes"),
        (settings("languages=[en, es]", "classes=match"), "leave one of the two out"),
        (settings("languages=[xx, yy]"), "no list of words"),
    ],
)
def test_languages_that_cannot_be_kept_are_refused(corpus, capsys, options, complaint):
    arguments = ["--input", corpus / "masked.txt", "--output", corpus / "filled.txt", "--method", "unigram", *options]
    assert main(["fill", *map(str, arguments)]) == 1
    assert complaint in capsys.readouterr().err
