from hypothesis import given
from hypothesis import strategies as st
from marked_text import format_masked

from tasks.corpora.masked_text import CLASSES, Marker, count_markers, escape, parse_masked, unescape

NEAR_MARKERS = st.text(alphabet="[]\\MASKPERONa ", max_size=30) | st.lists(
    st.sampled_from(["[MASK]", "[", "]", "\\", "MASK", ":es]", "[PERSON:de]", "[\\MASK]", "x"]), max_size=8
).map("".join)
MARKERS = st.builds(Marker, st.sampled_from(CLASSES), st.sampled_from([None, "es", "gsw"]))


@given(NEAR_MARKERS)
def test_text_comes_back_and_has_no_marker(text):
    assert unescape(escape(text)) == text
    assert count_markers(escape(text)) == 0


@given(st.lists(NEAR_MARKERS.filter(bool), max_size=3), st.lists(MARKERS, max_size=3))
def test_parsing_is_the_inverse_of_formatting(texts, markers):
    pieces = [piece for pair in zip(texts, markers, strict=False) for piece in pair]
    assert parse_masked(format_masked(pieces)) == pieces
