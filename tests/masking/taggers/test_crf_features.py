from hypothesis import given
from hypothesis import strategies as st

from tasks.masking.taggers.crf_features import feature_lists, tokens_of


def test_a_token_sees_itself_its_neighbours_and_the_line():
    text = "in Chicago today!!"
    tokens = tokens_of(text)
    assert [(text[start:end], is_word) for start, end, is_word in tokens][-2:] == [("today", True), ("!!", False)]
    first, second, third, stop = feature_lists({"chicago": ("k64=7",)})(text, tokens)
    assert {"w=in", "c=lower", "common", "start", "-1 border", "+1 w=chicago", "+2 w=today"} <= set(first)
    assert {"w=chicago", "s=Xxxx", "c=title", "upper, not common", "k64=7", "-1 w=in", "+1 w=today"} <= set(second)
    assert {"-1 w=chicago", "-1 k64=7", "-2 w=in", "+1 w=!!"} <= set(third)
    assert {"c=none", "+1 border", "line mixed"} <= set(stop)
    assert "start" not in second


@given(st.text(max_size=60))
def test_every_character_but_white_space_is_in_exactly_one_token(text):
    covered = [index for start, end, _ in tokens_of(text) for index in range(start, end)]
    assert covered == sorted(set(covered))
    assert {index for index, character in enumerate(text) if not character.isspace()} <= set(covered)
