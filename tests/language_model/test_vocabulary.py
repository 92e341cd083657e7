"""Words: which are words, which are in the vocabulary, and in which order."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marked_text import format_masked

from tasks.corpora.masked_text import Marker, escape
from tasks.errors import ModelError, ParameterError
from tasks.language_model.normalisation import normalise, normalise_masked
from tasks.language_model.vocabulary import (
    END_ID,
    MASK_ID,
    PADDING_ID,
    SPECIAL_TOKENS,
    START_ID,
    UNKNOWN_ID,
    build_vocabulary,
    read_vocabulary,
)

COUNTS = Counter({"the": 5, "cat": 2, "a": 2, "zebra": 1})


def test_special_tokens_come_first_and_words_follow_by_count_then_by_letter():
    vocabulary = build_vocabulary(COUNTS, size=100, minimum_count=2)
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "the", "a", "cat")
    special = [SPECIAL_TOKENS[index] for index in (PADDING_ID, UNKNOWN_ID, START_ID, END_ID, MASK_ID)]
    assert special == ["<pad>", "<unk>", "<s>", "</s>", "[MASK]"]
    first = len(SPECIAL_TOKENS)
    assert vocabulary.encode(["the", "zebra", "[MASK]", "cat"]) == [first, UNKNOWN_ID, MASK_ID, first + 2]
    # The size counts special tokens.
    assert build_vocabulary(COUNTS, size=first + 2, minimum_count=1).tokens[-2:] == ("the", "a")
    with pytest.raises(ParameterError, match="vocabulary size 16 leaves no room"):
        build_vocabulary(COUNTS, size=16, minimum_count=1)
    with pytest.raises(ParameterError, match="minimum_count 6 leaves no word: the most frequent one occurs 5 times"):
        build_vocabulary(COUNTS, size=100, minimum_count=6)


def test_a_written_vocabulary_reads_back_with_its_hash(tmp_path):
    vocabulary = build_vocabulary(COUNTS, size=100, minimum_count=1)
    vocabulary.write(tmp_path / "vocabulary.txt")
    lines = (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert lines.index("the") == vocabulary.ids["the"]
    read = read_vocabulary(tmp_path / "vocabulary.txt")
    assert (read.tokens, read.hash) == (vocabulary.tokens, vocabulary.hash)
    assert build_vocabulary(COUNTS, size=100, minimum_count=2).hash != vocabulary.hash
    (tmp_path / "text.txt").write_text("the\ncat\n", encoding="utf-8")
    with pytest.raises(ModelError, match="does not begin with the 16 special tokens"):
        read_vocabulary(tmp_path / "text.txt")


def test_words_of_a_text():
    for text, words in [
        ("Hello, World!", ["hello", "world"]),
        ("don't stop", ["don't", "stop"]),
        ("don’t ‘quote’ it", ["don't", "quote", "it"]),
        ("don´t or don`t", ["don't", "or", "don't"]),
        ("well-known state-of-the-art", ["well", "known", "state", "of", "the", "art"]),
        ("3.5 % of $1,000 in 2019", ["3", "5", "of", "1", "000", "in", "2019"]),
        ("the dogs' bowls, 'tis", ["the", "dogs", "bowls", "tis"]),
        ("rock 'n' roll", ["rock", "n", "roll"]),
        ("''quoted'' a''b", ["quoted", "a", "b"]),
        ("Ｆｕｌｌ ﬁne", ["full", "fine"]),
        ("co\u00adoperate", ["cooperate"]),
        ("snake_case", ["snake", "case"]),
        ("Café CAFÉ Cafe\u0301", ["café", "café", "café"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("❤️ ok 👍🏽", ["ok"]),
        ("a\tb\u2028c\u00a0d", ["a", "b", "c", "d"]),
        ("", []),
        ("... !? --- '", []),
        ("[MASK] and <unk>", ["mask", "and", "unk"]),
    ]:
        assert normalise(text) == words


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    words = normalise(text)
    assert normalise(" ".join(words)) == words


def test_words_and_markers_of_a_masked_line():
    for line, entries in [
        ("I met [PERSON] in [MASK].", ["i", "met", "[PERSON]", "in", "[MASK]"]),
        ("[MASK][MASK] twice", ["[MASK]", "[MASK]", "twice"]),
        ("[MASK:es] in [PERSON:en]'s house", ["[MASK]", "in", "[PERSON]", "house"]),
        ("[PERSON]'s house", ["[PERSON]", "house"]),
        ("[PERSON]’s house", ["[PERSON]", "house"]),
        ("the pre[MASK]ed one", ["the", "[MASK]", "one"]),
        ("a [MASK]-based plan", ["a", "[MASK]", "based", "plan"]),
        ("he said '[MASK] is'", ["he", "said", "[MASK]", "is"]),
        (r"a literal [\MASK] and [MASK]", ["a", "literal", "mask", "and", "[MASK]"]),
        ("[mask] is a word", ["mask", "is", "a", "word"]),
    ]:
        assert normalise_masked(line) == entries


@given(st.lists(st.text(st.characters(exclude_characters="\n")), min_size=2, max_size=5))
def test_user_text_never_becomes_a_marker(texts):
    assert not any(entry.startswith("[") for text in texts for entry in normalise_masked(escape(text)))
    pieces: list[str | Marker] = []
    for text in texts:
        pieces += [text, Marker()] if text else [Marker()]
    assert normalise_masked(format_masked(pieces)).count("[MASK]") == len(texts)
