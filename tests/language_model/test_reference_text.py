"""Where normalised words stand in the raw line, and which of them a technique masks."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.corpora.words import word_spans
from tasks.errors import CorpusError
from tasks.language_model.evaluation.reference_text import (
    placed_words,
    read_reference_text,
    reference_text_of,
)
from tasks.language_model.normalisation import normalise


@settings(max_examples=150, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from("aB Σς'’\u0301\u0308\u200d\u00ad-.5½ﬁİ東\u1100\u1161\u00b4 \u0345\u0f73"), max_size=14
    )
)
def test_the_words_are_those_of_the_normalisation_for_any_text(line):
    assert [word.word for word in placed_words(line)] == normalise(line)


def masked_words(tmp_path: Path, line: str, words: list[str]) -> list[str]:
    """The normalised words of a line that count as masked where masking takes the given words of it."""
    text, sidecar = tmp_path / "text.txt", tmp_path / "list.jsonl"
    text.write_text(line + "\n", encoding="utf-8")
    spans = [(start, end) for start, end in word_spans(line) if line[start:end] in words]
    assert len(spans) == len(words)
    write_sidecar(sidecar, [[MaskedSpan(s, e, "MASK", "test", line[s:e], i) for i, (s, e) in enumerate(spans)]])
    read = read_reference_text(text, {"list": sidecar})
    return [word for word, masked in zip(read.words, read.masked["list"], strict=True) if masked]


def test_masked_words_by_hand(tmp_path):
    for line, masked, words in [
        # The ending goes with the name, as it goes with the marker in masked text.
        ("Tom's dog saw Tom", ["Tom", "Tom"], ["tom's", "tom"]),
        ("a Chicago-based firm", ["Chicago"], ["chicago"]),
        ("a Chicago-based firm", ["based"], ["based"]),
        ("call 555-1234, (now)", ["555-1234"], ["555", "1234"]),
        ("$3,000.50 or so", ["3,000.50"], ["3", "000", "50"]),
        ("mail tom@example.org!", ["tom@example.org"], ["tom", "example", "org"]),
        ("“Ünïted” ﬁne", ["ﬁne"], ["fine"]),
        ("the U.S. army", ["U.S"], ["u", "s"]),
        ("don't you", ["don't"], ["don't"]),
        ("nothing is masked", [], []),
    ]:
        assert masked_words(tmp_path, line, masked) == words


def test_what_does_not_belong_together_is_refused_without_quoting_it(tmp_path):
    text, sidecar = tmp_path / "text.txt", tmp_path / "list.jsonl"
    text.write_text("Tom is here\nyes\n", encoding="utf-8")
    for spans, message in (
        ([[]], "it ends before the text's line 2"),
        ([[], [], []], "it goes on after the text's 2 lines"),
        ([[MaskedSpan(0, 3, "MASK", "test", "Bob", 0)], []], "line 1 does not hold the words masked"),
    ):
        write_sidecar(sidecar, spans)
        with pytest.raises(CorpusError, match=message) as caught:
            read_reference_text(text, {"list": sidecar})
        assert not any(word in str(caught.value) for word in ("Tom", "Bob"))
    with pytest.raises(CorpusError, match="holds no word in 1 lines"):
        reference_text_of(["..."], "text")
