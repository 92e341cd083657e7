"""The word vocabulary: which words, in which order, and what is refused."""

from collections import Counter

import pytest

from tasks.errors import ModelError, ParameterError
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
