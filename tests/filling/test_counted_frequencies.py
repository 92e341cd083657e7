"""Noisy counts of masked words, and frequencies of a domain: formulas, and promises by experiment."""

import hashlib
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

import tasks.filling.frequencies.counted_frequencies as counted_frequencies_module
from tasks.corpora.sidecar import MaskedSpan, write_sidecar
from tasks.errors import CorpusError
from tasks.filling.fill import CorpusFiles
from tasks.filling.frequencies.counted_frequencies import counted_frequencies
from tasks.filling.frequencies.noise import noise, posterior_rates
from tasks.filling.frequencies.word_frequencies import (
    AllowedWords,
    EstimatedFrequencies,
    GenericText,
    WordFrequencies,
    domain_frequencies,
)
from tasks.filling.methods.unigram import Unigram
from tasks.filling.prepared_fill import PlantedLines, prepare_like_corpus
from tasks.filling.settings import NoisyCounts
from tasks.records.cell import Cell

PUBLIC = WordFrequencies.of(
    [("the", 900), ("digits", 10), ("Digits", 5), ("spectral", 10), ("queue", 40), ("Paris", 30)]
)
KEPT = AllowedWords(["the"])
KEY = bytes(range(32))


def line(*words: str, text: str = "") -> tuple[str, list[MaskedSpan]]:
    return text, [MaskedSpan(10 * n, 10 * n + 5, "MASK", "list", word, n) for n, word in enumerate(words)]


def counted(lines: list[tuple[str, list[MaskedSpan]]], key: bytes = KEY, **settings: object):
    return counted_frequencies(PUBLIC, KEPT, lines, NoisyCounts(**settings), key)


def shares(found) -> dict[str, float]:
    """Share of each form among the words off the list."""
    counts = dict(zip(found.frequencies.words, found.frequencies.counts.tolist(), strict=True))
    total = sum(count for word, count in counts.items() if word != "the")
    return {word: count / total for word, count in counts.items() if word != "the"}


def test_noise_is_two_sided_geometric():
    for ratio in [0.2, math.exp(-0.5), 0.9]:
        drawn = Counter(noise(200_000, ratio, hashlib.shake_256(b"secret").digest(3_200_000)).tolist())
        probability = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-400, 401)}
        usual = [k for k, p in probability.items() if 200_000 * p >= 20]
        observed = [drawn[k] for k in usual] + [200_000 - sum(drawn[k] for k in usual)]
        expected = [200_000 * probability[k] for k in usual]
        expected.append(200_000 - sum(expected))
        assert chisquare(observed, expected).pvalue > 1e-4


def test_other_words_in_one_line_change_no_probability_by_more_than_epsilon_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neighbours as far apart as can be, each with 4,000 keys: the noisy counts tell them apart, within e^epsilon."""
    monkeypatch.setattr(counted_frequencies_module, "posterior_rates", lambda noisy, *_: np.maximum(noisy, 0) + 1e-3)
    epsilon, keys = 1.0, 1500
    common = [line("queue")] * 3
    outcomes = []
    for other in ("digits", "spectral"):
        taken: Counter[tuple[bool, bool]] = Counter()
        for number in range(keys):
            key = number.to_bytes(32, "big")
            found = shares(counted([*common, line(other)], key, epsilon=epsilon))
            digits = found["digits"] + found["Digits"]
            taken[digits > 1.5 * found["spectral"], found["spectral"] > 1.5 * digits] += 1
        outcomes.append(taken)
    for event in ((True, False), (False, True)):
        one, two = (outcome[event] for outcome in outcomes)
        # It does tell something: the words are not drawn without looking.
        assert max(one, two) > 1.1 * min(one, two)
        spread = math.sqrt(1 / one + 1 / two)
        assert abs(math.log(one / two)) < epsilon + 4 * spread


def test_counts_take_the_place_of_the_prior() -> None:
    lines = [line("digits")] * 60 + [line("spectral")] * 30 + [line("zyzzyva")] * 10
    found = counted(lines, epsilon=64.0)
    assert found.frequencies.words == PUBLIC.words
    assert found.measured["taken_words"] == 2
    assert found.measured["counted_places"] == 100
    # 60 and 30 of 100 places; what public text does not have is drawn by nobody, and names have one place at least.
    assert shares(found) == pytest.approx(
        {"digits": 40 / 91, "Digits": 20 / 91, "spectral": 30 / 91, "queue": 0, "Paris": 1 / 91}, abs=5e-3
    )
    assert shares(found)["digits"] == pytest.approx(2 * shares(found)["Digits"], rel=1e-4)
    assert dict(zip(found.frequencies.words, found.frequencies.counts, strict=True))["the"] == 900


def test_a_line_adds_so_many_words_and_no_more() -> None:
    lines = [line(*["spectral"] * 400)] + [line("digits", "digits")] * 40
    assert counted(lines, epsilon=8.0).measured["counted_places"] == 41
    assert counted(lines, epsilon=8.0, words_per_unit=3).measured["counted_places"] == 83
    assert shares(counted(lines, epsilon=8.0))["spectral"] < 0.05


def test_a_document_adds_so_many_words_and_no_more() -> None:
    """Forty lines of one document, mixed with forty documents of a line each."""
    lines = [line("spectral"), line("digits")] * 40
    documents = [name for number in range(40) for name in ("long", f"short {number}")]

    def of(unit: str, most: int = 1):
        settings = NoisyCounts(epsilon=16.0, unit=unit, words_per_unit=most)
        return counted_frequencies(PUBLIC, KEPT, lines, settings, KEY, documents)

    assert of("line").measured["counted_places"] == 80
    assert of("document").measured["counted_places"] == 41
    assert of("document", 5).measured["counted_places"] == 45
    assert shares(of("line"))["spectral"] > 0.4
    assert shares(of("document"))["spectral"] < 0.1
    assert of("document").measured["unit"] == "document"


def test_all_the_noise_that_is_allowed_is_reckoned_with():
    for epsilon, most in [(0.02, 1), (0.58, 29)]:
        found = counted([line("digits")] * 60, epsilon=epsilon, words_per_unit=most)
        assert found.measured["counted_places"] == 60
        assert found.frequencies.counts.min() > 0
        with pytest.raises(ValueError, match="words_per_unit"):
            NoisyCounts(epsilon=epsilon, words_per_unit=most + 1)


def test_other_documents_have_other_noise() -> None:
    """Whoever could have the same noise for two divisions would learn the difference of the counts."""
    lines = [line("spectral"), line("digits"), line("queue")] * 20
    settings = NoisyCounts(epsilon=1.2, unit="document", words_per_unit=6)
    one, other, same = (
        counted_frequencies(PUBLIC, KEPT, lines, settings, KEY, documents).frequencies.counts.tolist()
        for documents in (["a"] * 60, ["a", "b"] * 30, ["other name"] * 60)
    )
    assert one == same != other


def test_documents_that_are_none_are_refused() -> None:
    for lines, documents, message in (
        (3, "abc", r"3 lines .* \(3 documents\), .* set unit: line"),
        (2, "a", "the sidecar has 2 lines and the documents file 1"),
        (2, "aaa", "the sidecar has 2 lines and the documents file 3"),
    ):
        with pytest.raises(CorpusError, match=message):
            counted_frequencies(PUBLIC, KEPT, [line("queue")] * lines, NoisyCounts(unit="document"), KEY, documents)


def test_noise_belongs_to_the_key_and_to_all_that_is_counted() -> None:
    lines = [line("digits")] * 9 + [line("queue")] * 9

    def counts(*arguments: object, **settings: object) -> list[int]:
        return counted(*arguments, epsilon=1.0, **settings).frequencies.counts.tolist()

    keys = [number.to_bytes(32, "big") for number in range(12)]
    assert [counts(lines, key) for key in keys] == [counts(lines, key) for key in keys]
    assert len({tuple(counts(lines, key)) for key in keys}) > 8
    # Other words in one line, and all noise is another: no difference of two releases is free of it.
    changed = [*lines[:-1], line("spectral")]
    digits = PUBLIC.words.index("digits")
    assert any(counts(lines, key)[digits] != counts(changed, key)[digits] for key in keys)


@pytest.mark.parametrize("unit", ["line", "document"])
def test_words_of_planted_lines_are_counted_with_the_corpus_and_nothing_is_kept(tmp_path, monkeypatch, unit):
    """As an audit plants them: their counts tell of them, and spend nothing."""
    monkeypatch.chdir(tmp_path)
    number = 400
    (tmp_path / "text.txt").write_text("the [MASK]\n" * number, encoding="utf-8")
    write_sidecar(tmp_path / "sidecar.jsonl", [[MaskedSpan(4, 9, "MASK", "list", "digits", 0)]] * number)
    (tmp_path / "documents.txt").write_text("".join(f"{line // 2}\n" for line in range(number)), encoding="utf-8")
    (tmp_path / "allowed_words.txt").write_text("the\n", encoding="utf-8")
    (tmp_path / "generic.txt").write_text("the the the\n", encoding="utf-8")
    counts = "".join(f"{word}\t{count}\n" for word, count in zip(PUBLIC.words, PUBLIC.counts.tolist(), strict=True))
    (tmp_path / "counts.tsv").write_text(counts, encoding="utf-8")
    method = Unigram(kind="unigram", prior="counted", counts=NoisyCounts(epsilon=8.0, unit=unit))
    files = CorpusFiles(word_counts="counts.tsv", generic="generic.txt")
    planted = PlantedLines(
        ["the [MASK]"] * number,
        [[MaskedSpan(4, 12, "MASK", "list", "spectral", 0)]] * number,
        [f"canary {line}" for line in range(number)],
        "documents.txt",
    )
    opened = files.opened(1)
    with_canaries = prepare_like_corpus(method, tmp_path, files, Cell(seed=1), opened, planted)
    found = shares(with_canaries.learned)
    # Of a document one word is counted, and the corpus has two lines in each.
    assert found["spectral"] == pytest.approx(0.5 if unit == "line" else 2 / 3, abs=0.06)
    assert found["digits"] + found["Digits"] == pytest.approx(0.5 if unit == "line" else 1 / 3, abs=0.06)
    plain = prepare_like_corpus(method, tmp_path, files, Cell(seed=1), opened)
    assert shares(plain.learned)["spectral"] < 0.2
    assert [path.name for path in (tmp_path / "data").rglob("*") if path.is_file()] == ["clone_key"]


def simulated(ratio, words=40_000):
    """True rates, rates expected without counts, and noisy counts: nine tenths of the words hardly occur."""
    random = np.random.default_rng(1)
    expected = np.exp(random.normal(-4, 2, words))
    factor = random.choice([0.02, 1.0, 200.0], words, p=[0.9, 0.08, 0.02])
    rates = random.exponential(expected * factor)
    one_side, other = random.geometric(1 - ratio, (2, words))
    return rates, expected, random.poisson(rates) + one_side - other


def test_words_with_the_same_estimate_have_that_rate_on_the_average():
    for ratio in (math.exp(-4), math.exp(-1)):
        rates, expected, noisy = simulated(ratio)
        estimate = posterior_rates(noisy, expected, ratio)
        order = np.argsort(estimate)
        # Rare words together, common ones in finer parts.
        edges = np.searchsorted(estimate[order], [0, 0.1, 0.5, 2, 8, 32, np.inf])
        for first, last in itertools.pairwise(edges):
            some = order[first:last]
            assert len(some) > 80
            # Rates of some hundredths of a place leave hardly a trace in the counts of one text.
            assert estimate[some].mean() == pytest.approx(rates[some].mean(), rel=0.25, abs=1e-2)
        assert estimate.sum() == pytest.approx(rates.sum(), rel=0.05)


def test_one_word_of_a_marker_counts() -> None:
    """Spans that share a marker: that there are several is not what the masked text shows."""
    merged = [MaskedSpan(0, 6, "MASK", "list", "digits", 0), MaskedSpan(7, 15, "MASK", "list", "spectral", 0)]
    found = counted([("", merged)] * 200 + [line("digits spectral")] * 200, epsilon=64.0, words_per_unit=2)
    assert found.measured["counted_places"] == 400
    both = shares(found)
    assert both["digits"] + both["Digits"] == pytest.approx(0.5, abs=0.08)


def test_names_are_counted_only_where_that_is_asked_for() -> None:
    lines = [line("Paris")] * 80 + [line("digits")] * 20
    left_out, with_names = counted(lines, epsilon=16.0), counted(lines, epsilon=16.0, names="count")
    assert left_out.measured["counted_words"] == 3
    assert with_names.measured["counted_words"] == 4
    assert (left_out.measured["taken_words"], with_names.measured["taken_words"]) == (1, 2)
    # All names together keep their places, which one of them had is not said.
    assert shares(left_out)["Paris"] == pytest.approx(0.8, abs=0.03)


def test_other_names_have_other_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it the same, two releases would differ by the exact count of a word that is a name in one of them alone."""
    secrets = []

    def noted(number: int, ratio: float, stream: bytes) -> np.ndarray:
        secrets.append(stream[:32])
        return noise(number, ratio, stream)

    monkeypatch.setattr(counted_frequencies_module, "noise", noted)
    words = [("the", 900), ("digits", 10)]
    for public in (words, [*words, ("London", 20)], words):
        counted_frequencies(WordFrequencies.of(public), KEPT, [line("london"), line("digits")], NoisyCounts(), KEY)
    assert secrets[0] != secrets[1]
    assert secrets[0] == secrets[2]


BANK = ["the bank pays interest today", "our bank has a low price", "the price of money is interest"]
SEA = ["the ship sails on water today", "our ship has a low mast", "the captain of water is old"]


def frequencies_of(lines: list[str]) -> WordFrequencies:
    counts: dict[str, int] = {}
    for word in " ".join(lines).split():
        counts[word] = counts.get(word, 0) + 1
    return WordFrequencies.of(counts.items())


def count(frequencies: WordFrequencies, word: str) -> float:
    return float(frequencies.counts[frequencies.words.index(word)])


def estimated(frequencies: WordFrequencies, masked: list[str], generic: list[str]) -> EstimatedFrequencies:
    return domain_frequencies(frequencies, masked, GenericText.read(generic, frequencies))


def test_the_multiplier_is_the_formula():
    """One known word that decides: p_masked / p_generic by hand, K = 20, strength from what was found."""
    generic = ["x y"] * 60 + ["y z"] * 60 + ["w q"] * 60
    frequencies = WordFrequencies(("x", "y", "z", "w", "q"), np.array([60, 120, 60, 60, 60]))
    masked = ["x w"] * 1000 + ["w x"] * 1000
    found = estimated(frequencies, masked, generic)
    # Shown: x and w, each half of both texts: the ratio is 1, the scores 0 and nothing moves.
    assert found.frequencies.counts.tolist() == [60000, 120000, 60000, 60000, 60000]
    masked = ["x"] * 3000 + ["w"] * 1000
    found = estimated(frequencies, masked, generic)
    p_x, p_w = (3000 + 500) / 5000, (1000 + 500) / 5000
    strength = found.measured["strength"]
    weights = {"x": math.exp(strength * math.log(p_x / 0.5)), "w": math.exp(strength * math.log(p_w / 0.5))}
    # Unshown words keep their number together: y (60 with x, 60 with z), z (60), q (60 with w).
    total = 60 * weights["x"] + 60 + 60 + 60 * weights["w"]
    scale = 240 / total
    z = (60 * scale + 20) / 80
    q = (60 * weights["w"] * scale + 20) / 80
    assert count(found.frequencies, "z") == pytest.approx(60000 * z, abs=1)
    assert count(found.frequencies, "q") == pytest.approx(60000 * q, abs=1)


def test_masked_words_play_no_part():
    generic = (BANK + SEA) * 10
    frequencies = frequencies_of(generic)
    one = estimated(frequencies, ["the bank pays [MASK] today"] * 9, generic)
    other = estimated(frequencies, ["the bank pays [MONEY] today"] * 9, generic)
    assert one.frequencies.counts.tolist() == other.frequencies.counts.tolist()


def test_texts_without_a_common_word_are_one_line():
    frequencies = frequencies_of(BANK)
    with pytest.raises(CorpusError, match=r"no word in common.*prior: word_counts") as error:
        estimated(frequencies, ["xyzzy [MASK]"], BANK)
    assert "\n" not in str(error.value)
    assert "xyzzy" not in str(error.value)
