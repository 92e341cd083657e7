"""Fills that keep the language of their place."""

import sys

import numpy as np
import pytest
from fill_command import fill, write
from masked_sentences import masked
from tiny_causal_models import causal_tokenizer, random_llama, save

from tasks.corpora.sources import published_frequencies
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.place_languages import PlaceLanguages
from tasks.languages.word_lists import word_list

MASKED = [
    "we went to the [MASK] with my [MASK] yesterday, and then we were [MASK]",
    "mi [MASK] no quería [MASK] nada esta mañana porque estaba muy [MASK]",
    "pero después I told you that [MASK] already and you did not listen",
    "([MASK]) the children were playing in the [MASK] [MASK], y nosotros nos fuimos a la [MASK] con ella",
] * 10
FREQUENT = {language: list(word_list(language)) for language in ("en", "es")}


@pytest.fixture(scope="module")
def languages():
    return PlaceLanguages(["en", "es"], MASKED)


def test_a_marker_that_names_its_language_is_believed(languages):
    """Whatever the neighbours speak; a language that is none of the text's is not."""
    line = "we went to the [MASK:es] with my [MASK:fr] [MASK] [MASK:es] and [MASK]"
    (sentence,) = languages.with_kinds([line], [read_masked_line(line, 1, merge_markers=True)])
    assert [slot.kind for slot in sentence.slots] == ["es", "en", "en", "es", "en"]


@pytest.mark.parametrize("method", ["unigram", "sample"])
def test_fills_have_the_language_of_their_place(folder, method, monkeypatch):
    """By frequency, and by a causal model of random weights whose pieces are words of either language."""
    write("text.txt", MASKED)
    write("kept.txt", (f"{word}\t{language}" for language, words in FREQUENT.items() for word in words[:300]))
    monkeypatch.setattr(published_frequencies, "_MOST_WORDS", 3000)
    fewer = published_frequencies.published_counts.__wrapped__  # not the one that remembers
    monkeypatch.setattr(published_frequencies, "published_counts", fewer)
    given = {"allowed_words": "kept.txt"}
    if method == "sample":
        tokenizer = causal_tokenizer(" ".join(word for words in FREQUENT.values() for word in words[300:400]))
        given["filler"] = save(random_llama(tokenizer), tokenizer, folder / "llama")
    lines, measured = fill(method, "languages=[en, es]", **given)
    assert measured["languages"]["match_rate"] > 0.95
    assert measured["off_list_share"] == 1
    if method == "sample":
        return
    spanish, english = (
        np.mean([word_list("es").get(word.lower(), 0) > word_list("en").get(word.lower(), 0) for word in words])
        for words in ([line.split()[at] for line in lines[row::4]] for row, at in ((1, 1), (0, 4)))
    )
    assert english < 0.25 < 0.75 < spanish
    # Learning the languages does not use up the lines of a stream.
    with open("text.txt", encoding="utf-8") as text:
        monkeypatch.setattr(sys, "stdin", text)
        assert fill(method, "languages=[en, es]", input="-", **given)[0] == lines
    assert not (folder / ".palimpsest").exists()


def test_a_fill_is_held_against_the_line_that_was_masked(languages):
    """By hand: 8 words with 2 switches in 3 islands were masked; the fill turns one word, the one between them."""
    line = "the [MASK] with the children of my"
    (sentence,) = languages.with_kinds([line], [masked("the {casa blanca} with the children of my", style="mask")])
    filled, private = "the house with the children of my", "the casa blanca with the children of my"
    rates = languages.measured(languages.counts([sentence], [filled], [private]))
    assert rates["match_rate"] == 1
    assert rates["word_match_rate"] == 0
    assert (rates["switch_rate_before"], rates["switch_rate"]) == (2 / 7, 0)
    assert (rates["mean_island_before"], rates["mean_island"]) == (8 / 3, 7)
    assert (rates["code_mixing_index_before"], rates["code_mixing_index"]) == (25, 0)
