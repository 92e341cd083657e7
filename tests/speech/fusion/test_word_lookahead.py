"""A word-level language model inside the search: sums telescope to the language model's own scores."""

import itertools

import numpy as np
import pytest
from tiny_recogniser import Pieces

from tasks.language_model.encoded_text import encode_text
from tasks.language_model.ngram.folder import save_adapted, save_new
from tasks.language_model.ngram.kneser_ney import estimate
from tasks.language_model.opening import open_language_model
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
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
    (spelled("\u2581a", "z", "\u2581the", "\u2581a", "b", "d"), "az the abd"),
    (spelled(*["\u2581the", "\u2581dog"] * 9), " ".join(["the", "dog"] * 9)),
]


@pytest.mark.parametrize(("units", "text"), SENTENCES, ids=[text[:12] for _, text in SENTENCES])
@pytest.mark.parametrize("kind", ["folder", "ngram_folder"])
def test_score_of_a_sentence_is_the_language_models_own(kind, units, text, request, tmp_path):
    path = request.getfixturevalue(kind)
    (found,), _ = fused_score(path, [units])
    assert UNITS.decode(units).split() == text.split()
    assert found == pytest.approx(own_score(path, text, tmp_path), abs=1e-4)


def test_no_unit_raises_the_score(folder):
    sequences = [list(units) for units in itertools.product(range(len(PIECES)), repeat=3)][::7]
    _, paths = fused_score(folder, sequences)
    steps = np.concatenate([np.diff(path) for path in paths])
    assert steps.max() <= 1e-6
    assert steps.min() < -0.5
