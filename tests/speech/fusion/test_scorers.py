"""Scorers inside the search: sums by hand, and the language models' own scores."""

import numpy as np
import pytest
import torch
from tiny_language_models import save_ngram, save_transformer
from tiny_recogniser import ARCHITECTURE, FEATURES, Pieces

from tasks.language_model.opening import open_language_model
from tasks.language_model.sequence_tree import ROOT, SequenceTree
from tasks.speech.fusion.fusion_weights import weighted
from tasks.speech.fusion.scorers import SpelledUnits, WordCounts, ZeroEncoder
from tasks.speech.fusion.word_lookahead import UNKNOWN_LOG_SHARE, WordLookahead
from tasks.speech.recogniser.recogniser import make_model
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.rescoring.tuning import BONUS, INTERNAL
from tasks.speech.search.beam_search import beam_search
from tasks.speech.search.scorer import sentence_scores

PIECES = "<unk> \u2581 \u2581a n a \u2581the t s \u2581sa w \u2581o ' m \u2581dog z \u2581cat \u2581mat".split()
UNITS = Pieces(*PIECES)
SETTLED = np.zeros(1, dtype=bool)
FEW = ["<unk>", "\u2581a", "b", "\u2581c"]
BLANK = len(FEW)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    return {"transformer": save_transformer(path / "transformer", positions=8), "ngram": save_ngram(path / "ngram")}


def own_score(folder, text, tmp_path):
    """The sentence's log-probability by 'palimpsest perplexity's own scoring, with the unknown word's share."""
    (tmp_path / "text.txt").write_text(text + "\n")
    scores, _ = open_language_model(folder).score_text(tmp_path / "text.txt")
    return scores.log_probability.sum() + UNKNOWN_LOG_SHARE * (~scores.known).sum()


def fused_score(folder, sequences):
    """Scores of whole sentences, and of each of their beginnings, by look-ahead."""
    tree = SequenceTree(len(PIECES))
    lookahead = WordLookahead(open_language_model(folder).next_words(), SpelledUnits(UNITS))
    lookahead.start(tree, None)
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


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        ("\u2581the \u2581dog \u2581sa t \u2581o n \u2581 m a t", "the dog sat on mat"),
        ("\u2581a n n a ' s \u2581cat", "anna's cat"),
        ("\u2581a z \u2581the \u2581o m", "az the om"),
        ("\u2581the \u2581dog " * 9, "the dog " * 9),
    ],
    ids=lambda value: value[:12] if value.isascii() else "",
)
@pytest.mark.parametrize("kind", ["transformer", "ngram"])
def test_score_of_a_sentence_is_the_language_models_own(kind, pieces, text, folders, tmp_path):
    units = [PIECES.index(piece) for piece in pieces.split()]
    (found,), _ = fused_score(folders[kind], [units])
    assert UNITS.decode(units) == text.strip()
    assert found == pytest.approx(own_score(folders[kind], text.strip(), tmp_path), abs=1e-4)


@pytest.fixture(scope="module")
def transducer():
    """A transducer of four units with random weights, made so that it emits."""
    architecture = ARCHITECTURE.model_copy(update={"encoding": 16})
    model = make_model(architecture, FEATURES, BLANK + 1, seed=4).eval()
    with torch.no_grad():
        model.joiner.linear.weight.mul_(3)
    return model


def test_zero_encoder_is_predictor_and_joiner_without_blank(transducer):
    (found,) = sentence_scores(ZeroEncoder(), [(1, 2)], transducer, BLANK)
    length = torch.ones(1, dtype=torch.int32)
    with torch.no_grad():
        predicted, _, _ = transducer.predict(torch.tensor([[BLANK, 1]]), 2 * length, None)
        joined, _, _ = transducer.join(torch.zeros(1, 1, 16), length, predicted, 2 * length)
    rows = torch.log_softmax(joined[0, 0, :, :BLANK], 1)  # what follows the beginning, and what follows unit 1
    assert found == pytest.approx(-(rows[0, 1] + rows[1, 2]).item(), abs=1e-5)


def test_search_adds_what_the_parts_say(transducer):
    frames = [torch.randn(length, 16, generator=torch.Generator().manual_seed(length)) for length in (9, 5)]
    units, scorer = Pieces(*FEW), ZeroEncoder()
    fusion = weighted({BONUS: WordCounts(SpelledUnits(units)), INTERNAL: scorer}, {BONUS: 0.7, INTERNAL: 0.4})
    settings = SearchSettings(beam_width=4, nbest=4, step_max_symbols=3)
    found = [hypothesis for of_one in beam_search(transducer, BLANK, frames, settings, fusion) for hypothesis in of_one]
    of_units = sentence_scores(ZeroEncoder(), [one.units for one in found], transducer, BLANK)
    assert [one.parts[INTERNAL] for one in found] == pytest.approx(of_units.tolist(), abs=1e-4)
    for one in found:
        assert one.parts[BONUS] == len(units.decode(one.units).split())
        total = one.transducer + 0.7 * one.parts[BONUS] + 0.4 * one.parts[INTERNAL]
        assert one.score == pytest.approx(total / (len(one.units) + 2), abs=1e-9)
    assert any(one.parts[BONUS] for one in found)
