import pytest
from hypothesis import given
from hypothesis import strategies as st
from marked_text import format_masked

from tasks.corpora.masked_text import CLASSES, Marker, count_markers, escape, parse_masked, unescape

NEAR_MARKERS = st.text(alphabet="[]\\MASKPERONa ", max_size=30) | st.lists(
    st.sampled_from(["[MASK]", "[", "]", "\\", "MASK", ":es]", "[PERSON:de]", "[\\MASK]", "x"]), max_size=8
).map("".join)
MARKERS = st.builds(Marker, st.sampled_from(CLASSES), st.sampled_from([None, "es", "gsw"]))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("[MASK]", "[\\MASK]"),
        ("[\\MASK]", "[\\\\MASK]"),
        ("[MASK:es]", "[\\MASK:es]"),
        ("[[PERSON]]", "[[\\PERSON]]"),
        ("[mask] [X] [MASK:]", "[mask] [X] [MASK:]"),
    ],
)
def test_escape(text, escaped):
    assert escape(text) == escaped
    assert count_markers(escaped) == 0


@given(NEAR_MARKERS)
def test_unescape_is_the_inverse_of_escape(text):
    assert unescape(escape(text)) == text
    assert count_markers(escape(text)) == 0


@given(st.lists(NEAR_MARKERS.filter(bool) | MARKERS, max_size=6))
def test_parsing_is_the_inverse_of_formatting(pieces):
    joined = []
    for piece in pieces:
        if joined and isinstance(piece, str) and isinstance(joined[-1], str):
            joined[-1] += piece
        else:
            joined.append(piece)
    assert parse_masked(format_masked(joined)) == joined
