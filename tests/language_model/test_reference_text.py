"""Where normalised words stand in the raw line, and which of them a technique masks."""

from pathlib import Path

import numpy as np
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
    sidecars_in,
)
from tasks.language_model.normalisation import normalise

HARD = [
    "Tom's Chicago-based e-mail: don't (really) 'quote' me!",
    "it''s ''quoted'' rock'n'roll 'tis O'Brien's dogs' ",
    "call 555-1234 at 10:30, $3,000.50 or 50% of B2B",
    "“Ünïted” ﬁne Ｆｕｌｌ İstanbul ΟΔΟΣ ΟΔΟΣ's nai\u0308ve soft\u00adhyphen zero\u200bwidth",
    "東京 हिन्दी e\u0301 \u0301 ½ ™ x² a\u200db 😀\ufe0f _under_score_ #tag @me",
    "[MASK] and [PERSON]'s http://example.org/a?b=c",
    "",
    "... !!",
]


def test_the_words_are_those_of_the_normalisation():
    for line in HARD:
        placed = placed_words(line)
        assert [word.word for word in placed] == normalise(line)
        assert all(0 <= word.start < word.end <= len(line) for word in placed)
        # Two words can come of one character: ½ becomes 1 and 2.
        assert [word.start for word in placed] == sorted(word.start for word in placed)


@settings(max_examples=400, deadline=None)
@given(
    st.text(
        alphabet=st.sampled_from("aB Σς'’\u0301\u0308\u200d\u00ad-.5½ﬁİ東\u1100\u1161\u00b4 \u0345\u0f73"), max_size=14
    )
)
def test_the_words_are_those_of_the_normalisation_for_any_text(line):
    assert [word.word for word in placed_words(line)] == normalise(line)


def test_places_by_hand():
    line = "Tom's e-mail, ﬁne nai\u0308ve don’t 3.5"
    assert [(word.word, line[word.start : word.end]) for word in placed_words(line)] == [
        ("tom's", "Tom's"),
        ("e", "e"),
        ("mail", "mail"),
        ("fine", "ﬁne"),
        ("naïve", "nai\u0308ve"),
        ("don't", "don’t"),
        ("3", "3"),
        ("5", "5"),
    ]


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


def test_counts_by_hand(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("Tom's here.\n\n...\nYes\n", encoding="utf-8")
    read = read_reference_text(text)
    assert list(read.words) == ["tom's", "here", "", "yes", ""]
    assert read.sentence.tolist() == [0, 0, 0, 1, 1]
    assert read.lines.tolist() == [1, 4]
    assert (read.sentences, read.word_count, read.empty_lines) == (2, 3, 2)
    assert read.characters == len("tom's here yes ")
    assert read.is_end().tolist() == [False, False, True, False, True]


def test_distances_behind_marked_words_by_hand():
    """``m`` is a marked word, ``-`` one with none before it in its sentence, ``.`` a sentence end."""
    by_hand = "--m." + "-m1234567m1." + "m1m1."
    read = reference_text_of(["a b c", "a b c d e f g h i j k", "a b c d"], "text")
    found = read.words_behind(np.array([each == "m" for each in by_hand]))
    for name, shown in {"1 word": "1", "2 words": "2", "5 words": "5", "6 words and more": "67"}.items():
        assert found[name].tolist() == [each in shown for each in by_hand]


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


def test_sidecars_are_known_by_their_technique(tmp_path):
    for name in ("b_list.jsonl", "a_list.jsonl", "masked.txt"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert list(sidecars_in(tmp_path)) == ["a_list", "b_list"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match="holds no sidecar"):
        sidecars_in(tmp_path / "empty")
