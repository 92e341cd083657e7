"""The ARPA file: read back as written, read by KenLM, and found out where it is damaged."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.ngram.folder import read_arpa, write_arpa
from tasks.language_model.ngram.kneser_ney import estimate
from tasks.language_model.vocabulary import START_ID, Vocabulary

LINES = ["a b c", "a b", "[MASK] b c a", "b [MASK] a", "c c a b [PERSON]", "a"] * 3
TEST = ["a b c d", "c b a", "[MASK] a", "unheard b", "a [PERSON] c c"]


@pytest.fixture
def arpa(tmp_path: Path, encoded: Callable[..., EncodedText], vocabulary: Vocabulary) -> Path:
    """A trigram model of masked text, with markers as contexts only."""
    model, _ = estimate(encoded(LINES, "ignore"), 3, len(vocabulary))
    write_arpa(tmp_path / "model.arpa", model, vocabulary)
    return tmp_path / "model.arpa"


def test_a_bigram_file_by_hand(tmp_path, encoded, vocabulary):
    model, _ = estimate(encoded(["a b", "a b", "a c"]), 2, len(vocabulary))
    write_arpa(tmp_path / "model.arpa", model, vocabulary)
    lines = (tmp_path / "model.arpa").read_text(encoding="utf-8").split("\n")
    assert lines[:5] == ["\\data\\", "ngram 1=19", "ngram 2=5", "", "\\1-grams:"]
    assert lines[5] == "-1.5563025\t<unk>\t0"  # 1/36
    assert lines[6].startswith("-99\t<s>\t-0.301")  # 0.5 is left for the order below
    assert "\\2-grams:" in lines
    entry = next(line for line in lines if line.endswith("\ta b"))
    assert float(entry.split("\t")[0]) == pytest.approx(math.log10(1 / 3 + 0.5 * (0.1 + 0.5 / 18)), abs=1e-6)
    assert lines[-3:] == ["", "\\end\\", ""]
    # What is never predicted is not there but for the start.
    assert not any("<pad>" in line for line in lines)
    assert read_arpa(tmp_path / "model.arpa", vocabulary).orders[0].log_probability[START_ID] == -math.inf
    assert (tmp_path / "model.arpa").stat().st_mode & 0o777 == 0o600


def test_kenlm_gives_the_same_probabilities(arpa, encoded, vocabulary):
    kenlm = pytest.importorskip("kenlm")
    model, ours = kenlm.Model(str(arpa)), read_arpa(arpa, vocabulary)
    text = encoded(TEST, "token")
    found = ours.log_probabilities(text.tokens, text.offsets) / math.log(10)
    for begin, end in zip(text.offsets, text.offsets[1:], strict=False):
        words = " ".join(vocabulary.tokens[token] for token in text.tokens[begin + 1 : end - 1])
        assert [score for score, _, _ in model.full_scores(words)] == pytest.approx(found[begin + 1 : end], abs=1e-5)
