"""Words: which are words, which are in the vocabulary, a text as ids, and where its words are in the raw line."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marked_text import format_masked

from tasks.corpora.masked_text import Marker, escape
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.corpora.words import word_spans
from tasks.errors import CorpusError, ModelError
from tasks.language_model.evaluation.reference_text import placed_words, read_reference_text, reference_text_of
from tasks.language_model.normalisation import normalise, normalise_masked
from tasks.language_model.vocabulary import (
    END_ID,
    MASK_ID,
    SPECIAL_TOKENS,
    START_ID,
    UNKNOWN_ID,
    read_vocabulary,
)

A, B = len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 1
COUNTS = Counter({"the": 5, "cat": 2, "a": 2, "zebra": 1})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("don’t ‘quote’ it", ["don't", "quote", "it"]),
        ("well-known 3.5 % of $1,000", ["well", "known", "3", "5", "of", "1", "000"]),
        ("the dogs' bowls, 'tis ''quoted'' a''b", ["the", "dogs", "bowls", "tis", "quoted", "a", "b"]),
        ("Ｆｕｌｌ ﬁne co\u00adoperate snake_case", ["full", "fine", "cooperate", "snake", "case"]),
        ("Café CAFÉ Cafe\u0301", ["café", "café", "café"]),
        ("❤️ नमस्ते 👍🏽\tb\u2028c\u00a0d", ["नमस्ते", "b", "c", "d"]),
        ("... !? --- '", []),
        ("[MASK] and <unk>", ["mask", "and", "unk"]),
    ],
)
def test_words_of_a_text(text, words):
    assert normalise(text) == words


@pytest.mark.parametrize(
    ("line", "entries"),
    [
        ("[MASK][MASK] twice", ["[MASK]", "[MASK]", "twice"]),
        ("[MASK:es] in [PERSON:en]'s house", ["[MASK]", "in", "[PERSON]", "house"]),
        ("the pre[MASK]ed [MASK]-based plan", ["the", "[MASK]", "[MASK]", "based", "plan"]),
        (r"a literal [\MASK] and [MASK]", ["a", "literal", "mask", "and", "[MASK]"]),
        ("[mask] is a word", ["mask", "is", "a", "word"]),
    ],
)
def test_words_and_markers_of_a_masked_line(line, entries):
    assert normalise_masked(line) == entries


@settings(deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\n")), min_size=2, max_size=5))
def test_user_text_never_becomes_a_marker(texts):
    assert not any(entry.startswith("[") for text in texts for entry in normalise_masked(escape(text)))
    pieces = [piece for text in texts for piece in ([text, Marker()] if text else [Marker()])]
    assert normalise_masked(format_masked(pieces)).count("[MASK]") == len(texts)


def test_a_text_is_no_vocabulary(tmp_path):
    (tmp_path / "text.txt").write_text("the\ncat\n", encoding="utf-8")
    with pytest.raises(ModelError, match="does not begin with the 16 special tokens"):
        read_vocabulary(tmp_path / "text.txt")


def test_a_marker_is_a_target_for_baseline0_and_context_for_baseline1(encoded):
    lines = [r"a [MASK] [\MASK]"]
    token, ignore = encoded(lines, "token"), encoded(lines, "ignore")
    assert token.tokens.tolist() == ignore.tokens.tolist() == [START_ID, A, MASK_ID, UNKNOWN_ID, END_ID]
    assert token.is_target().tolist() == [False, True, True, True, True]
    assert ignore.is_target().tolist() == [False, True, False, True, True]
    assert token.markers == ignore.markers == 1


@pytest.mark.parametrize(
    ("markers", "sentences", "counts", "said"),
    [
        ("remove", [[A, UNKNOWN_ID], [B], [B]], (2, 1, 4, 0), "0 dropped, 2 without"),
        ("drop", [[B]], (1, 0, 0, 3), "1 dropped, 1 without"),
    ],
)
def test_markers_are_removed_or_their_lines_dropped_and_counted(encoded, markers, sentences, counts, said):
    text = encoded([r"a [MASK] [\MASK]", "b", "[PERSON]'s", "", "b [DATE] [DATE]"], markers)
    assert text.tokens.tolist() == [token for each in sentences for token in (START_ID, *each, END_ID)]
    assert text.is_target().tolist() == (text.tokens != START_ID).tolist()
    names = ("empty_lines", "unknown_words", "removed_markers", "dropped_lines")
    own = {"sentences": len(sentences), "words": sum(map(len, sentences)), "markers": 0}
    assert text.counts() == own | dict(zip(names, counts, strict=True))
    with pytest.raises(CorpusError, match=f"--markers {markers} leaves no word of 2 lines .{said} a word.; take"):
        encoded(["[MASK] [DATE]", "!"], markers)


HARD = "aB Σς'’\u0301\u0308\u200d\u00ad-.5½ﬁİ東\u1100\u1161\u00b4 \u0345\u0f73"


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from(HARD), max_size=14))
def test_words_with_places_are_those_of_the_normalisation_for_any_text(line):
    assert [word.word for word in placed_words(line)] == normalise(line)


@pytest.mark.parametrize(
    ("line", "masked", "words"),
    [
        # The ending goes with the name, as it goes with the marker in masked text.
        ("Tom's dog saw Tom", ["Tom", "Tom"], ["tom's", "tom"]),
        ("a Chicago-based firm", ["Chicago"], ["chicago"]),
        ("$3,000.50 or so", ["3,000.50"], ["3", "000", "50"]),
        ("mail tom@example.org!", ["tom@example.org"], ["tom", "example", "org"]),
        ("“Ünïted” ﬁne", ["ﬁne"], ["fine"]),
    ],
)
def test_masked_words_by_hand(tmp_path, line, masked, words):
    """The normalised words of a line that count as masked where masking takes the given words of it."""
    text, sidecar = tmp_path / "text.txt", tmp_path / "list.jsonl"
    text.write_text(line + "\n", encoding="utf-8")
    spans = [(start, end) for start, end in word_spans(line) if line[start:end] in masked]
    assert len(spans) == len(masked)
    write_sidecar(sidecar, [[MaskedSpan(s, e, "MASK", "test", line[s:e], i) for i, (s, e) in enumerate(spans)]])
    read = read_reference_text(text, {"list": sidecar})
    assert [word for word, is_masked in zip(read.words, read.masked["list"], strict=True) if is_masked] == words


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[]], "it ends before the text's line 2"),
        ([[], [], []], "it goes on after the text's 2 lines"),
        ([[MaskedSpan(0, 3, "MASK", "test", "Bob", 0)], []], "line 1 does not hold the words masked"),
    ],
)
def test_a_sidecar_of_another_text_is_refused_without_a_word_of_either(tmp_path, spans, message):
    write_sidecar(tmp_path / "list.jsonl", spans)
    with pytest.raises(CorpusError, match=message) as caught:
        reference_text_of(["Tom is here", "yes"], "text", {"list": tmp_path / "list.jsonl"})
    assert not any(word in str(caught.value) for word in ("Tom", "Bob"))
