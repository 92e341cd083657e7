"""Text to ids, and what is a target."""

import pytest

from tasks.errors import CorpusError
from tasks.language_model.vocabulary import END_ID, MASK_ID, SPECIAL_TOKENS, START_ID, UNKNOWN_ID

A, B = len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 1


def test_sentences_stand_between_start_and_end_and_empty_lines_are_counted(encoded):
    text = encoded(["A b!", "", "...", "unheard b"])
    assert text.tokens.tolist() == [START_ID, A, B, END_ID, START_ID, UNKNOWN_ID, B, END_ID]
    assert text.offsets.tolist() == [0, 4, 8]
    assert text.lines.tolist() == [1, 4]
    assert (text.sentences, text.words, text.unknown_words, text.empty_lines) == (2, 4, 1, 2)


def test_a_marker_is_a_target_for_baseline0_and_context_for_baseline1(encoded):
    lines = [r"a [MASK] [\MASK]"]
    token, ignore = encoded(lines, "token"), encoded(lines, "ignore")
    assert token.tokens.tolist() == ignore.tokens.tolist() == [START_ID, A, MASK_ID, UNKNOWN_ID, END_ID]
    assert token.is_target().tolist() == [False, True, True, True, True]
    assert ignore.is_target().tolist() == [False, True, False, True, True]
    assert token.markers == ignore.markers == 1


LINES = [r"a [MASK] [\MASK]", "b", "[PERSON]'s", "", "b [DATE] [DATE]"]


def test_markers_are_removed_or_their_lines_dropped_and_counted(encoded):
    for markers, sentences, counts, said in (
        (
            "remove",
            [[A, UNKNOWN_ID], [B], [B]],
            {"empty_lines": 2, "removed_markers": 4, "dropped_lines": 0},
            "0 dropped, 2 without",
        ),
        ("drop", [[B]], {"empty_lines": 1, "removed_markers": 0, "dropped_lines": 3}, "1 dropped, 1 without"),
    ):
        text = encoded(LINES, markers)
        assert text.tokens.tolist() == [token for each in sentences for token in (START_ID, *each, END_ID)]
        assert text.is_target().tolist() == (text.tokens != START_ID).tolist()
        words = sum(map(len, sentences))
        assert text.counts() == {
            "sentences": len(sentences), "words": words, "unknown_words": markers == "remove", "markers": 0, **counts,
        }  # fmt: skip
        with pytest.raises(CorpusError, match=f"--markers {markers} leaves no word of 2 lines .{said} a word.; take"):
            encoded(["[MASK] [DATE]", "!"], markers)
