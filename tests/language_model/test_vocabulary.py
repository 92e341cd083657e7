"""The word vocabulary: which words, in which order, and what is refused."""

from collections import Counter
from pathlib import Path

import pytest

from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.language_model.vocabulary import (
    END_ID,
    MASK_ID,
    PADDING_ID,
    SPECIAL_TOKENS,
    START_ID,
    UNKNOWN_ID,
    build_vocabulary,
    counts_of_words,
    read_vocabulary,
)

COUNTS = Counter({"the": 5, "cat": 2, "a": 2, "zebra": 1})


def test_special_tokens_come_first_and_words_follow_by_count_then_by_letter() -> None:
    vocabulary = build_vocabulary(COUNTS, size=100, minimum_count=2)
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "the", "a", "cat")
    assert [SPECIAL_TOKENS[index] for index in (PADDING_ID, UNKNOWN_ID, START_ID, END_ID, MASK_ID)] == [
        "<pad>",
        "<unk>",
        "<s>",
        "</s>",
        "[MASK]",
    ]


def test_size_counts_special_tokens() -> None:
    assert build_vocabulary(COUNTS, size=len(SPECIAL_TOKENS) + 2, minimum_count=1).tokens[-2:] == ("the", "a")


def test_encode_maps_what_is_not_there_to_unknown() -> None:
    vocabulary = build_vocabulary(COUNTS, size=100, minimum_count=2)
    first = len(SPECIAL_TOKENS)
    assert vocabulary.encode(["the", "zebra", "[MASK]", "cat"]) == [first, UNKNOWN_ID, MASK_ID, first + 2]


def test_a_vocabulary_without_room_for_words_is_refused() -> None:
    with pytest.raises(ParameterError, match="vocabulary size 16 leaves no room"):
        build_vocabulary(COUNTS, size=16, minimum_count=1)


def test_a_minimum_count_that_keeps_no_word_is_refused() -> None:
    with pytest.raises(ParameterError, match="minimum_count 6 keeps no word: the most frequent one occurs 5 times"):
        build_vocabulary(COUNTS, size=100, minimum_count=6)


def test_word_counts_are_normalised_and_added_up_and_hold_a_word(tmp_path: Path) -> None:
    path = tmp_path / "word_counts.tsv"
    path.write_text("The\t3\nthe\t2\nwell-known\t1\n", encoding="utf-8")
    assert counts_of_words(path) == {"the": 5, "well": 1, "known": 1}
    path.write_text("...\t3\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="hold no word"):
        counts_of_words(path)


def test_a_written_vocabulary_reads_back_with_its_hash(tmp_path: Path) -> None:
    vocabulary = build_vocabulary(COUNTS, size=100, minimum_count=1)
    vocabulary.write(tmp_path / "vocabulary.txt")
    lines = (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert lines.index("the") == vocabulary.ids["the"]
    read = read_vocabulary(tmp_path / "vocabulary.txt")
    assert (read.tokens, read.hash) == (vocabulary.tokens, vocabulary.hash)
    assert build_vocabulary(COUNTS, size=100, minimum_count=2).hash != vocabulary.hash


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["the", "cat"], "does not begin with the 16 special tokens"),
        ([*SPECIAL_TOKENS], "holds no word"),
        ([*SPECIAL_TOKENS, "the", "cat", "the"], "line 19 repeats line 17"),
        ([*SPECIAL_TOKENS, "the", "", "cat"], "line 18 is empty"),
    ],
)
def test_what_is_no_vocabulary_is_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "vocabulary.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        read_vocabulary(path)
