import pytest

from tasks.corpora.words import word_spans
from tasks.masking.taggers.spelled_numbers import is_harmless


def harmless(line, entity):
    start = line.index(entity)
    words = word_spans(line)
    touched = [index for index, (first, last) in enumerate(words) if first < start + len(entity) and last > start]
    return is_harmless(line, words, range(touched[0], touched[-1] + 1) if touched else range(0))


@pytest.mark.parametrize(
    ("line", "entity"),
    [
        ("one of them", "one"),
        ("One of them", "One"),
        ('he left. "Two days ago"', "Two days ago"),
        ("see you last night", "last night"),
        ("a year ago", "a year ago"),
        ("today", "today"),
        ("about twenty five people", "about twenty five"),
        ("two hundred people", "two hundred"),
        ("one and a half years", "one and a half years"),
        ("two or three years", "two or three years"),
        ("the fourth quarter", "the fourth quarter"),
        ("next summer", "next summer"),
        ("no one, and two", "two"),
    ],
)
def test_kept(line, entity):
    assert harmless(line, entity)


@pytest.mark.parametrize(
    ("line", "entity"),
    [
        ("2 days ago", "2 days ago"),
        ("last March", "last March"),
        ("last march", "last march"),
        ("in may", "may"),
        ("on monday morning", "monday morning"),
        ("at christmas", "christmas"),
        ("the day of enscombe", "the day of enscombe"),
        ("it is the Day of it", "the Day of it"),
        ("in nineteen eighty", "nineteen eighty"),
        ("in nineteen eighty four", "nineteen eighty four"),
        ("at five thirty", "five thirty"),
        ("call five five five one", "five five five one"),
        ("call five five five one", "one"),
        ("one hundred and fifty", "one hundred and fifty"),
        ("five oh five", "five oh five"),
        ("look 😀 here", "😀"),
    ],
)
def test_masked(line, entity):
    assert not harmless(line, entity)
