import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.masking.taggers.crf_features import feature_lists, shape, tokens_of


@pytest.fixture(scope="module")
def features():
    return feature_lists({"chicago": ("k64=7",)})


def test_tokens_are_words_and_runs_of_other_characters():
    text = "Hi -- Tom's mail: tom@x.org!!"
    tokens = [(text[start:end], is_word) for start, end, is_word in tokens_of(text)]
    assert tokens == [
        ("Hi", True),
        ("--", False),
        ("Tom", True),
        ("'", False),
        ("s", False),
        ("mail", True),
        (":", False),
        ("tom@x.org", True),
        ("!!", False),
    ]


@given(st.text(max_size=60))
def test_every_character_but_white_space_is_in_exactly_one_token(text):
    covered = [index for start, end, _ in tokens_of(text) for index in range(start, end)]
    assert covered == sorted(set(covered))
    assert {index for index, character in enumerate(text) if not character.isspace()} <= set(covered)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Chicago", "Xxxx"),
        ("B2B", "XdX"),
        ("1,000", "d,ddd"),
        ("McDonald", "XxXxxx"),
        ("HELLO", "XXX"),
        ("Žižek", "Xxxx"),
    ],
)
def test_shape(word, expected):
    assert shape(word) == expected


def test_a_token_sees_itself_its_neighbours_and_the_line(features):
    text = "in Chicago today."
    first, second, third, stop = features(text, tokens_of(text))
    assert {"w=in", "c=lower", "common", "start", "-1 border", "+1 w=chicago", "+2 w=today"} <= set(first)
    assert {"w=chicago", "s=Xxxx", "c=title", "upper, not common", "k64=7", "-1 w=in", "+1 w=today"} <= set(second)
    assert {"-1 w=chicago", "-1 k64=7", "-2 w=in", "+1 w=."} <= set(third)
    assert {"c=none", "+1 border", "line mixed"} <= set(stop)
    assert "start" not in second


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all of it in lower case", "line lower"),
        ("ALL OF IT IN CAPITALS", "line upper"),
        ("Some of Each", "line mixed"),
    ],
)
def test_the_case_of_the_line_is_a_feature(features, text, expected):
    assert all(expected in token for token in features(text, tokens_of(text)))
