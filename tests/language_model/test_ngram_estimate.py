"""Modified Kneser-Ney: by hand, by an independent implementation, and as a distribution."""

import math
from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest

from tasks.language_model.encoded_text import encode_text
from tasks.language_model.ngram.folder import read_arpa, write_arpa
from tasks.language_model.ngram.kneser_ney import FALLBACK_DISCOUNTS, discounts_of, estimate
from tasks.language_model.vocabulary import END_ID, MASK_ID, SPECIAL_TOKENS, START_ID, Vocabulary

A, B, C, D = range(len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 4)
SIZE = len(SPECIAL_TOKENS) + 4


def random_lines(seed, sentences, words="abcdabca"):
    generator = np.random.default_rng(seed)
    return [" ".join(generator.choice(list(words), size=generator.integers(1, 9))) for _ in range(sentences)]


def test_counts_that_give_no_discount_take_fixed_ones():
    for numbers in ((10, 4, 2, 0), (2, 9, 1, 9)):
        found = discounts_of(np.repeat([1, 2, 3, 4], numbers))
        assert (found.values, found.estimated) == (FALLBACK_DISCOUNTS, False)


def naive_probability(lines, order, vocabulary):
    """Chen and Goodman's formulas with dictionaries, one n-gram at a time."""
    sentences = [(START_ID, *vocabulary.encode(line.split()), END_ID) for line in lines]
    raw = {n: Counter(s[i : i + n] for s in sentences for i in range(len(s) - n + 1)) for n in range(1, order + 1)}
    counts = {order: raw[order]}
    for n in range(1, order):
        before = defaultdict(set)
        for ngram in raw[n + 1]:
            before[ngram[1:]].add(ngram[0])
        counts[n] = Counter({g: raw[n][g] if g[0] == START_ID else len(before[g]) for g in raw[n]})
    counts[1].pop((START_ID,), None)
    discounts = {}
    for n in range(1, order + 1):
        n1, n2, n3, n4 = (sum(value == k for value in counts[n].values()) for k in range(1, 5))
        y = n1 / (n1 + 2 * n2)
        discounts[n] = [0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]

    def p(context, word):
        n = len(context) + 1
        lower = p(context[1:], word) if context else 1 / (len(vocabulary) - 2)
        following = {g: value for g, value in counts[n].items() if g[:-1] == context}
        total = sum(following.values())
        if not total:
            return lower
        taken = sum(discounts[n][min(value, 3)] for value in following.values())
        count = counts[n].get((*context, word), 0)
        return (count - discounts[n][min(count, 3)]) / total + taken / total * lower

    return p


def zipf_lines(seed, sentences):
    """Sentences of 80 words, some frequent and many rare, so that every order has counts of 1, 2, 3 and 4."""
    generator = np.random.default_rng(seed)
    shares = 1 / np.arange(1, 81) ** 1.6
    words, chances = [f"w{index}" for index in range(80)], shares / shares.sum()
    return [" ".join(generator.choice(words, size=generator.integers(1, 12), p=chances)) for _ in range(sentences)]


def test_all_probabilities_equal_those_of_a_naive_implementation():
    vocabulary = Vocabulary((*SPECIAL_TOKENS, *(f"w{index}" for index in range(70))))
    lines, order = zipf_lines(1, 400), 4
    model, discounts = estimate(encode_text(lines, vocabulary), order, len(vocabulary))
    assert all(found.estimated for found in discounts)
    naive, test = naive_probability(lines, order, vocabulary), encode_text(zipf_lines(2, 12), vocabulary)
    found = model.log_probabilities(test.tokens, test.offsets)
    for begin, end in pairwise(test.offsets.tolist()):
        assert found[begin] == 0.0
        for place in range(begin + 1, end):
            context = tuple(test.tokens[max(begin, place - order + 1) : place].tolist())
            assert found[place] == pytest.approx(np.log(naive(context, int(test.tokens[place]))), abs=1e-12)


@pytest.mark.parametrize(("order", "markers"), [(1, "token"), (3, "ignore"), (5, "token")])
def test_probabilities_sum_to_one_behind_every_context(encoded, order, markers):
    model, _ = estimate(encoded([line.replace("d", "[MASK]") for line in random_lines(3, 30)], markers), order, SIZE)
    for context in ([], [A], [A, B], [MASK_ID, A], [A, MASK_ID], [MASK_ID, MASK_ID], [C, D], [D, D, D], [A, B, C, A]):
        # Of all tokens but padding.
        sentences = [np.array([START_ID, *context, word]) for word in range(1, SIZE)]
        found = [math.exp(model.log_probabilities(each, np.array([0, len(each)]))[-1]) for each in sentences]
        assert found.pop(START_ID - 1) == 0.0
        assert sum(found) == pytest.approx(1.0, abs=1e-12)


def test_a_file_has_the_probabilities_of_its_model(tmp_path, encoded, vocabulary):
    """Of masked text, with markers as contexts only."""
    path = tmp_path / "model.arpa"
    lines = ["a b c", "a b", "[MASK] b c a", "b [MASK] a", "c c a b [PERSON]", "a"] * 3
    model, _ = estimate(encoded(lines, "ignore"), 3, SIZE)
    write_arpa(path, model, vocabulary)
    text = encoded(["a b c d", "c b a", "[MASK] a", "unheard b", "a [PERSON] c c"], "token")
    found = read_arpa(path, vocabulary).log_probabilities(text.tokens, text.offsets)
    np.testing.assert_allclose(found, model.log_probabilities(text.tokens, text.offsets), atol=1e-6)
    assert path.stat().st_mode & 0o777 == 0o600
    # By hand: a bigram file in ARPA's form. What is never predicted is not there but for the start.
    write_arpa(path, estimate(encoded(["a b", "a b", "a c"]), 2, SIZE)[0], vocabulary)
    written = path.read_text(encoding="utf-8").split("\n")
    assert written[:6] == ["\\data\\", "ngram 1=19", "ngram 2=5", "", "\\1-grams:", "-1.5563025\t<unk>\t0"]  # 1/36
    assert written[6].startswith("-99\t<s>\t-0.301")  # 0.5 is left for the order below
    assert not any("<pad>" in line for line in written)
