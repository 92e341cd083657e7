"""What counts as a word."""

from hypothesis import given
from hypothesis import strategies as st
from marked_text import format_masked

from tasks.corpora.masked_text import Marker, escape
from tasks.language_model.normalisation import normalise, normalise_masked


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
