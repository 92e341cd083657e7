"""A word-level language model inside the search: sums telescope to the language model's own scores."""

import itertools

import numpy as np
import pytest
import torch
from tiny_recogniser import Pieces

from tasks.language_model.encoded_text import encode_text
from tasks.language_model.ngram.folder import save_adapted, save_new
from tasks.language_model.ngram.kneser_ney import estimate
from tasks.language_model.opening import open_language_model
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel, load_model, save_model
from tasks.language_model.vocabulary import SPECIAL_TOKENS, UNKNOWN_ID, Vocabulary
from tasks.speech.fusion.next_word_distributions import NextWordDistributions, SortedVocabulary
from tasks.speech.fusion.unit_scorers import SpelledUnits
from tasks.speech.fusion.word_lookahead import UNKNOWN_LOG_SHARE, WordLookahead

WORDS = ["a", "an", "ann", "and", "ants", "the", "then", "o'brien", "o", "dog", "dogs"]
PIECES = "<unk> \u2581 \u2581a n d \u2581the t s \u2581o ' b rien \u2581dog z \u2581ant".split()
VOCABULARY = Vocabulary((*SPECIAL_TOKENS, *WORDS))
UNITS = Pieces(*PIECES)
SETTLED = np.zeros(1, dtype=bool)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    architecture = ArchitectureSettings(layers=2, heads=2, width=16, maximum_tokens=8)
    model = TransformerLanguageModel(architecture, len(VOCABULARY))
    model.initialise(3)
    for parameter in model.parameters():
        parameter.data.mul_(8)  # so that words differ in probability
    path = tmp_path_factory.mktemp("model") / "transformer"
    save_model(path, model.eval(), VOCABULARY)
    return path


@pytest.fixture(scope="module")
def ngram_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("ngram")
    (path / "one.txt").write_text("the dog and the dogs\nthen ann and an o'brien\nthe dog\nnobody and a dog\n")
    (path / "two.txt").write_text("the ants and the dog\nann\nthe ants and ann\n")
    models = [estimate(encode_text(path / name, VOCABULARY), 3, len(VOCABULARY))[0] for name in ("one.txt", "two.txt")]
    save_new(path / "base", models[0], VOCABULARY)
    save_adapted(path / "model", path / "base", models[1], 0.4, VOCABULARY)
    return path / "model"


def own_score(folder, text, tmp_path):
    """The sentence's log-probability by ``palimpsest perplexity``'s own scoring, with the unknown word's share."""
    (tmp_path / "text.txt").write_text(text + "\n")
    scores, _ = open_language_model(folder).score_text(tmp_path / "text.txt")
    return scores.log_probability.sum() + UNKNOWN_LOG_SHARE * (~scores.known).sum()


def started(folder):
    """Look-ahead, and the tree that it has begun with."""
    tree = SequenceTree(len(PIECES))
    lookahead = WordLookahead(open_language_model(folder).next_words(), SpelledUnits(UNITS))
    lookahead.start(tree, None)
    return lookahead, tree


def fused_score(folder, sequences):
    """Scores of whole sentences, and of each of their beginnings, by look-ahead."""
    lookahead, tree = started(folder)
    ends, paths = [], []
    for sequence in sequences:
        node, path = np.array([ROOT]), [0.0]
        for unit in sequence:
            before = tree.size
            node, _ = tree.children(node, np.array([unit]))
            if tree.size > before:
                lookahead.extend(before)
            lookahead.settle(node)
            path.append(float(lookahead.values(node, SETTLED)[0]))
        ends.append(int(node[0]))
        paths.append(path)
    return lookahead.end(np.array(ends)), paths


def spelled(*pieces):
    return [PIECES.index(piece) for piece in pieces]


SENTENCES = [
    (spelled("\u2581the", "\u2581dog", "s", "\u2581a", "n", "d", "\u2581the", "n"), "the dogs and then"),
    (spelled("\u2581a", "n", "t", "s"), "ants"),
    (spelled("\u2581o", "'", "b", "rien", "\u2581a", "n", "n"), "o'brien ann"),
    (spelled("\u2581dog", "s", "'", "\u2581the"), "dogs' the"),
    (spelled("\u2581a", "z", "\u2581the", "\u2581a", "b", "d"), "az the abd"),
    (spelled("s", "\u2581the"), "s the"),
    (spelled(*["\u2581the", "\u2581dog"] * 9), " ".join(["the", "dog"] * 9)),
]


@pytest.mark.parametrize(("units", "text"), SENTENCES, ids=[text[:12] for _, text in SENTENCES])
@pytest.mark.parametrize("kind", ["folder", "ngram_folder"])
def test_score_of_a_sentence_is_the_language_models_own(kind, units, text, request, tmp_path):
    path = request.getfixturevalue(kind)
    (found,), _ = fused_score(path, [units])
    assert UNITS.decode(units).split() == text.split()
    assert found == pytest.approx(own_score(path, text, tmp_path), abs=1e-4)


def test_pieces_that_spell_the_same_words_score_the_same(folder):
    ways = [
        spelled("\u2581a", "n", "t", "s", "\u2581the"),
        spelled("\u2581ant", "s", "\u2581the"),
        spelled("\u2581", "\u2581ant", "s", "\u2581", "\u2581the"),
        spelled("\u2581ant", "<unk>", "s", "\u2581the"),
    ]
    scores, paths = fused_score(folder, ways)
    assert scores == pytest.approx([scores[0]] * len(ways), abs=1e-9)
    assert paths[0][4] == pytest.approx(paths[1][2], abs=1e-9)


def test_look_ahead_is_the_sum_over_the_words_that_begin_so(folder, tmp_path):
    _, ((_, found),) = fused_score(folder, [spelled("\u2581a")])
    total = 0.0
    for word in ("a", "an", "ann", "and", "ants"):
        (tmp_path / "text.txt").write_text(word + "\n")
        total += np.exp(open_language_model(folder).score_text(tmp_path / "text.txt")[0].log_probability[0])
    model, _ = load_model(folder)
    with torch.no_grad():
        unknown = torch.log_softmax(model.logits(torch.tensor([[2]]))[0, 0], 0)[UNKNOWN_ID].item()
    assert found == pytest.approx(np.log(total + np.exp(unknown + UNKNOWN_LOG_SHARE)), abs=1e-5)


def test_estimate_of_a_word_is_that_of_the_first_one(folder):
    """Behind a word the estimate is its own probability, and what is looked ahead at the beginning of a sentence."""
    lookahead, tree = started(folder)
    the, dog, s = spelled("\u2581the", "\u2581dog", "s")
    values = {}
    for name, units in {"the": [the], "dog": [dog], "dogs": [dog, s], "the dogs": [the, dog, s]}.items():
        node = np.array([0])
        for unit in units:
            expected, is_estimate = lookahead.ahead(node, np.array([unit]), np.zeros(1, dtype=bool))
            node, before = tree.children(node, np.array([unit]))
            if tree.size > before:
                lookahead.extend(before)
            if is_estimate[0]:
                assert lookahead.values(node, ~SETTLED) == pytest.approx(expected)
            lookahead.settle(node)
            if not is_estimate[0]:
                assert lookahead.values(node, SETTLED) == pytest.approx(expected)
        values[name] = (
            lookahead.values(node, ~SETTLED)[0],
            lookahead.values(node, SETTLED)[0],
            lookahead._complete[node][0],
        )
    whole = values["the dogs"][2]
    assert values["dogs"][0] == pytest.approx(values["dogs"][1])
    assert values["the dogs"][0] == pytest.approx(whole + values["dogs"][1])
    assert values["the dogs"][0] != pytest.approx(values["the dogs"][1], abs=1e-3)
    assert lookahead._distributions.computed == 2  # behind nothing, and behind "the"


def test_no_unit_raises_the_score(folder):
    sequences = [list(units) for units in itertools.product(range(len(PIECES)), repeat=3)][::7]
    _, paths = fused_score(folder, sequences)
    steps = np.concatenate([np.diff(path) for path in paths])
    assert steps.max() <= 1e-6
    assert steps.min() < -0.5


def test_distributions_that_were_let_go_come_back(folder):
    model = open_language_model(folder).next_words()
    vocabulary = SortedVocabulary(model.vocabulary)
    kept = NextWordDistributions(model, vocabulary)
    history = model.extend(np.array([0]), np.array([len(SPECIAL_TOKENS)]))
    kept.ensure(history)
    before = kept.between(history, np.array([0]), np.array([3]))
    kept.retain(np.array([0]))
    kept.ensure(np.array([0]))
    kept.ensure(history)
    assert kept.computed == 3
    assert kept.between(history, np.array([0]), np.array([3])) == pytest.approx(before, rel=1e-6)


def test_small_ranges_are_exact():
    """A range of probability 1e-14 behind one of almost 1: the difference of the sums alone would be rounding."""

    class Fixed:
        vocabulary = Vocabulary((*SPECIAL_TOKENS, "a", "b", "c"))

        def start(self, columns):
            self.columns = columns

        def read(self, histories):
            pass

        def scores(self, histories):
            probabilities = torch.full((len(histories), len(self.columns)), 1e-30)
            probabilities[:, :3] = torch.tensor([1 - 1e-6, 3e-15, 4e-15])
            return probabilities.log()

    model = Fixed()
    distributions = NextWordDistributions(model, SortedVocabulary(model.vocabulary))
    histories = np.array([0])
    distributions.ensure(histories)
    assert distributions.between(histories, np.array([1]), np.array([3])) == pytest.approx([7e-15], rel=1e-5)
