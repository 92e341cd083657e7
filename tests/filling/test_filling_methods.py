"""What each method takes by the scores of words, and what it writes at the slots of a line, in its case."""

import math
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marked_text import format_masked

from tasks.corpora.masked_text import Marker
from tasks.corpora.words import fold
from tasks.errors import ModelError, ParameterError
from tasks.filling.agreement import agreed
from tasks.filling.fill_words import wanted
from tasks.filling.filled_lines import Part, fill_part
from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_lm.candidate_words import is_word
from tasks.filling.masked_sentence import Casing, read_masked_line
from tasks.filling.methods.sample import Sample
from tasks.filling.methods.top_1 import Top1
from tasks.filling.methods.top_k import TopK
from tasks.filling.unigram_filler import UnigramFiller

DRAWS = 1500
FOUR_SIGMA = 4.0
"""A right sampler misses this tolerance once in 16,000 comparisons; seeds are fixed."""


def chosen(settings, off_list, *rows):
    """What a method takes at places with these scores, and whether all of it, or nothing, is a fallback."""
    off_list, randomness = np.array(off_list), MarkerRandomness(3)
    settings.check_words(off_list)
    found = [
        settings.choose(scores, off_list, randomness.at(Place(line, 0)))
        for line, scores in enumerate(np.float32(rows), 1)
    ]
    (fallback,) = {fallback for _, fallback in found}
    return [index for index, _ in found], fallback


def assert_shares(counts, expected):
    total = sum(counts.values())
    assert set(counts) <= {word for word, share in expected.items() if share}
    for word, share in expected.items():
        sigma = math.sqrt(share * (1 - share) / total)
        assert abs(counts[word] / total - share) <= FOUR_SIGMA * sigma, word


def test_top_k_draws_the_k_best_equally_often_again_until_one_is_off_the_list():
    for off_list, expected, fallback in (
        ([True] * 5, {0: 1 / 3, 2: 1 / 3, 3: 1 / 3, 1: 0, 4: 0}, False),
        ([False, True, True, False, False], {2: 1, 1: 0}, False),
        # Where all are on the list the first one drawn stays.
        ([False, True, False, False, True], {0: 1 / 3, 2: 1 / 3, 3: 1 / 3}, True),
    ):
        found, is_fallback = chosen(TopK(kind="top_k", k=3), off_list, *[[9, 1, 8, 7, 0]] * DRAWS)
        assert_shares(Counter(found), expected)
        assert is_fallback == fallback


def test_top_1_takes_the_best_and_what_is_forbidden_is_not_taken():
    assert chosen(Top1(kind="top_1"), [False] * 3, [0, 2, 1], [3, 1, 3]) == ([1, 0], False)
    none = -math.inf
    assert chosen(TopK(kind="top_k", k=3), [True] * 4, [9, none, none, none]) == ([0], False)
    assert chosen(Sample(kind="sample"), [True, True, False], [1, none, 2]) == ([0], False)
    # Where nothing off the list is left, another word is a fallback.
    assert chosen(Sample(kind="sample"), [True, True, False], [none, none, 2]) == ([2], True)


def test_sample_follows_the_distribution_off_the_list():
    probabilities, off_list = np.array([0.4, 0.3, 0.2, 0.1]), np.array([False, True, True, True])
    for temperature in [1.0, 2.0, 0.5]:
        settings = Sample(kind="sample", temperature=temperature)
        found, is_fallback = chosen(settings, off_list, *[np.log(probabilities)] * DRAWS)
        weights = np.where(off_list, probabilities ** (1 / temperature), 0)
        assert_shares(Counter(found), dict(enumerate((weights / weights.sum()).tolist())))
        assert not is_fallback


def test_too_few_words_are_an_error():
    with pytest.raises(ParameterError, match="k=6 is more than the 5 words"):
        chosen(TopK(kind="top_k", k=6), [True] * 5, [1, 2, 3, 4, 5])
    with pytest.raises(ModelError, match="on the list of never-masked words"):
        chosen(Sample(kind="sample"), [False] * 3, [1, 2, 3])


def drawn(frequencies, line, draws):
    """The words that a draw by frequency writes at each marker of a line."""
    filler = UnigramFiller({None: frequencies}, MarkerRandomness(5))
    sentences = [read_masked_line(line, number, merge_markers=True) for number in range(1, draws + 1)]
    return map(Counter, zip(*([fill.word for fill in fills] for fills in filler.fill(sentences, int)), strict=True))


def test_unigram_draws_by_frequency_off_the_list():
    frequencies = WordFrequencies.of([("the", 1000), ("Paris", 60), ("paris", 20), ("x", 50), (",", 9), ("mat", 20)])
    kept = AllowedWords(["the"])
    (words,) = drawn(frequencies.shared(kept.off_list(frequencies.words)), "[MASK]", DRAWS)
    assert_shares(words, {"Paris": 0.6, "paris": 0.2, "mat": 0.2})
    assert frequencies.off_list_probabilities(kept) == pytest.approx({"paris": 0.8, "mat": 0.2})


def test_what_is_a_word_and_what_is_none():
    words = ["Chicago", "1996", "a", "I", "7", "café", "o'clock", "5pm", "हिन्दी"]
    others = [*", ... b é ﬁ didn Didn ll ve Tom's and/or th ² 000 b\u0324 shit Fucking".split(), "two words", ""]
    assert [text for text in [*words, *others] if is_word(text)] == words


def test_a_draw_by_frequency_writes_a_word_or_a_figure_as_the_text_wants_it():
    for line, want in [
        ("up by [MASK]%", "figure"),
        ("at [MASK]:30", "figure"),
        ("at 5:[MASK]", "figure"),
        ("at [MASK] pm", "figure"),
        ("he [MASK] pmi", "word"),
        ("it is 5 [MASK]", "word"),
    ]:
        assert wanted(read_masked_line(line, 1, merge_markers=True), 0) == want
    counts = {"dog": 50, "1996": 90, "51,739": 90, "5pm": 90, "shit": 99, "武家": 99}
    frequencies = WordFrequencies.of([*counts.items(), *((f"{number}pm", 1) for number in range(10, 20))])
    word, figure, either = drawn(frequencies, "the [MASK] for $[MASK] in [DATE]", 99)
    assert word.keys() == {"dog"}
    assert figure.keys() == {"1996", "51,739"}
    assert either.keys() >= {"dog", "1996", "51,739", "5pm"}
    assert not either.keys() & {"shit", "武家"}


# A masked line with its slots, and fills in the case and with the articles of their line ---------------------------

CASED = Casing({}, filler_is_cased=True)


PARTS = ["a", "I", " ", "[", "]", "\\", "MASK", "[MASK]", "[\\MASK]", "PERSON", ".", "é", "\u200b", "\t"]
TEXTS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=8).map("".join)
MARKERS = st.sampled_from(["MASK", "PERSON", "DATE"]).map(Marker)


@settings(deadline=None)
@given(st.lists(st.one_of(TEXTS, MARKERS), max_size=12), st.booleans())
def test_filling_changes_no_unmasked_character_but_those_of_articles(pieces, merge):
    frequencies = WordFrequencies.of([("paris", 3), ("London", 2), ("seven", 1)])
    filler = UnigramFiller({None: frequencies}, MarkerRandomness(1))
    (filled,) = fill_part(Part(1, [format_masked(pieces)], None), filler, CASED, merge_markers=merge).lines
    pattern = "".join(f"<{piece.label}>" if isinstance(piece, Marker) else re.escape(piece) for piece in pieces)
    if merge:
        # A run of markers of one class with white space between them has one fill.
        pattern = re.sub(r"(<\w+>)(?:(?:\\\s|\s)*\1)+", r"\1", pattern)
    pattern = re.sub(r"([aA])(\\ <)", r"\1[nN]?\2", pattern)
    assert re.fullmatch(re.sub(r"<\w+>", "(?i:paris|london|seven)", pattern), filled)


def written(line, words, casing):
    sentence = read_masked_line(line, 1, merge_markers=False)
    texts, words = agreed(sentence, casing.write(sentence.texts, words))
    return replace(sentence, texts=tuple(texts)).filled(words)


def test_fills_of_a_lower_case_filler_follow_their_line():
    forms = {"london": "London", "nasa": "NASA", "i": "I"}
    for line, words, expected in [
        ("[MASK] is nice. [MASK] too! (see [MASK])", ["it", "he", "them"], "It is nice. He too! (see them)"),
        ("We wait... [MASK] comes", ["he"], "We wait... he comes"),
        ("so we went to [MASK]", ["london"], "so we went to london"),
        ("so we went to [MASK] in May", ["london"], "so we went to London in May"),
        ("I LOVE [MASK]", ["cats"], "I LOVE CATS"),
        ("Maybe [MASK] and [MASK] will", ["he", "i"], "Maybe he and I will"),
    ]:
        assert written(line, words, Casing(forms, filler_is_cased=False)) == expected


@pytest.mark.parametrize("line", ["IT WAS [MASK] AGAIN", "it was [MASK]", "[MASK] it was, Tom"])
def test_no_case_makes_another_word(line):
    for word in ["sınıf", "ışık", "İzmir", "straße", "ﬁn", "ǅ", "Ⅷ", "ὕστερος", "x\u0301", "1st"]:
        assert [fold(cased) for cased in CASED.write(line.split("[MASK]"), [word])] == [fold(word)]


def test_articles_agree_with_the_words_behind_them():
    for line, words, expected in [
        ("it is a [MASK]", ["apple"], "it is an apple"),
        ("That was an [MASK], a [MASK] and a [MASK]", ["hour", "dog", "MBA"], "That was an hour, a dog and an MBA"),
        ("IT IS A [MASK]", ["apple"], "IT IS AN APPLE"),
        ("it is [MASK] [MASK]", ["a", "apple"], "it is an apple"),
        ("[MASK] dog, and you?", ["an"], "A dog, and you?"),
        # Letters, other languages, other spaces, other words.
        ("the vitamin A [MASK] is in it", ["owl"], "the vitamin A owl is in it"),
        ("vamos a [MASK] con el perro", ["uno"], "vamos a uno con el perro"),
        ("it is a cat, an [MASK]? a owl", ["apple"], "it is a cat, an apple? a owl"),
    ]:
        assert written(line, words, CASED) == expected
