"""What cleaning does to a text, and how a text is divided into sentences."""

import pytest

from tasks.corpora.division import normalise
from tasks.corpora.sources.document import split_sentences


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  two\t spaces \u00a0and\u2028lines\r\n", "two spaces and lines"),
        ("bell\x07and\x00null\x85next", "bell and null next"),
        ("soft\u00adhyphen zero\u200bwidth \ufeffmark", "softhyphen zerowidth mark"),
        ("ab\u202edc\u202c \u2066x\u2069 y\u200e \u061cz", "abdc x y\u200e \u061cz"),
        ("cafe\u0301 half \ud83d pair 👨‍👩‍👧", "café half \ufffd pair 👨‍👩‍👧"),
        ("Case, and 'punctuation' STAY!", "Case, and 'punctuation' STAY!"),
        (" \n ", ""),
    ],
)
def test_normalise(text, line):
    assert normalise(text) == line


@pytest.mark.parametrize(
    "marked",
    [
        "He came.|She went!|Why?|1999 was late.",
        "Mr. Li met Dr. Jones in St. Louis.|They talked.",
        "J. K. Rowling and the U.S. Army.|Then more.",
        "So did I.|You did not.",
        "It costs 3.50 dollars.|See no. 5 on p. 12.|It is there.",
        'He said "Go."|Then he left.',
        "Known since 1900.[12]|It grew.",
        "Wait... what? no. and on",
    ],
)
def test_sentences(marked):
    assert split_sentences(marked.replace("|", " ")) == marked.split("|")
    assert split_sentences(marked.replace("|", "\n")) == marked.split("|")
