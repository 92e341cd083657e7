"""Lists of words that are never masked: one way to mask by them, remembered for speed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.corpora.masked_text import Marker, parse_masked
from tasks.masking.lists import allowed_words
from tasks.masking.lists.allowed_words import AllowedWords
from tasks.masking.technique import MaskingTally, Technique, merge_markers

ALLOWED = ["The", "cat", "it's", "a", "is", "don’t", "person"]


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("The cat, in Chicago, is (Tom's)!", "The cat, [MASK] [MASK], is ([MASK]'s)!"),
        ("mail tom@x.com at 5pm, 1,000 B2B @tom", "[MASK] [CONTACT] [MASK] [NUMBER], [NUMBER] [MASK] [CONTACT]"),
        ("  a \t b\u00a0a  ", "  a \t [MASK]\u00a0a  "),
        ("[MASK] is a [PERSON]", "[[MASK]] is a [\\PERSON]"),
        ("", ""),
        ("...", "..."),
    ],
)
def test_masked_lines(line, masked):
    ((text, spans),) = AllowedWords(ALLOWED, "list").mask([line], "class", MaskingTally(), with_spans=True)
    assert text == masked
    assert [(line[span.start : span.end], span.source) for span in spans] == [(span.original, "list") for span in spans]


def test_tally():
    tally = MaskingTally()
    list(AllowedWords(ALLOWED, "list").mask(["The cat", "", "Tom 5, a", " "], "mask", tally, with_spans=False))
    assert (tally.lines, tally.empty_lines, tally.masked_lines) == (4, 2, 1)
    assert (tally.words, tally.masked_words, tally.masked_fraction) == (5, 2, 0.4)
    assert tally.labels == {"MASK": 1, "NUMBER": 1}
    assert MaskingTally().masked_fraction is None


TEXT = st.text(alphabet="aAtThe catis.,'\"()[]\\MASK5@:/-\t\u00a0é😀", max_size=50) | st.text(max_size=30)


@given(
    st.lists(TEXT.map(lambda text: text.replace("\n", " ")), max_size=5),
    st.sampled_from(["mask", "class"]),
    st.booleans(),
)
def test_the_remembered_way_is_the_plain_way_and_only_masked_words_change(lines, style, merge):
    """Merged or not, the sidecar restores the text, and words are counted alike."""
    technique = AllowedWords(ALLOWED, "list")
    fast_tally, plain_tally, unmerged_tally = MaskingTally(), MaskingTally(), MaskingTally()
    fast = list(technique.mask(lines, style, fast_tally, with_spans=True, merge=merge))
    assert fast == list(Technique.mask(technique, lines, style, plain_tally, with_spans=True, merge=merge))
    unmerged = list(technique.mask(lines, style, unmerged_tally, with_spans=True))
    assert fast_tally == plain_tally == unmerged_tally
    for line, (text, spans), (_, alone) in zip(lines, fast, unmerged, strict=True):
        assert [span.original for span in spans] == [span.original for span in alone]
        stretches = {}
        for span in spans:
            start, _ = stretches.get(span.marker, (span.start, 0))
            stretches[span.marker] = (start, span.end)
        assert sorted(stretches) == list(range(len(stretches)))
        originals = (line[slice(*stretches[index])] for index in sorted(stretches))
        pieces = [next(originals) if isinstance(piece, Marker) else piece for piece in parse_masked(text)]
        assert "".join(pieces) == line
        assert next(originals, None) is None


@pytest.mark.parametrize(
    ("line", "merged"),
    [
        ("[MASK] [MASK] x", "[MASK] x"),
        ("[MASK]  \t\u00a0[MASK][MASK].", "[MASK]."),
        ("[MASK], [MASK]'s [MASK]", "[MASK], [MASK]'s [MASK]"),
        ("[PERSON] [PERSON] [DATE] [DATE] [PERSON]", "[PERSON] [DATE] [PERSON]"),
        ("[\\MASK] [\\MASK] [MASK] [\\MASK] [MASK]", "[\\MASK] [\\MASK] [MASK] [\\MASK] [MASK]"),
        ("[MASK] ", "[MASK] "),
    ],
)
def test_merged_lines(line, merged):
    assert merge_markers(line) == merged


def test_forgetting_changes_nothing(monkeypatch):
    monkeypatch.setattr(allowed_words, "_MOST_WRITTEN", 3)
    monkeypatch.setattr(allowed_words, "_MOST_JUDGED", 5)
    lines = [f"Tom{number % 7}, a cat {number % 5}" for number in range(50)] + ["x" * 100 + " a"]
    tally = MaskingTally()
    masked = [text for text, _ in AllowedWords(ALLOWED, "list").mask(lines, "mask", tally, with_spans=False)]
    assert masked == ["[MASK], a cat [MASK]"] * 50 + ["[MASK] a"]
    assert (tally.words, tally.masked_words) == (202, 101)
