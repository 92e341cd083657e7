"""Text to ids, and what is a target."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.errors import CorpusError
from tasks.language_model.encoded_text import EncodedText, encode_text
from tasks.language_model.settings import marker_use_of
from tasks.language_model.vocabulary import END_ID, MASK_ID, SPECIAL_TOKENS, START_ID, UNKNOWN_ID, Vocabulary

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


def test_a_marker_is_a_target_for_baseline0_and_context_for_baseline1(
    encoded: Callable[..., EncodedText],
) -> None:
    lines = [r"a [MASK] [\MASK]"]
    token, ignore = encoded(lines, "token"), encoded(lines, "ignore")
    assert token.tokens.tolist() == ignore.tokens.tolist() == [START_ID, A, MASK_ID, UNKNOWN_ID, END_ID]
    assert token.is_target().tolist() == [False, True, True, True, True]
    assert ignore.is_target().tolist() == [False, True, False, True, True]
    assert token.markers == ignore.markers == 1


def test_only_the_baselines_read_markers() -> None:
    methods = ("baseline0", "baseline1", "oracle", "top_k", None)
    assert [marker_use_of(method) for method in methods] == ["token", "ignore", "none", "none", "none"]


def test_a_text_without_a_sentence_is_refused(tmp_path: Path, vocabulary: Vocabulary) -> None:
    path = tmp_path / "text.txt"
    path.write_text("", encoding="utf-8")
    with pytest.raises(CorpusError, match="is empty; it needs at least one sentence"):
        encode_text(path, vocabulary)
    path.write_text("\n!\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="holds no word in 2 lines"):
        encode_text(path, vocabulary)
