import pytest

from tasks.corpora.words import word_spans
from tasks.masking.taggers.spelled_numbers import is_harmless

HARMLESS = [
    "{one} of them", "{One} of them", 'he left. "{Two days ago}"', "see you {last night}", "{a year ago}", "{today}",
    "{about twenty five} people", "{two hundred} people", "{one and a half years}", "{two or three years}",
    "{the fourth quarter}", "{next summer}", "no one, and {two}",
]  # fmt: skip
PRIVATE = [
    "{2 days ago}", "{last March}", "{last march}", "in {may}", "on {monday morning}", "at {christmas}",
    "{the day of enscombe}", "it is {the Day of it}", "in {nineteen eighty}", "in {nineteen eighty four}",
    "at {five thirty}", "call {five five five one}", "call five five five {one}", "{one hundred and fifty}",
    "{five oh five}", "look {😀} here",
]  # fmt: skip


@pytest.mark.parametrize(("marked", "harmless"), [(text, text in HARMLESS) for text in HARMLESS + PRIVATE])
def test_numbers_and_times_in_words_that_identify_nobody(marked, harmless):
    start, end = marked.index("{"), marked.index("}") - 1
    line = marked.replace("{", "").replace("}", "")
    words = word_spans(line)
    touched = [index for index, (first, last) in enumerate(words) if first < end and last > start]
    found = range(touched[0], touched[-1] + 1) if touched else range(0)
    assert is_harmless(line, words, found) == harmless
