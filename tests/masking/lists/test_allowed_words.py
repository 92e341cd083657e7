"""Lists of words that are never masked: one way to mask by them, remembered for speed."""

from hypothesis import given
from hypothesis import strategies as st
from restoring import restored

from tasks.masking.lists import allowed_words
from tasks.masking.lists.allowed_words import AllowedWords
from tasks.masking.technique import MaskingTally, Technique

ALLOWED = ["The", "cat", "it's", "a", "is", "don’t", "person"]


TEXT = st.text(alphabet="aAtThe catis.,'\"()[]\\MASK5@:/-\t\u00a0é😀", max_size=50) | st.text(max_size=30)


@given(
    st.lists(TEXT.map(lambda text: text.replace("\n", " ")), max_size=5),
    st.sampled_from(["mask", "class"]),
    st.booleans(),
)
def test_the_remembered_way_is_the_plain_way_and_the_sidecar_restores_the_text(lines, style, merge):
    technique = AllowedWords(ALLOWED, "list")
    fast_tally, plain_tally, unmerged_tally = MaskingTally(), MaskingTally(), MaskingTally()
    fast = list(technique.mask(lines, style, fast_tally, with_spans=True, merge=merge))
    assert fast == list(Technique.mask(technique, lines, style, plain_tally, with_spans=True, merge=merge))
    unmerged = list(technique.mask(lines, style, unmerged_tally, with_spans=True))
    assert fast_tally == plain_tally == unmerged_tally
    for line, (text, spans), (_, alone) in zip(lines, fast, unmerged, strict=True):
        assert [span.original for span in spans] == [span.original for span in alone]
        assert restored(line, text, spans) == line


def test_forgetting_changes_nothing(monkeypatch):
    monkeypatch.setattr(allowed_words, "_MOST_WRITTEN", 3)
    monkeypatch.setattr(allowed_words, "_MOST_JUDGED", 5)
    lines = [f"Tom{number % 7}, a cat {number % 5}" for number in range(50)] + ["x" * 100 + " a"]
    tally = MaskingTally()
    masked = [text for text, _ in AllowedWords(ALLOWED, "list").mask(lines, "mask", tally, with_spans=False)]
    assert masked == ["[MASK], a cat [MASK]"] * 50 + ["[MASK] a"]
    assert (tally.words, tally.masked_words) == (202, 101)
