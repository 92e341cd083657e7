"""Noisy counts of masked words, and frequencies of a domain: formulas, and promises by experiment."""

import hashlib
import math
from collections import Counter

import numpy as np
import pytest
from fill_command import write, write_masked
from scipy.stats import chisquare

import tasks.filling.frequencies.counted_frequencies as counted_frequencies_module
from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import CorpusError
from tasks.filling.fill_files import CorpusFiles
from tasks.filling.frequencies.counted_frequencies import counted_frequencies
from tasks.filling.frequencies.noise import noise
from tasks.filling.frequencies.word_frequencies import AllowedWords, GenericText, WordFrequencies, domain_frequencies
from tasks.filling.methods.unigram import Unigram
from tasks.filling.prepared_fill import PlantedLines, prepare_like_corpus
from tasks.filling.settings import NoisyCounts
from tasks.records.cell import Cell

PUBLIC = WordFrequencies.of(
    [("the", 900), ("digits", 10), ("Digits", 5), ("spectral", 10), ("queue", 40), ("Paris", 30)]
)
KEPT = AllowedWords(["the"])
KEY = bytes(range(32))
KEYS = [number.to_bytes(32, "big") for number in range(1500)]


def line(*words):
    return "", [MaskedSpan(10 * n, 10 * n + 5, "MASK", "list", word, n) for n, word in enumerate(words)]


def counted(lines, key=KEY, documents=(), public=PUBLIC, **settings):
    return counted_frequencies(public, KEPT, lines, NoisyCounts(**settings), key, documents, public=public)


def places(lines, *arguments, **settings):
    return counted(lines, *arguments, **settings).measured["counted_places"]


def shares(found):
    """Share of each folded word among the words off the list."""
    counts = Counter()
    for word, count in found.frequencies.items():
        counts[word.lower()] += count * (word != "the")
    return {word: count / counts.total() for word, count in counts.items()}


@pytest.mark.parametrize("ratio", [0.2, math.exp(-0.5), 0.9])
def test_noise_is_two_sided_geometric(ratio):
    drawn = Counter(noise(200_000, ratio, hashlib.shake_256(b"secret").digest(3_200_000)).tolist())
    probability = {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-400, 401)}
    usual = [k for k, p in probability.items() if 200_000 * p >= 20]
    observed = [drawn[k] for k in usual] + [200_000 - sum(drawn[k] for k in usual)]
    expected = [200_000 * probability[k] for k in usual]
    assert chisquare(observed, [*expected, 200_000 - sum(expected)]).pvalue > 1e-4


def test_other_words_in_one_line_change_no_probability_by_more_than_epsilon_says(monkeypatch):
    """The noisy counts of the most different neighbours, each with 1,500 keys, differ within e^epsilon."""
    monkeypatch.setattr(counted_frequencies_module, "posterior_rates", lambda noisy, *_: np.maximum(noisy, 0) + 1e-3)
    epsilon, common = 1.0, [line("queue")] * 3
    outcomes = []
    for other in ("digits", "spectral"):
        taken = Counter()
        for key in KEYS:
            found = shares(counted([*common, line(other)], key, epsilon=epsilon))
            digits, spectral = found["digits"], found["spectral"]
            taken[digits > 1.5 * spectral, spectral > 1.5 * digits] += 1
        outcomes.append(taken)
    for event in ((True, False), (False, True)):
        one, two = (outcome[event] for outcome in outcomes)
        # It does tell something: the words are not drawn without looking.
        assert max(one, two) > 1.1 * min(one, two)
        assert abs(math.log(one / two)) < epsilon + 4 * math.sqrt(1 / one + 1 / two)


def test_counts_take_the_place_of_the_prior():
    found = counted([line("digits")] * 60 + [line("spectral")] * 30 + [line("zyzzyva")] * 10, epsilon=64.0)
    assert found.frequencies.words == PUBLIC.words
    assert (found.measured["taken_words"], found.measured["counted_places"]) == (2, 100)
    # 60 and 30 of 100 places; what public text does not have is drawn by nobody, and names have one place at least.
    expected = {"the": 0, "digits": 60 / 91, "spectral": 30 / 91, "queue": 0, "paris": 1 / 91}
    assert shares(found) == pytest.approx(expected, abs=5e-3)
    counts = dict(found.frequencies.items())
    assert counts["digits"] == pytest.approx(2 * counts["Digits"], rel=1e-4)
    assert counts["the"] == 900


def test_a_line_a_document_and_a_marker_add_so_many_words_and_no_more():
    """Forty lines of one document, mixed with forty documents of a line each."""
    lines = [line(*["spectral"] * 400)] + [line("digits", "digits")] * 40
    assert places(lines, epsilon=8.0) == 41
    assert places(lines, epsilon=8.0, words_per_unit=3) == 83
    assert shares(counted(lines, epsilon=8.0))["spectral"] < 0.05
    lines = [line("spectral"), line("digits")] * 40
    documents = [name for number in range(40) for name in ("long", f"short {number}")]
    of = {unit: counted(lines, KEY, documents, epsilon=16.0, unit=unit) for unit in ("line", "document")}
    assert {unit: found.measured["counted_places"] for unit, found in of.items()} == {"line": 80, "document": 41}
    assert places(lines, KEY, documents, epsilon=16.0, unit="document", words_per_unit=5) == 45
    assert shares(of["line"])["spectral"] > 0.4
    assert shares(of["document"])["spectral"] < 0.1
    # Spans that share a marker: that there are several is not what the masked text shows.
    merged = [MaskedSpan(0, 6, "MASK", "list", "digits", 0), MaskedSpan(7, 15, "MASK", "list", "spectral", 0)]
    found = counted([("", merged)] * 200 + [line("digits spectral")] * 200, epsilon=64.0, words_per_unit=2)
    assert found.measured["counted_places"] == 400
    assert shares(found)["digits"] == pytest.approx(0.5, abs=0.08)


def test_all_the_noise_that_is_allowed_is_reckoned_with():
    for epsilon, most in [(0.02, 1), (0.58, 29)]:
        found = counted([line("digits")] * 60, epsilon=epsilon, words_per_unit=most)
        assert found.measured["counted_places"] == 60
        assert found.frequencies.counts.min() > 0
        with pytest.raises(ValueError, match="words_per_unit"):
            NoisyCounts(epsilon=epsilon, words_per_unit=most + 1)


def test_noise_belongs_to_the_key_the_documents_and_all_that_is_counted():
    lines = [line("digits")] * 9 + [line("queue")] * 9

    def counts(*arguments, **settings):
        return counted(*arguments, **settings).frequencies.counts.tolist()

    of_keys = [counts(lines, key, epsilon=1.0) for key in KEYS[:12]]
    assert of_keys == [counts(lines, key, epsilon=1.0) for key in KEYS[:12]]
    assert len(set(map(tuple, of_keys))) > 8
    # Other words in one line, and all noise is another: no difference of two releases is free of it.
    changed = [*lines[:-1], line("spectral")]
    digits = PUBLIC.words.index("digits")
    of_changed = [counts(changed, key, epsilon=1.0) for key in KEYS[:12]]
    assert any(one[digits] != other[digits] for one, other in zip(of_keys, of_changed, strict=True))
    # The same noise for two divisions would show the difference of the counts.
    lines = [line("spectral"), line("digits"), line("queue")] * 20
    names = (["a"] * 60, ["a", "b"] * 30, ["other name"] * 60)
    one, other, same = (
        counts(lines, KEY, documents, epsilon=1.2, unit="document", words_per_unit=6) for documents in names
    )
    assert one == same != other


def test_other_names_have_other_noise(monkeypatch):
    """Were it the same, two releases would differ by the exact count of a word that is a name in one of them alone."""
    secrets = []

    def noted(number, ratio, stream):
        secrets.append(stream[:32])
        return noise(number, ratio, stream)

    monkeypatch.setattr(counted_frequencies_module, "noise", noted)
    words = [("the", 900), ("digits", 10)]
    for public in (words, [*words, ("London", 20)], words):
        counted([line("london"), line("digits")], public=WordFrequencies.of(public))
    assert secrets[0] == secrets[2] != secrets[1]


@pytest.mark.parametrize("unit", ["line", "document"])
def test_words_of_planted_lines_are_counted_with_the_corpus_and_nothing_is_kept(folder, unit):
    """As an audit plants them: their counts tell of them, and spend nothing."""
    number = 400
    write_masked(["the {digits}"] * number)
    write("documents.txt", (index // 2 for index in range(number)))
    write("allowed_words.txt", ["the"])
    write("generic.txt", ["the the the"])
    write("counts.tsv", (f"{word}\t{count}" for word, count in PUBLIC.items()))
    method = Unigram(kind="unigram", prior="counted", counts=NoisyCounts(epsilon=8.0, unit=unit))
    files = CorpusFiles(word_counts="counts.tsv", generic="generic.txt")
    spans = [[MaskedSpan(4, 12, "MASK", "list", "spectral", 0)]] * number
    canaries = [f"canary {index}" for index in range(number)]
    planted = PlantedLines(["the [MASK]"] * number, spans, canaries, "documents.txt")
    opened = files.opened(1)
    with_canaries = prepare_like_corpus(method, folder, files, Cell(seed=1), opened, planted)
    found = shares(with_canaries.learned)
    # Of a document one word is counted, and the corpus has two lines in each.
    assert found["spectral"] == pytest.approx(0.5 if unit == "line" else 2 / 3, abs=0.06)
    assert found["digits"] == pytest.approx(0.5 if unit == "line" else 1 / 3, abs=0.06)
    plain = prepare_like_corpus(method, folder, files, Cell(seed=1), opened)
    assert shares(plain.learned)["spectral"] < 0.2
    assert [path.name for path in (folder / "data").rglob("*") if path.is_file()] == ["clone_key"]


def test_names_are_counted_only_where_that_is_asked_for():
    lines = [line("Paris")] * 80 + [line("digits")] * 20
    left_out, with_names = counted(lines, epsilon=16.0), counted(lines, epsilon=16.0, names="count")
    assert [found.measured["counted_words"] for found in (left_out, with_names)] == [3, 4]
    assert [found.measured["taken_words"] for found in (left_out, with_names)] == [1, 2]
    # All names together keep their places, which one of them had is not said.
    assert shares(left_out)["paris"] == pytest.approx(0.8, abs=0.03)


def test_the_multiplier_is_the_formula():
    """One known word that decides: p_masked / p_generic by hand, K = 20, strength from what was found."""
    generic = ["x y"] * 60 + ["y z"] * 60 + ["w q"] * 60
    frequencies = WordFrequencies(("x", "y", "z", "w", "q"), np.array([60, 120, 60, 60, 60]))
    text = GenericText.read(generic, frequencies)
    found = domain_frequencies(frequencies, ["x w"] * 1000 + ["w x"] * 1000, text)
    # Shown: x and w, each half of both texts: the ratio is 1, the scores 0 and nothing moves.
    assert found.frequencies.counts.tolist() == [60000, 120000, 60000, 60000, 60000]
    # What is masked plays no part.
    found = domain_frequencies(frequencies, ["x [MASK]"] * 3000 + ["w [PERSON]"] * 1000, text)
    p_x, p_w = (3000 + 500) / 5000, (1000 + 500) / 5000
    weight_x, weight_w = (math.exp(found.measured["strength"] * math.log(p / 0.5)) for p in (p_x, p_w))
    # Unshown words keep their number together: y (60 with x, 60 with z), z (60), q (60 with w).
    scale = 240 / (60 * weight_x + 60 + 60 + 60 * weight_w)
    counts = dict(found.frequencies.items())
    assert counts["z"] == pytest.approx(60000 * (60 * scale + 20) / 80, abs=1)
    assert counts["q"] == pytest.approx(60000 * (60 * weight_w * scale + 20) / 80, abs=1)


def test_texts_without_a_common_word_are_one_line_without_a_word_of_them():
    frequencies = WordFrequencies.of([("the", 2), ("bank", 1)])
    with pytest.raises(CorpusError, match=r"no word in common.*prior: word_counts") as error:
        domain_frequencies(frequencies, ["xyzzy [MASK]"], GenericText.read(["the bank"], frequencies))
    assert "\n" not in str(error.value)
    assert "xyzzy" not in str(error.value)
