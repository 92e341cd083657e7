"""Models as ways to forget see them: joined and steered ones by their formulas, and causal models through every way."""

import json

import numpy as np
import pytest
import torch
from tiny_causal_models import TEXT, causal_tokenizer, random_llama

from tasks.cli import main
from tasks.corpora.text_lines import write_lines
from tasks.distillation.contrast import Weighted, contrasted_sentences
from tasks.errors import ModelError
from tasks.language_model.causal_lm.folder import load
from tasks.language_model.causal_lm.joined import JoinedModels
from tasks.language_model.causal_lm.learner import PieceLearner
from tasks.language_model.causal_lm.model import CausalModel, WordPieces
from tasks.language_model.causal_lm.scoring import CausalScorer
from tasks.language_model.language_models import Drawing
from tasks.language_model.opening import open_language_model
from tasks.language_model.sampling import sample_pieces
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.learner import WordLearner
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.unlearning.method import Request
from tasks.unlearning.methods import METHODS

WORDS = Vocabulary([*SPECIAL_TOKENS, *dict.fromkeys(TEXT.lower().split())])
LINES = ["the cat sat on the mat", "tom ran to paris", "ann sat in the red house of rome", "the dog saw the cat"]


def word_learner(seed):
    made = TransformerLanguageModel(ArchitectureSettings(layers=2, heads=2, width=16, maximum_tokens=16), len(WORDS))
    made.initialise(seed)
    made.embedding.weight.data *= 20
    return WordLearner(made, WORDS)


def piece_learner(seed):
    tokenizer = causal_tokenizer()
    return PieceLearner(CausalModel(random_llama(tokenizer, seed=seed), WordPieces(tokenizer, "tiny"), "tiny"), None)


KINDS = pytest.mark.parametrize("make", [word_learner, piece_learner], ids=["words", "pieces"])


def distribution(learner, marked):
    """Log-probabilities (N, V) at all targets of a text of few lines."""
    from tasks.language_model.learners import batches

    with torch.no_grad():
        return learner.scores(next(batches(marked, learner.longest, 10_000, 1)).batch).log_softmax(1)


@KINDS
def test_joined_models_say_the_weighted_sum_of_what_each_says(make):
    one, other = make(1), make(2)
    marked = one.encode(LINES)
    both = one.joined([(other, -0.5)], 1.5)
    expected = (1.5 * distribution(one, marked) - 0.5 * distribution(other, marked)).log_softmax(1)
    torch.testing.assert_close(distribution(both, marked), expected, atol=1e-4, rtol=1e-4)
    # By the scorer too, which shares prefixes: the sums of sentences are those of a text.
    (sums,) = both.scorer().score_sentences([[tuple(line.split()) for line in LINES]])
    alone = np.add.reduceat(both.log_probabilities(marked), marked.text.offsets[:-1])
    np.testing.assert_allclose(sums, alone, rtol=1e-3)
    torch.testing.assert_close(distribution(one.joined([(other, 0.0)], 1.0), marked), distribution(one, marked))


@KINDS
def test_steering_moves_the_last_hidden_states_alone(make):
    model = make(1)
    marked = model.encode(LINES)
    width = model.states(_batch(model, marked)).shape[1]
    down, up = torch.randn(width, 3), torch.randn(3, width)
    torch.testing.assert_close(distribution(model.steered(down, 0 * up), marked), distribution(model, marked))
    states = model.states(_batch(model, marked))
    expected = model.scores_of(states + states @ down @ up).log_softmax(1)
    torch.testing.assert_close(distribution(model.steered(down, up), marked), expected.detach(), atol=1e-4, rtol=1e-4)


def _batch(model, marked):
    from tasks.language_model.learners import batches

    return next(batches(marked, model.longest, 10_000, 1)).batch


def test_a_word_of_several_pieces_is_one_target():
    learner = piece_learner(1)
    marked = learner.encode(["ann saw bobbingroberta"])
    assert len(learner.causal.pieces.of_words(["bobbingroberta"])[0]) > 1
    assert marked.words().tolist() == [4.0]


def test_each_causal_model_keeps_keys_and_values_of_its_own():
    one, other = piece_learner(1), piece_learner(2)
    joined = JoinedModels([(one.network, 1.0, 0.1), (other.network, -1.0, 0.0)]).eval()
    tokens = torch.tensor([[5, 9, 12, 7], [5, 3, 3, 8]])
    with torch.no_grad():
        whole = joined(input_ids=tokens).logits
        kept, parts = None, []
        for place in range(tokens.shape[1]):
            output = joined(input_ids=tokens[:, place : place + 1], past_key_values=kept, use_cache=True)
            kept = output.past_key_values
            parts.append(output.logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-4, rtol=1e-4)
    assert torch.isinf(whole).any(), "the mask hides something"
    # And as a sampler asks, which drops rows that have ended: a model beside itself of weight 0 writes as by itself.
    weighted = [Weighted(one, 1.0), Weighted(other, 0.0)]
    drawn = contrasted_sentences(weighted, 6, 12, seed=3)
    assert drawn == sample_pieces(one.causal, Drawing(6, one.causal.pieces.size, 12, 3))


def test_a_search_asks_joined_causal_models_as_it_asks_one():
    both = piece_learner(1).joined([(piece_learner(2), -0.5)], 1.5)
    scorer = CausalScorer(both.causal)
    words = scorer.next_words()
    words.start()
    history = 0
    for word in LINES[0].split():
        history = words.extend(history, word)
    words.read(np.array([history]))
    found = words.values(np.array([history])) + words.sentence_ends(np.array([history]))
    (expected,) = scorer.score_sentences([[tuple(LINES[0].split())]])
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@KINDS
@pytest.mark.parametrize("kind", METHODS)
def test_every_way_runs_on_every_kind_of_model(make, kind):
    short = {"steps": [1, 2]} if isinstance(METHODS[kind](kind=kind).model_dump().get("steps"), list) else {"steps": 1}
    more = {"texts": 10} if kind == "inverse_distillation" else {}
    method = METHODS[kind](kind=kind, **short, **more)
    base = make(1)
    request = Request(make(2), base, base.encode(LINES[:2]), base.encode(LINES[2:]), base.encode(LINES[1:3]), seed=1)
    for _, model in method.forgetting(request):
        found = model.log_probabilities(request.forget)
        assert np.isfinite(found).all()
        assert (found != request.start.log_probabilities(request.forget)).any()


def test_divergence_of_a_model_from_itself_is_nothing():
    method = METHODS["negative_preference"](kind="negative_preference", retain="divergence", steps=[1])
    model = word_learner(1)
    request = Request(model, model, model.encode(LINES[:2]), model.encode(LINES[2:]), None, seed=1)
    ((_, first),) = method.forgetting(request)
    ((_, without),) = method.model_copy(update={"retain_weight": 0.0}).forgetting(request)
    # At the first step the divergence is 0, and so is its gradient.
    marked = request.retain
    np.testing.assert_allclose(first.log_probabilities(marked), without.log_probabilities(marked), atol=1e-3)


def test_the_command_forgets_with_a_causal_model_and_writes_it(tmp_path, capsys):
    tokenizer = causal_tokenizer()
    for name, seed in (("base", 1), ("start", 2)):
        random_llama(tokenizer, seed=seed).save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    for name, lines in (("forget", LINES[:2]), ("retain", LINES[2:])):
        write_lines(tmp_path / f"{name}.txt", lines)
    paths = {"model": "start", "base": "base", "forget": "forget.txt", "retain": "retain.txt", "valid": "retain.txt"}
    options = [part for name, path in paths.items() for part in (f"--{name}", str(tmp_path / path))]
    ends = ["--output", str(tmp_path / "new"), "--report", str(tmp_path / "report.json"), "--budget", "5"]
    steps = ["--set", "steps=[3]", "--set", "learning_rate=0.01"]
    assert main(["unlearn", "--method", "negative_preference", *steps, *options, *ends]) == 0
    known = json.loads((tmp_path / "report.json").read_text())["measured"]["forget_perplexity"]
    assert known["after"] > known["before"]
    scores, _ = open_language_model(tmp_path / "new").score_text(LINES[:2])
    assert np.exp(-scores.log_probability.mean()) == pytest.approx(known["after"], rel=1e-3)
    assert load(tmp_path / "new")[1].adapted == "model"
    expert = ["--set", "steps=5", "--set", "learning_rate=0.01", "--set", "strengths=[0.5]"]
    assert main(["unlearn", "--method", "contrasting_expert", *expert, *options, *ends]) == 0
    known = json.loads((tmp_path / "report.json").read_text())["measured"]["forget_perplexity"]
    scores, _ = open_language_model(tmp_path / "new").score_text(LINES[:2])
    assert np.exp(-scores.log_probability.mean()) == pytest.approx(known["after"], rel=1e-3)
    assert known["after"] != pytest.approx(known["before"])
    shallow = TransformerLanguageModel(ArchitectureSettings(layers=1, heads=2, width=16), len(WORDS))
    with pytest.raises(ModelError, match="cannot be joined"):
        word_learner(1).joined([(WordLearner(shallow, WORDS), 1.0)], 1.0)
