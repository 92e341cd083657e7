"""Choices that the downstream language model weighs, and what it says of words."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from masked_sentences import masked
from scripted_model import ScriptedModel

from tasks.filling.choices.downstream import ChooseDownstream, DownstreamFiller, DownstreamWeighing
from tasks.filling.choices.log_linear import DrawLogLinear, LogLinearScores
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.kept_words import KeptWords
from tasks.filling.log_linear.downstream_scores import DownstreamScores, Surroundings
from tasks.filling.log_linear.preparation import prepared_weighing
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.masked_lm.masked_filler import MaskedFiller
from tasks.filling.settings import Downstream
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.folder import save_model
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary

WORDS = ("the", "sat", "cat", "dog", "cow")
ALLOWED = np.array([False, False, True, True, True])
FILLER = {"cat": 0.6, "dog": 0.3, "cow": 0.05}
DRAWS = 3000


class ScriptedWords:
    """Says of each word what the script says; keeps what it was asked."""

    def __init__(self, script):
        self.script, self.asked = script, []

    def score(self, places, words):
        self.asked += list(zip(places, words, strict=True))
        return [np.array([self.script(place, word) for word in row]) for place, row in zip(places, words, strict=True)]


def filled(sentences, language_model, weight, *, k=3, choose="best", final=None, batch=64, seed=1):
    model = ScriptedModel(WORDS, lambda words, position: FILLER)
    plain = LogLinearScores(1.0, np.zeros(5, dtype=np.float32))
    choice = ChooseDownstream(
        DownstreamWeighing(plain, final or plain, weight), WORDS, ALLOWED, MarkerRandomness(seed), language_model,
        k=k, choose=choose,
    )  # fmt: skip
    filler = DownstreamFiller(MaskedFiller(model, model.candidates(), choice, batch_sentences=batch), choice)
    return [[fill.word for fill in fills] for fills in filler.fill(sentences, lambda _: None)]


def one_slot(number=1):
    return [masked("the {PERSON:x} sat", line) for line in range(1, number + 1)]


def test_the_language_model_flips_a_choice():
    """The filler says 0.6 to 0.3, the language model 1 to 4: with weight 1 that is 0.6 to 1.2."""
    likes_dogs = ScriptedWords(lambda place, word: math.log(4.0 if word == "dog" else 1.0))
    assert filled(one_slot(), likes_dogs, 0.0) == [["cat"]]
    assert filled(one_slot(), likes_dogs, 0.4) == [["cat"]]  # 0.6 to 0.3 * 4 ** 0.4 = 0.52
    assert filled(one_slot(), likes_dogs, 1.0) == [["dog"]]


def test_only_the_k_best_are_scored():
    likes_cows = ScriptedWords(lambda place, word: 100.0 if word == "cow" else 0.0)
    assert filled(one_slot(), likes_cows, 1.0, k=2) == [["cat"]]
    assert filled(one_slot(), likes_cows, 1.0, k=3) == [["cow"]]
    assert [words for _, words in likes_cows.asked] == [["cat", "dog"], ["cat", "dog", "cow"]]


def test_a_draw_among_all_words_has_the_shares_of_the_product():
    doubles_cows = ScriptedWords(lambda place, word: math.log(6.0 if word == "cow" else 1.0))
    counts = Counter(fills[0] for fills in filled(one_slot(DRAWS), doubles_cows, 1.0, choose="sample"))
    for word, share in {"cat": 0.5, "dog": 0.25, "cow": 0.25}.items():
        assert abs(counts[word] / DRAWS - share) < 4 * math.sqrt(share * (1 - share) / DRAWS)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_without_weight_it_draws_what_log_linear_draws(k):
    model = ScriptedModel(WORDS, lambda words, position: FILLER)
    plain = DrawLogLinear(LogLinearScores(1.0, np.zeros(5, dtype=np.float32)), ALLOWED, MarkerRandomness(1))
    fills = MaskedFiller(model, model.candidates(), plain, batch_sentences=8).fill(one_slot(200), lambda _: None)
    random = ScriptedWords(lambda place, word: hash(word) % 7)
    assert filled(one_slot(200), random, 0.0, k=k, choose="sample") == [[fill.word for fill in row] for row in fills]


def test_it_reads_the_fills_before_and_what_follows_up_to_the_next_marker():
    heard = ScriptedWords(lambda place, word: 0.0)
    assert filled([masked("the {PERSON:x} sat the {PERSON:x} sat", 1)], heard, 1.0) == [["cat", "cat"]]
    assert [place for place, _ in heard.asked] == [
        Surroundings("the ", " sat the ", False),
        Surroundings("the cat sat the ", " sat", True),
    ]


def test_batches_of_any_size_write_the_same():
    sentences = [masked("the {PERSON:x} sat the {PERSON:x} sat", line) for line in range(1, 60)]
    script = ScriptedWords(lambda place, word: len(place.before) % 3 * (word == "cow"))
    fills = [filled(sentences, script, 1.0, choose="sample", batch=batch) for batch in (1, 7, 64)]
    assert fills[0] == fills[1] == fills[2]


# The language model itself ---------------------------------------------------------------------------------------

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "the", "cat", "dog", "sat", "on", "mat", "cat's"))
FREQUENCIES = WordFrequencies(("the", "cat", "dog", "Zebra", "yak"), np.array([50, 30, 10, 3, 1]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model = TransformerLanguageModel(
        ArchitectureSettings(layers=1, heads=2, width=8, maximum_tokens=12), len(VOCABULARY)
    )
    model.initialise(1)
    with torch.no_grad():
        model.embedding.weight.mul_(40)
    path = tmp_path_factory.mktemp("models") / "small"
    save_model(path, model, VOCABULARY)
    return path, model.eval()


def log_probability(model, words):
    """Of all targets of a line of words, ``</s>`` among them where it is given; straight from the whole table."""
    ids = torch.tensor([VOCABULARY.encode(["<s>", *words.split()])])
    table = model.logits(ids[:, :-1]).log_softmax(dim=-1)
    return float(table[0, torch.arange(ids.shape[1] - 1), ids[0, 1:]].sum().detach())


def difference(folder, place, one, other, following=3):
    (scores,) = DownstreamScores(folder, FREQUENCIES, following).score([place], [[one, other]])
    return scores[0] - scores[1]


@pytest.mark.parametrize(
    ("place", "following", "line"),
    [
        (Surroundings("The ", " sat.", True), 3, "the {} sat </s>"),
        (Surroundings("The ", " sat on the", False), 3, "the {} sat on the"),
        (Surroundings("The ", " sat on the mat on", True), 2, "the {} sat on"),
        (Surroundings("The ", " sat.", True), 1, "the {} sat </s>"),
        (Surroundings("The ", " sat.", True), 0, "the {}"),
        (Surroundings("", "", True), 0, "{} </s>"),
    ],
)
def test_two_words_differ_as_their_lines_do(folder, place, following, line):
    path, model = folder
    expected = log_probability(model, line.format("cat")) - log_probability(model, line.format("dog"))
    assert difference(path, place, "cat", "dog", following) == pytest.approx(expected, abs=1e-4)


def test_an_ending_belongs_to_its_word(folder):
    path, model = folder
    expected = log_probability(model, "the cat's mat") - log_probability(model, "the <unk> mat")
    assert difference(path, Surroundings("the ", "'s mat on", True), "cat", "dog", 1) == pytest.approx(
        expected, abs=1e-4
    )


def test_words_outside_the_vocabulary_share_its_probability(folder):
    path, _ = folder
    place = Surroundings("the ", " sat", True)
    assert difference(path, place, "Zebra", "yak") == pytest.approx(math.log(3), abs=1e-6)


def test_a_line_longer_than_the_positions_is_scored_from_its_end(folder):
    path, model = folder
    before = "the cat sat on the mat " * 5
    scores = DownstreamScores(path, FREQUENCIES, 3).score([Surroundings(before, " sat", True)], [["cat", "dog"]])[0]
    ids = [torch.tensor([VOCABULARY.encode([*before.split(), word, "sat", "</s>"])[-13:]]) for word in ("cat", "dog")]
    tables = [model.logits(row[:, :-1]).log_softmax(dim=-1) for row in ids]
    sums = [
        sum(float(table[0, t, row[0, t + 1]].detach()) for t in (9, 10, 11))
        for table, row in zip(tables, ids, strict=True)
    ]
    assert scores[0] - scores[1] == pytest.approx(sums[0] - sums[1], abs=1e-4)


def test_the_planted_weight_of_the_language_model_is_found(folder):
    """Words of the tuning text follow the language model alone. Told apart by 1,000 places, the standard error of its
    weight is below 0.1."""
    path, model = folder
    words = ("cat", "dog", "mat")
    table = model.logits(torch.tensor([VOCABULARY.encode(["<s>", "the"])])).log_softmax(dim=-1)[0, -1]
    chances = torch.stack([table[VOCABULARY.ids[word]] for word in words]).softmax(0).tolist()
    assert max(chances) < 0.9
    lines = [f"the {word} the" for word, share in zip(words, chances, strict=True) for _ in range(round(1000 * share))]
    frequencies = WordFrequencies(("the", *words), np.array([9, 4, 2, 1]))
    filler = ScriptedModel(("the", *words), lambda words, position: {"cat": 0.2, "dog": 0.5, "mat": 0.3})
    settings = Downstream(kind="downstream", weights={"filler": 0.0, "frequency": 0.0, "average": 0.0})
    ready = prepared_weighing(
        filler, filler.candidates(), KeptWords(["the"]), frequencies, settings, lines, None,
        DownstreamScores(path, frequencies, 0),
    )  # fmt: skip
    assert ready.measured["weights"]["language_model"] == pytest.approx(1, abs=0.3)
    assert ready.measured["language_model_log_likelihood"] > ready.measured["language_model_log_likelihood_before"]
