from hypothesis import given
from hypothesis import strategies as st

from tasks.masking.taggers.tagger import windows


@given(st.text(alphabet="ab \t", max_size=300), st.integers(20, 60))
def test_cores_cover_the_text_once_and_windows_are_short(text, longest):
    found = list(windows(text, longest, longest // 3))
    assert "".join(text[window.core_start : window.core_end] for window in found) == text
    assert all(window.end - window.start <= longest for window in found)
    assert all(window.start <= window.core_start <= window.core_end <= window.end for window in found)
    assert (found[0].start, found[-1].end) == (0, len(text))


def test_borders_are_between_words_and_a_window_shows_what_is_round_its_core():
    text = "one two three four five six seven eight nine ten " * 20
    found = list(windows(text, 100, 40))
    assert all(place == 0 or text[place - 1] == " " for w in found for place in (w.start, w.core_start))
    assert all(window.end - window.core_end >= 10 for window in found[:-1])
    assert all(window.core_start - window.start >= 10 for window in found[1:])
