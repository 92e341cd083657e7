"""Fills that keep the language of their place."""

import json
import sys

import numpy as np
import pytest
from scripted_model import ScriptedModel
from stage_commands import settings
from tiny_causal_models import causal_tokenizer, llama_of_last_piece, random_llama, save

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan
from tasks.filling.causal_lm.constrained import ConstrainedFiller
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.masked_sentence import MaskedSentence, Slot, read_masked_line, with_spans
from tasks.filling.methods.top_1 import Top1, best_word
from tasks.filling.methods.unigram import UnigramFiller
from tasks.filling.place_languages import PlaceLanguages
from tasks.languages.word_lists import word_list

MASKED = [
    "we went to the [MASK] with my [MASK] yesterday, and then we were [MASK]",
    "mi [MASK] no quería [MASK] nada esta mañana porque estaba muy [MASK]",
    "pero después I told you that [MASK] already and you did not listen",
    "([MASK]) the children were playing in the [MASK] [MASK], y nosotros nos fuimos a la [MASK] con ella",
] * 25
SPOKEN = [["en"] * 3, ["es"] * 3, ["en"], ["en", "en", "es"]] * 25


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "masked.txt").write_text("\n".join(MASKED) + "\n", encoding="utf-8")
    kept = [f"{word}\t{language}" for language in ("en", "es") for word in list(word_list(language))[:300]]
    (tmp_path / "kept.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    return tmp_path


def sentences(lines):
    return [read_masked_line(line, number, merge_markers=True) for number, line in enumerate(lines, start=1)]


def test_neighbours_tell_the_language_of_a_marker():
    languages = PlaceLanguages(["en", "es"], MASKED)
    told = languages.told(MASKED, sentences(MASKED))
    assert [[slot.language for slot in sentence.slots] for sentence in told] == SPOKEN


def test_a_marker_that_names_its_language_is_believed():
    """Whatever the neighbours speak; a language that is none of the text's is not."""
    line = "we went to the [MASK:es] with my [MASK:fr] [MASK] [MASK:es] and [MASK]"
    languages = PlaceLanguages(["en", "es"], MASKED)
    (told,) = languages.told([line], sentences([line]))
    assert [slot.language for slot in told.slots] == ["es", "en", "en", "es", "en"]


@pytest.mark.parametrize("languages", [None, ["en", "es"]])
def test_fills_have_the_language_of_their_place(corpus, languages):
    """Without the setting nearly all fills are English, and switches appear where nobody made any."""
    status = main(
        [
            "fill", "--input", str(corpus / "masked.txt"), "--output", str(corpus / "filled.txt"), "--method",
            "unigram", "--allowed-words", str(corpus / "kept.txt"), "--report", str(corpus / "report.json"),
            *(settings(f"languages={json.dumps(languages)}") if languages else ()),
        ]
    )  # fmt: skip
    assert status == 0
    measured = json.loads((corpus / "report.json").read_text())["measured"]
    filled = (corpus / "filled.txt").read_text(encoding="utf-8").splitlines()
    spanish = [line.split()[1] for line in filled[1::4]]
    english = [line.split()[4] for line in filled[0::4]]
    share = [
        np.mean([word_list("es").get(word.lower(), 0) > word_list("en").get(word.lower(), 0) for word in words])
        for words in (spanish, english)
    ]
    assert share[1] < 0.2
    if languages is None:
        assert share[0] < 0.3
        assert measured["languages"] is None
    else:
        assert share[0] > 0.8
        assert measured["languages"]["match_rate"] > 0.95
        assert measured["off_list_share"] == 1


def test_a_fill_is_held_against_the_line_that_was_masked():
    """By hand: 8 words with 2 switches in 3 islands were masked; the fill turns one word, the one between them."""
    languages = PlaceLanguages(["en", "es"], MASKED)
    spans = [MaskedSpan(0, 0, "MASK", "", word, 0) for word in ("casa", "blanca")]
    (told,) = languages.told(["the [MASK] with the children of my"], sentences(["the [MASK] with the children of my"]))
    filled, private = "the house with the children of my", "the casa blanca with the children of my"
    rates = languages.measured(languages.counts([with_spans(told, spans)], [filled], [private]))
    assert rates["match_rate"] == 1
    assert rates["word_match_rate"] == 0
    assert (rates["switch_rate_before"], rates["switch_rate"]) == (2 / 7, 0)
    assert (rates["mean_island_before"], rates["mean_island"]) == (8 / 3, 7)
    assert (rates["code_mixing_index_before"], rates["code_mixing_index"]) == (25, 0)


def test_text_from_standard_input_is_filled_whole(corpus, monkeypatch):
    """Learning the languages must not use up the lines that are to be filled."""
    command = ["fill", "--output", str(corpus / "filled.txt"), "--method", "unigram", *settings("languages=[en, es]")]
    assert main([*command, "--input", str(corpus / "masked.txt")]) == 0
    from_file = (corpus / "filled.txt").read_bytes()
    with (corpus / "masked.txt").open(encoding="utf-8") as text:
        monkeypatch.setattr(sys, "stdin", text)
        assert main([*command, "--input", "-"]) == 0
    assert (corpus / "filled.txt").read_bytes() == from_file


def test_a_word_is_off_the_list_of_its_own_language(corpus):
    kept = AllowedWords.read(corpus / "kept.txt")
    assert kept.holds("the", "en")
    assert not kept.holds("the", "es")
    assert kept.holds("nada", "es")


def test_a_masked_language_model_chooses_among_words_of_the_language():
    model = ScriptedModel(["mi", "house", "casa"], lambda words, at: {"house": 0.6, "casa": 0.3, "mi": 0.1})
    filler = MaskedFiller(
        model,
        model.candidates(),
        {"en": best_word, "es": best_word},
        MarkerRandomness(1),
        shares={"en": np.array([0.3, 1.0, 0.0]), "es": np.array([0.7, 0.0, 1.0])},
        batch_sentences=8,
    )
    spoken = MaskedSentence(1, ("mi ", " casa ", ""), (Slot("MASK", 0, 0, "es"), Slot("MASK", 1, 1, "en")))
    (fills,) = filler.fill([spoken], lambda _: None)
    assert [fill.word for fill in fills] == ["casa", "house"]


def test_a_causal_language_model_chooses_among_words_of_the_language():
    """Its best word is ``cat``; what no five pieces make is drawn by frequency."""
    tokenizer = causal_tokenizer()
    model = llama_of_last_piece(tokenizer, {"he": {"Ġcat": 3.0, "Ġdog": 2.0}})
    filler = ConstrainedFiller(
        CausalLanguageModel(model, tokenizer, "tiny"), Top1(kind="top_1"), AllowedWords(), MarkerRandomness(1),
        spoken={"en": {"cat"}, "es": {"dog"}, "tr": {"havaalanında"}},
        beyond=UnigramFiller({"tr": WordFrequencies.of([("havaalanında", 1)])}, MarkerRandomness(1)),
    )  # fmt: skip
    slots = tuple(Slot("MASK", at, at, language) for at, language in enumerate((None, "en", "es", "tr", "es")))
    (fills,) = filler.fill([MaskedSentence(1, ("the ", *[" the "] * 4, ""), slots)], lambda _: None)
    assert [fill.word for fill in fills] == ["cat", "cat", "dog", "havaalanında", "dog"]
    assert not any(fill.fallback for fill in fills)
    assert filler.counts["beyond_vocabulary"] == 1


def test_fills_of_a_causal_language_model_have_the_language_of_their_place(corpus):
    """Random weights, and pieces that are words of either language."""
    (corpus / "masked.txt").write_text("\n".join(MASKED[:20]) + "\n", encoding="utf-8")
    words = [word for language in ("en", "es") for word in list(word_list(language))[300:400]]
    tokenizer = causal_tokenizer(" ".join(words))
    status = main(
        [
            "fill", "--input", str(corpus / "masked.txt"), "--output", str(corpus / "filled.txt"), "--method", "sample",
            "--filler", save(random_llama(tokenizer), tokenizer, corpus / "llama"), "--allowed-words",
            str(corpus / "kept.txt"), "--report", str(corpus / "report.json"), *settings("languages=[en, es]"),
        ]
    )  # fmt: skip
    assert status == 0
    measured = json.loads((corpus / "report.json").read_text())["measured"]
    assert measured["languages"]["match_rate"] > 0.95
    assert measured["off_list_share"] == 1
    # As behind a bracket, where no piece of this vocabulary is a word.
    assert 0 < measured["beyond_vocabulary"] < measured["fills"] / 2


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
