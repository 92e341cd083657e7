import json
import math
import os
from collections import Counter

import numpy as np
import pytest
from pydantic import TypeAdapter
from tiny_masked_models import bert_of_bias, save, word_piece_tokenizer

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.errors import CorpusError, ModelError
from tasks.filling.casing import Casing
from tasks.filling.choices.sample import DrawOffList
from tasks.filling.choices.top_1 import BestWord
from tasks.filling.choices.top_k import OneOfTheBest
from tasks.filling.choices.unigram import UnigramFiller
from tasks.filling.filled_corpus import FillingTally, fill_lines
from tasks.filling.kept_words import KeptWords
from tasks.filling.marker_randomness import MarkerRandomness, Place
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.settings import FillingSettings
from tasks.filling.slot_originals import ChoiceWithoutOriginals, ForbiddenOriginals, with_spans
from tasks.filling.word_frequencies import WordFrequencies

DRAWS = 3000
FOUR_SIGMA = 4.0
"""A right sampler misses this tolerance once in 16,000 comparisons; seeds are fixed."""

WORDS = ["the", "cat", "Cat", "dog", "tom"]
SCORES = [5.0, 4.0, 3.0, 2.0, 1.0]


def scores(count):
    return np.array([SCORES] * count, dtype=np.float32)


def places(count):
    return [Place(line, 0) for line in range(1, count + 1)]


def sentences(count, *originals):
    line = " ".join(["[MASK]"] * len(originals))
    spans = [MaskedSpan(0, 1, "MASK", "list", original, marker) for marker, original in enumerate(originals)]
    return [with_spans(read_masked_line(line, number, merge_markers=True), spans) for number in range(1, count + 1)]


def without(choice, count, *originals):
    forbidden = ForbiddenOriginals()
    forbidden.take(sentences(count, *originals))
    return ChoiceWithoutOriginals(choice, WORDS, forbidden), forbidden


def methods(off_list):
    randomness = MarkerRandomness(1)
    return [BestWord(), OneOfTheBest(3, off_list, randomness), DrawOffList(1.0, off_list, randomness)]


@pytest.mark.parametrize("method", range(3))
def test_no_method_writes_an_original_in_whatever_case(method):
    choice, _ = without(methods(np.ones(5, dtype=bool))[method], 200, "CAT", "The")
    chosen = choice.choose(scores(200), places(200))
    assert set(chosen.candidates.tolist()) <= {3, 4}
    assert not chosen.fallbacks.any()


def test_the_best_of_the_others_is_taken_and_counted():
    choice, forbidden = without(BestWord(), 2, "the")
    assert choice.choose(scores(2), places(2)).candidates.tolist() == [1, 1]
    assert forbidden.counts == {"forbidden_places": 2, "forbidden_restorations": 2}
    choice, forbidden = without(BestWord(), 2, "tom")
    assert choice.choose(scores(2), places(2)).candidates.tolist() == [0, 0]
    # It was among the candidates, but would not have been chosen.
    assert forbidden.counts == {"forbidden_places": 2, "forbidden_restorations": 0}
    choice, forbidden = without(BestWord(), 2, "unheard-of")
    assert choice.choose(scores(2), places(2)).candidates.tolist() == [0, 0]
    assert forbidden.counts == {"forbidden_places": 0, "forbidden_restorations": 0}


def test_a_place_that_is_scored_again_counts_once():
    choice, forbidden = without(BestWord(), 1, "the")
    for _ in range(3):
        choice.choose(scores(1), places(1))
    assert forbidden.counts == {"forbidden_places": 1, "forbidden_restorations": 1}
    forbidden.take(sentences(1, "the"))
    choice.choose(scores(1), places(1))
    assert forbidden.counts == {"forbidden_places": 2, "forbidden_restorations": 2}


def test_an_original_among_the_k_best_is_passed_over():
    """Were the fourth best to move up, it would say that one of the three was masked."""
    choice, _ = without(OneOfTheBest(3, np.ones(5, dtype=bool), MarkerRandomness(1)), DRAWS, "the")
    counts = Counter(choice.choose(scores(DRAWS), places(DRAWS)).candidates.tolist())
    assert set(counts) == {1, 2}
    assert all(abs(count - DRAWS / 2) <= FOUR_SIGMA * math.sqrt(DRAWS / 4) for count in counts.values())


def test_the_k_best_may_be_fewer_than_k():
    choice, _ = without(OneOfTheBest(5, np.ones(5, dtype=bool), MarkerRandomness(1)), 50, "the", "cat")
    assert set(choice.choose(scores(50), places(50)).candidates.tolist()) == {3, 4}


def test_a_draw_that_was_none_of_the_originals_stays():
    method = DrawOffList(1.0, np.ones(5, dtype=bool), MarkerRandomness(1))
    choice, forbidden = without(method, 200, "dog")
    free = method.choose(scores(200), places(200)).candidates
    held = choice.choose(scores(200), places(200)).candidates
    changed = free != held
    assert (free[changed] == 3).all()
    assert changed.sum() == (free == 3).sum() == forbidden.counts["forbidden_restorations"] > 0


def test_where_every_word_off_the_list_is_forbidden_the_list_is_the_fallback():
    off_list = np.array([False, False, False, False, True])
    for method in methods(off_list)[1:]:
        choice, _ = without(method, 20, "tom")
        chosen = choice.choose(scores(20), places(20))
        assert chosen.fallbacks.all()
        assert set(chosen.candidates.tolist()) <= {0, 1, 2, 3}


def test_nothing_left_is_an_error():
    choice, _ = without(BestWord(), 1, "the", "cat", "dog", "tom")
    with pytest.raises(ModelError, match="every word that this filler can write is forbidden"):
        choice.choose(scores(1), places(1))


@pytest.mark.parametrize("other", [np.array([0, 3]), np.array([True, False, False, True, False])])
def test_what_else_is_forbidden_is_so_too(other):
    choice, _ = without(BestWord(), 1, "cat")
    assert choice.choose(scores(1), places(1), [other]).candidates.tolist() == [4]
    assert BestWord().choose(scores(1), places(1), [other]).candidates.tolist() == [1]


def test_capitals_do_not_make_the_original_of_another_word():
    """A capital dotless ı is an I: SINIF is also what the capitals of another word are."""
    frequencies = WordFrequencies.of([("sınıf", 1)])
    forbidden = ForbiddenOriginals()
    filler = UnigramFiller(frequencies, np.ones(1, dtype=bool), MarkerRandomness(5), forbidden)
    (filled,) = fill_lines(
        ["IT WAS [MASK]"],
        filler,
        Casing({}, filler_is_cased=True),
        FillingTally(KeptWords()),
        merge_markers=True,
        records=[[MaskedSpan(7, 12, "MASK", "list", "SINIF", 0)]],
        originals=forbidden,
    )
    assert filled == "IT WAS sınıf"


def test_unigram_draws_from_the_other_words():
    frequencies = WordFrequencies.of([("Paris", 60), ("paris", 20), ("mat", 15), ("tom", 5)])
    forbidden = ForbiddenOriginals()
    off_list = KeptWords().off_list(frequencies.words)
    filler = UnigramFiller(frequencies, off_list, MarkerRandomness(5), forbidden)
    lines = sentences(DRAWS, "PARIS")
    forbidden.take(lines)
    words = Counter(fills[0].word for fills in filler.fill(lines, lambda _: None))
    assert set(words) == {"mat", "tom"}
    sigma = math.sqrt(DRAWS * 0.75 * 0.25)
    assert abs(words["mat"] - 0.75 * DRAWS) <= FOUR_SIGMA * sigma
    assert forbidden.counts["forbidden_places"] == DRAWS
    assert abs(forbidden.counts["forbidden_restorations"] - 0.8 * DRAWS) <= FOUR_SIGMA * math.sqrt(DRAWS * 0.16)
    lines = sentences(1, "paris", "mat", "tom")
    forbidden.take(lines)
    with pytest.raises(CorpusError, match="line 1: every word that may be drawn is forbidden"):
        filler.fill(lines, lambda _: None)


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "masked.txt").write_text("the [MASK] sat\n[MASK] [MASK] ran\nthe [MASK]\n", encoding="utf-8")
    (tmp_path / "word_counts.tsv").write_text("dog\t6\nCat\t3\nParis\t1\nmat\t1\n", encoding="utf-8")
    spans = [
        [MaskedSpan(4, 7, "MASK", "allow_list", "Cat", 0)],
        [MaskedSpan(0, 3, "MASK", "allow_list", "DOG", 0), MaskedSpan(4, 9, "MASK", "allow_list", "cat", 1)],
        [MaskedSpan(4, 7, "MASK", "allow_list", "mat", 0)],
    ]
    write_sidecar(tmp_path / "sidecar.jsonl", spans)
    return tmp_path


def fill(corpus, *options):
    arguments = [
        "--input",
        corpus / "masked.txt",
        "--output",
        corpus / "filled.txt",
        "--report",
        corpus / "report.json",
    ]
    return main(["fill", *map(str, arguments), *map(str, options)])


@pytest.mark.parametrize("order", ["left_to_right", "all_at_once", "most_confident_first"])
def test_a_fill_with_a_model(corpus, tmp_path_factory, order):
    tokenizer = word_piece_tokenizer()
    model = bert_of_bias(tokenizer, {"cat": 3.0, "dog": 2.0, "paris": 1.0}, others=-30.0)
    # At so low a temperature the best word is drawn, so every word can be foretold.
    filler = ["--filler", save(model, tokenizer, tmp_path_factory.mktemp("fillers") / "tiny"), "--method", "sample"]
    options = [*filler, "--temperature", "0.01", "--sidecar", corpus / "sidecar.jsonl", "--order", order]
    assert fill(corpus, *options) == 0
    assert (corpus / "filled.txt").read_text().splitlines() == ["the cat sat", "Cat ran", "the cat"]
    assert json.loads((corpus / "report.json").read_text())["measured"]["restoration_rate"] == 2 / 3
    assert fill(corpus, *options, "--forbid-original") == 0
    assert (corpus / "filled.txt").read_text().splitlines() == ["the dog sat", "Paris ran", "the cat"]
    measured = json.loads((corpus / "report.json").read_text())["measured"]
    assert measured["restoration_rate"] == 0
    assert measured["forbidden_places"] == 3
    assert measured["forbidden_restorations"] == 2


def test_a_fill_by_frequency(corpus):
    options = ["--method", "unigram", "--word-counts", corpus / "word_counts.tsv", "--forbid-original"]
    for seed in range(5):
        assert fill(corpus, *options, "--sidecar", corpus / "sidecar.jsonl", "--seed", seed) == 0
        first, second, third = (corpus / "filled.txt").read_text().lower().splitlines()
        assert first in ("the dog sat", "the paris sat", "the mat sat")
        assert second in ("paris ran", "mat ran")
        assert third in ("the dog", "the cat", "the paris")


def test_without_a_sidecar_it_is_one_line(corpus, capsys):
    assert fill(corpus, "--method", "unigram", "--word-counts", corpus / "word_counts.tsv", "--forbid-original") == 1
    error = capsys.readouterr().err
    assert "method 'unigram': forbid_original=True needs to know what was masked; give --sidecar" in error
    assert error.count("\n") == 1
    assert not (corpus / "filled.txt").exists()


def test_who_fills_again_without_the_sidecar_learns_no_masked_word(tmp_path):
    """Without a secret the two fills differ at places with an original alone, and there the second writes it."""
    number = 2_000
    originals = ["dog" if line % 2 else "cat" for line in range(number)]
    (tmp_path / "masked.txt").write_text("the [MASK] sat\n" * number, encoding="utf-8")
    (tmp_path / "word_counts.tsv").write_text("dog\t6\ncat\t3\nparis\t1\n", encoding="utf-8")
    spans = [[MaskedSpan(4, 7, "MASK", "allow_list", original, 0)] for original in originals]
    write_sidecar(tmp_path / "sidecar.jsonl", spans)
    options = ["--method", "unigram", "--word-counts", tmp_path / "word_counts.tsv", "--seed", 1]

    def words():
        return [line.split()[1] for line in (tmp_path / "filled.txt").read_text(encoding="utf-8").splitlines()]

    assert fill(tmp_path, *options, "--sidecar", tmp_path / "sidecar.jsonl", "--forbid-original") == 0
    published = words()
    assert not any(map(str.__eq__, published, originals))
    assert fill(tmp_path, *options) == 0
    guesses = [
        guess == original for mine, guess, original in zip(published, words(), originals, strict=True) if mine != guess
    ]
    # Dogs are 6 and cats 3 of 10 draws, and the published word rules itself out: whoever guesses by these frequencies
    # alone is right more often than not, and never certain.
    assert 0.4 < sum(guesses) / len(guesses) < 0.9
    assert fill(tmp_path, *options, "--sidecar", tmp_path / "sidecar.jsonl", "--forbid-original") == 0
    assert words() == published


@pytest.mark.parametrize("method", ["top_1", "top_k", "free", "downstream"])
def test_methods_without_chance_cannot_hide_what_they_avoid(method):
    settings = {"kind": method, "forbid_original": True} | {"downstream": {"choose": "best"}, "top_k": {"k": 1}}.get(
        method, {}
    )
    with pytest.raises(ValueError, match="forbid_original"):
        TypeAdapter(FillingSettings).validate_python(settings)


def test_top_k_takes_no_word_from_beyond_the_k_best():
    """The three best are the, cat and dog; without the first two only dog is left, and no other moves up."""
    order = np.array([[5.0, 4.0, 3.0, 2.0, 1.0]], dtype=np.float32).repeat(200, axis=0)
    method = OneOfTheBest(3, np.ones(5, dtype=bool), MarkerRandomness(1))
    best = np.argsort(-order[0])[:3]
    skipped = [best[:2]] * 200
    assert set(method.choose(order, places(200), skipped=skipped).candidates.tolist()) == {best[2]}
    choice, _ = without(method, 200, WORDS[best[0]])
    assert set(choice.choose(order, places(200)).candidates.tolist()) == set(best[1:].tolist())
    # Where all K are passed over another word must do.
    assert set(method.choose(order, places(200), skipped=[best] * 200).candidates.tolist()) <= {3, 4}


def test_a_sidecar_that_can_be_read_once_is_refused(corpus, capsys):
    pipe = corpus / "pipe"
    os.mkfifo(pipe)
    options = ["--method", "unigram", "--word-counts", corpus / "word_counts.tsv", "--forbid-original"]
    assert fill(corpus, *options, "--sidecar", pipe) == 1
    error = capsys.readouterr().err
    assert "can be read only once, and a fill that keeps clear of masked words reads the sidecar twice" in error
    assert error.count("\n") == 1
