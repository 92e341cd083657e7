"""Word frequencies from a file: read once, and again when it changes."""

import os

import numpy as np
import pytest

from tasks.errors import CorpusError
from tasks.filling.frequencies.word_frequencies import WordFrequencies


def write(path, text, *, changed):
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(changed, changed))


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "word_counts.tsv"
    write(path, "Boston\t3\nthe\t9\nx\t5\n", changed=1)
    first = WordFrequencies.read(path)
    assert (first.words, first.counts.tolist()) == (("Boston", "the"), [3, 9])
    assert WordFrequencies.read(str(path)) is first
    assert WordFrequencies.read(path, letters=True).words == ("Boston", "the", "x")
    write(path, "Berlin\t4\nthe\t9\nx\t5\n", changed=2)
    assert WordFrequencies.read(path).words == ("Berlin", "the")
    path.unlink()
    with pytest.raises(CorpusError, match=r"word_counts\.tsv"):
        WordFrequencies.read(path)


def test_what_all_share_cannot_be_changed(tmp_path):
    path = tmp_path / "word_counts.tsv"
    write(path, "the\t9\n", changed=1)
    with pytest.raises(ValueError, match="read-only"):
        WordFrequencies.read(path).counts += 1
    assert np.array_equal(WordFrequencies.read(path).counts, [9])
