"""Word replacement by metric differential privacy: its promise held against an attacker who counts what comes out."""

import json
import math
from collections import Counter

import numpy as np
import pytest
from masked_sentences import masked
from scipy.stats import beta, chisquare
from stage_commands import settings as keys

from tasks.cli import main
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.errors import CorpusError, ParameterError
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.methods.metric import Metric, MetricFiller, WordEmbeddings, distances_between, groups_of

EMBEDDINGS = WordEmbeddings.load()
FREQUENCIES = WordFrequencies.of(
    (word, 100 - place) for place, word in enumerate("monday tuesday friday doctor nurse paris london guitar".split())
)
DRAWS = 4000


def filler(seed=1, **settings):
    public = EMBEDDINGS.vocabulary(FREQUENCIES, np.ones(len(FREQUENCIES.words), dtype=bool))
    return MetricFiller(EMBEDDINGS, public, Metric(kind="metric", **settings), MarkerRandomness(seed, b"secret"))


def drawn(by, original, draws=DRAWS):
    """How often each word comes out."""
    sentences = [masked(f"on {{MASK:{original}}} it", number) for number in range(1, draws + 1)]
    return Counter(fill.word for (fill,) in by.fill(sentences, lambda slots: None))


def probabilities(by, originals):
    """``(B, V)`` of each public word in the place of each original."""
    found = np.zeros((len(originals), len(by.public.words)))
    for row, pool in zip(found, by.pools(originals), strict=True):
        row[pool.words] = pool.weights / pool.weights.sum()
    return found


def bounds(count, total=DRAWS, error=1e-4):
    """Clopper and Pearson's interval of a share."""
    low = beta.ppf(error / 2, count, total - count + 1) if count else 0.0
    return low, beta.ppf(1 - error / 2, count + 1, total - count) if count < total else 1.0


@pytest.mark.parametrize(("one", "other"), [("monday", "tuesday"), ("monday", "saturdays"), ("guitar", "violin")])
def test_what_an_attacker_counts_stays_within_the_bound_and_comes_near_it(one, other):
    epsilon = 2.0
    by = filler(epsilon=epsilon)
    distance = math.dist(EMBEDDINGS.of(one), EMBEDDINGS.of(other))
    counts = [drawn(by, one), drawn(by, other)]
    largest = 0.0
    for word in by.public.words:
        for count, against in (counts, counts[::-1]):
            low, (_, high) = bounds(count[word])[0], bounds(against[word])
            assert low <= math.exp(epsilon * distance) * high, word
            largest = max(largest, math.log(low / high))
    # The bound is no empty one: the word itself tells what half of it allows, but for the interval.
    assert largest > 0.25 * epsilon * distance
    assert counts[0][one] > 0


@pytest.mark.parametrize("settings", [{"epsilon": 2.0}, {"epsilon": 6.0}, {"epsilon": 3.0, "customized": 3}])
def test_words_come_out_as_often_as_stated(settings):
    by = filler(**settings)
    for original in ("monday", "saturdays"):
        (shares,) = probabilities(by, [original])
        counts = drawn(by, original)
        assert set(counts) <= {word for word, share in zip(by.public.words, shares, strict=True) if share}
        found = np.array([counts[word] for word in by.public.words])[shares > 0]
        assert chisquare(found, DRAWS * shares[shares > 0]).pvalue > 1e-4


def test_the_distribution_is_the_exponential_of_half_the_distance():
    by = filler(epsilon=5.0)
    (shares,) = probabilities(by, ["nurse"])
    expected = [math.exp(-2.5 * math.dist(EMBEDDINGS.of("nurse"), EMBEDDINGS.of(word))) for word in by.public.words]
    assert shares == pytest.approx(np.array(expected) / sum(expected))


def test_within_a_group_no_word_is_told_from_another_by_more_than_epsilon():
    epsilon = 1.5
    by = filler(epsilon=epsilon, customized=3)
    words = by.public.words
    shares = probabilities(by, words)
    groups = groups_of(by.public.vectors, 3)
    assert groups[words.index("monday")] == groups[words.index("tuesday")] == groups[words.index("friday")]
    ratios = []
    for one, row in zip(groups, shares, strict=True):
        assert ((row > 0) == (groups == one)).all()
        for other in shares[groups == one]:
            ratios.append(np.log(row[row > 0] / other[other > 0]).max())
    assert 0.5 * epsilon < max(ratios) <= epsilon


def test_every_word_is_of_one_group_of_the_size_or_more():
    vectors = np.random.default_rng(1).normal(size=(23, 4))
    sizes = np.bincount(groups_of(vectors, 5))
    assert sizes.tolist() == [5, 5, 5, 8]
    # The first word is grouped with those nearest to it.
    nearest = np.argsort(distances_between(vectors[:1], vectors)[0])[:5]
    assert set(np.flatnonzero(groups_of(vectors, 5) == 0)) == set(nearest)


def test_of_a_large_epsilon_the_original_comes_back():
    by = filler(epsilon=1000.0)
    assert drawn(by, "Paris", 50) == {"paris": 50}
    # A word of several pieces is their mean, and so is a marker of several words.
    assert EMBEDDINGS.of("doctor nurse") == pytest.approx((EMBEDDINGS.of("doctor") + EMBEDDINGS.of("nurse")) / 2)
    assert drawn(by, "doctor nurse", 50).keys() <= {"doctor", "nurse"}


def test_a_word_without_an_embedding_is_drawn_by_frequency_and_counted():
    by = filler(epsilon=1000.0)
    assert [pool.by_distance for pool in by.pools(["ᚠᚢᚦ", "monday"])] == [False, True]
    assert probabilities(by, ["ᚠᚢᚦ"])[0] == pytest.approx(FREQUENCIES.counts / FREQUENCIES.counts.sum())
    ((first, second),) = by.fill([masked("{MASK:ᚠᚢᚦ} on {MASK:monday}")], lambda slots: None)
    assert (first.fallback, second.fallback, second.word) == (True, False, "monday")


def test_only_words_off_the_list_that_are_one_piece_are_drawn():
    frequencies = WordFrequencies.of([("the", 9), ("Paris", 5), ("paris", 1), ("kwyjibo", 4), ("shit", 9)])
    public = EMBEDDINGS.vocabulary(frequencies, np.array([word != "the" for word in frequencies.words]))
    assert (public.words, public.counts.tolist()) == (("paris",), [6])
    with pytest.raises(CorpusError, match="none to draw"):
        EMBEDDINGS.vocabulary(frequencies, np.array([word == "kwyjibo" for word in frequencies.words]))


def test_more_words_in_a_group_than_there_are_is_an_error():
    with pytest.raises(ParameterError, match="customized=9 is more than the 8 words"):
        filler(customized=9)


def test_equal_seeds_give_equal_fills_and_others_draw_anew(tmp_path, capsys):
    raw = [f"they met on {day} in town" for day in ("monday", "tuesday", "friday") * 20]
    (tmp_path / "masked.txt").write_text("they met on [MASK] in town\n" * len(raw), encoding="utf-8")
    write_sidecar(
        tmp_path / "sidecar.jsonl",
        [[MaskedSpan(12, 12 + len(line.split()[3]), "DATE", "x", line.split()[3], 0)] for line in raw],
    )
    given = ["--input", tmp_path / "masked.txt", "--method", "metric"]

    def filled(*options, seed=1, sidecar=True):
        arguments = [*given, "--output", tmp_path / "filled.txt", "--seed", seed, "--report", tmp_path / "report.json"]
        arguments += ["--sidecar", tmp_path / "sidecar.jsonl"] if sidecar else []
        if main(["fill", *map(str, arguments), *options]):
            return capsys.readouterr().err
        return (tmp_path / "filled.txt").read_text(encoding="utf-8")

    first = filled()
    measured = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["measured"]
    assert (measured["fills"], measured["fallback_count"]) == (60, 0)
    assert filled() == first
    # Draws of another seed or epsilon have nothing in common with these.
    others = [filled(seed=2), filled(*keys("epsilon=12.001")), filled(*keys("customized=50"))]
    assert len({first, *others}) == 4
    assert filled(*keys("epsilon=500")).splitlines() == raw
    assert "give --sidecar" in filled(sidecar=False)
