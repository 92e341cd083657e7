"""Text to ids, and what is a target."""

from collections.abc import Callable

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.vocabulary import END_ID, MASK_ID, SPECIAL_TOKENS, START_ID, UNKNOWN_ID

A, B = len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 1


def test_sentences_stand_between_start_and_end_and_empty_lines_are_counted(encoded: Callable[..., EncodedText]) -> None:
    text = encoded(["A b!", "", "...", "unheard b"])
    assert text.tokens.tolist() == [START_ID, A, B, END_ID, START_ID, UNKNOWN_ID, B, END_ID]
    assert text.offsets.tolist() == [0, 4, 8]
    assert text.lines.tolist() == [1, 4]
    assert (text.sentences, text.words, text.unknown_words, text.empty_lines) == (2, 4, 1, 2)


def test_plain_text_has_no_markers(encoded: Callable[..., EncodedText]) -> None:
    text = encoded(["a [MASK] b", "[mask] a"])
    assert text.tokens.tolist() == [START_ID, A, UNKNOWN_ID, B, END_ID, START_ID, UNKNOWN_ID, A, END_ID]
    assert (text.markers, text.marker_like) == (0, 1)


def test_a_marker_is_a_target_for_baseline0_and_context_for_baseline1(encoded: Callable[..., EncodedText]) -> None:
    lines = [r"a [MASK] [\MASK]"]
    token, ignore = encoded(lines, "token"), encoded(lines, "ignore")
    assert token.tokens.tolist() == ignore.tokens.tolist() == [START_ID, A, MASK_ID, UNKNOWN_ID, END_ID]
    assert token.is_target().tolist() == [False, True, True, True, True]
    assert ignore.is_target().tolist() == [False, True, False, True, True]
    assert token.markers == ignore.markers == 1
