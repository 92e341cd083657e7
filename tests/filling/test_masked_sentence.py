import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marked_text import format_masked

from tasks.corpora.masked_text import Marker
from tasks.filling.filled_corpus import CorpusFiller, Shard
from tasks.filling.frequencies.word_frequencies import KeptWords, WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_sentence import Casing, Slot, check_unchanged, read_masked_line
from tasks.filling.methods.unigram import UnigramFiller


def test_consecutive_markers_become_one_slot():
    sentence = read_masked_line("[MASK] [MASK] lives in [MASK][MASK] \t[MASK].", 3, merge_markers=True)
    assert sentence.texts == ("", " lives in ", ".")
    assert sentence.slots == (Slot("MASK", 0, 1), Slot("MASK", 2, 4))
    assert sentence.filled(["Tom", "Paris"]) == "Tom lives in Paris."


def test_markers_stay_apart_where_they_are_not_merged():
    sentence = read_masked_line("[MASK] [MASK] lives", 1, merge_markers=False)
    assert sentence.filled(["Tom", "Smith"]) == "Tom Smith lives"


def test_markers_of_different_classes_do_not_merge():
    assert read_masked_line("[PERSON] [PERSON]", 1, merge_markers=True).slots == (Slot("PERSON", 0, 1),)
    sentence = read_masked_line("[PERSON] [DATE] " * 700, 1, merge_markers=True)
    assert sentence.slots == tuple(Slot(("PERSON", "DATE")[index % 2], index, index) for index in range(1400))
    assert sentence.texts == ("", *[" "] * 1400)


def test_markers_with_punctuation_between_them_do_not_merge():
    assert len(read_masked_line("[MASK], [MASK] and [MASK]-[MASK]", 1, merge_markers=True).slots) == 4


def test_a_changed_line_is_noticed():
    for filled, words in [
        ("Tom lived in Paris", ["Tom", "Paris"]),
        ("Tom lives in Paris ", ["Tom", "Paris"]),
        ("Tom lives in ", ["Tom", ""]),
        ("Tom lives in Paris", ["Tom", "Rome"]),
        ("Tom lives in Paris", ["Tom"]),
        ("Tom live in Paris", ["Tom", "Paris"]),
    ]:
        line = "[MASK] [MASK] lives in [MASK]"
        sentence = read_masked_line(line, 7, merge_markers=True)
        check_unchanged(line, "Tom lives in Paris", sentence, ["Tom", "Paris"])
        with pytest.raises(RuntimeError, match="line 7"):
            check_unchanged(line, filled, sentence, words)


PARTS = ["a", "I", " ", "[", "]", "\\", "MASK", "[MASK]", "[\\MASK]", "PERSON", ".", "é", "\u200b", "\t"]
TEXTS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=8).map("".join)
MARKERS = st.sampled_from(["MASK", "PERSON", "DATE"]).map(Marker)


@given(st.lists(st.one_of(TEXTS, MARKERS), max_size=12), st.booleans())
def test_filling_changes_no_unmasked_character_but_those_of_articles(pieces, merge):
    line = format_masked(pieces)
    frequencies = WordFrequencies.of([("paris", 3), ("London", 2), ("seven", 1)])
    filler = UnigramFiller({None: frequencies}, MarkerRandomness(1))
    casing = Casing({}, filler_is_cased=True)
    (filled,) = CorpusFiller(filler, casing, KeptWords(), merge).fill_shard(Shard(0, 1, [line], None)).lines
    fill = "(?i:paris|london|seven)"
    pattern = "".join(f"<{piece.label}>" if isinstance(piece, Marker) else re.escape(piece) for piece in pieces)
    if merge:
        # A run of markers of one class with white space between them has one fill.
        pattern = re.sub(r"(<\w+>)(?:(?:\\\s|\s)*\1)+", r"\1", pattern)
    pattern = re.sub(r"([aA])(\\ <)", r"\1[nN]?\2", pattern)
    assert re.fullmatch(re.sub(r"<\w+>", fill, pattern), filled)
