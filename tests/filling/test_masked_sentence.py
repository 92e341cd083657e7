"""A masked line with its slots, and fills in the case and with the articles of their line."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marked_text import format_masked

from tasks.corpora.masked_text import Marker
from tasks.corpora.words import fold
from tasks.filling.agreement import agreed
from tasks.filling.filled_lines import Part, fill_part
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing, Slot, check_unchanged, read_masked_line
from tasks.filling.methods.unigram import UnigramFiller

CASED = Casing({}, filler_is_cased=True)


def test_consecutive_markers_of_a_class_become_one_slot_where_they_are_merged():
    sentence = read_masked_line("[MASK] [MASK] lives in [MASK][MASK] \t[MASK].", 3, merge_markers=True)
    assert sentence.texts == ("", " lives in ", ".")
    assert sentence.slots == (Slot("MASK", 0, 1), Slot("MASK", 2, 4))
    assert sentence.filled(["Tom", "Paris"]) == "Tom lives in Paris."
    assert read_masked_line("[MASK] [MASK] lives", 1, merge_markers=False).filled(["Tom", "Smith"]) == "Tom Smith lives"
    assert len(read_masked_line("[MASK], [MASK] and [PERSON] [DATE]", 1, merge_markers=True).slots) == 4


def test_a_changed_line_is_noticed():
    line = "[MASK] [MASK] lives in [MASK]"
    sentence = read_masked_line(line, 7, merge_markers=True)
    check_unchanged(line, "Tom lives in Paris", sentence, ["Tom", "Paris"])
    for filled, words in [("Tom lived in Paris", ["Tom", "Paris"]), ("Tom lives in Paris", ["Tom", "Rome"])]:
        with pytest.raises(RuntimeError, match="line 7"):
            check_unchanged(line, filled, sentence, words)


PARTS = ["a", "I", " ", "[", "]", "\\", "MASK", "[MASK]", "[\\MASK]", "PERSON", ".", "é", "\u200b", "\t"]
TEXTS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=8).map("".join)
MARKERS = st.sampled_from(["MASK", "PERSON", "DATE"]).map(Marker)


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
        ('"[MASK] went to [MASK]," he said', ["they", "london"], '"They went to London," he said'),
        ("We wait... [MASK] comes", ["he"], "We wait... he comes"),
        ("He met [MASK] of [MASK]", ["people", "nasa"], "He met people of NASA"),
        ("so we went to [MASK]", ["london"], "so we went to london"),
        ("so we went to [MASK] in May", ["london"], "so we went to London in May"),
        ("I LOVE [MASK]", ["cats"], "I LOVE CATS"),
        ("Maybe [MASK] and [MASK] will", ["he", "i"], "Maybe he and I will"),
        ("[MASK], [MASK]", ["yes", "no"], "Yes, no"),
    ]:
        assert written(line, words, Casing(forms, filler_is_cased=False)) == expected


@pytest.mark.parametrize("line", ["IT WAS [MASK] AGAIN", "it was [MASK]", "[MASK] it was, Tom"])
@given(word=st.sampled_from(["sınıf", "ışık", "İzmir", "straße"]) | st.text(min_size=1, max_size=5))
def test_no_case_makes_another_word(line, word):
    (cased,) = CASED.write(line.split("[MASK]"), [word])
    assert fold(cased) == fold(word)


def test_articles_agree_with_the_words_behind_them():
    for line, words, expected in [
        ("it is a [MASK]", ["apple"], "it is an apple"),
        ("That was an [MASK], a [MASK] and a [MASK]", ["hour", "dog", "MBA"], "That was an hour, a dog and an MBA"),
        ("A [MASK] in the house. An [MASK] too", ["owl", "cat"], "An owl in the house. A cat too"),
        ("IT IS A [MASK]", ["apple"], "IT IS AN APPLE"),
        ('he said "a [MASK]" to me', ["owl"], 'he said "an owl" to me'),
        ("it is [MASK] [MASK]", ["a", "apple"], "it is an apple"),
        ("it is [MASK] dog", ["an"], "it is a dog"),
        ("[MASK] dog, and you?", ["an"], "A dog, and you?"),
        # Letters, other languages, other spaces, other words.
        ("the vitamin A [MASK] is in it", ["owl"], "the vitamin A owl is in it"),
        ("vamos a [MASK] con el perro", ["uno"], "vamos a uno con el perro"),
        ("Sie ist an [MASK]", ["Bord"], "Sie ist an Bord"),
        ("it is a cat, an [MASK]? a owl", ["apple"], "it is a cat, an apple? a owl"),
    ]:
        assert written(line, words, CASED) == expected
