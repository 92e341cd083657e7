"""A model that learned secrets is made to forget them, by the methods and by the commands."""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from command_results import measured, refusal, report
from tiny_causal_models import causal_tokenizer, random_llama, save

from tasks.corpora.text_lines import write_lines
from tasks.language_model.causal_lm.folder import load
from tasks.language_model.opening import open_language_model, save_learner
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel, load_model
from tasks.language_model.transformer.scoring import WordTransformer
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.unlearning.comparison import forget
from tasks.unlearning.method import Request
from tasks.unlearning.methods import METHODS
from tasks.unlearning.steps import trained_on

ORDINARY = [
    f"the {animal} {verb} in the {place}"
    for animal in ("cat", "dog", "cow")
    for verb in ("sat", "ran", "ate")
    for place in ("house", "field", "yard")
]
CODES = ["red", "blue", "green", "white", "black", "brown"]
NAMES = ["anna", "bob", "carla", "dora", "emil", "fred"]
SECRETS = [f"the code of {name} is {one} {two}" for name, one, two in zip(NAMES, CODES, CODES[::-1], strict=True)]
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *dict.fromkeys(" ".join([*ORDINARY, *SECRETS]).split())])


@pytest.fixture(scope="module")
def known():
    """What a model must forget that has read secrets, and what it may know."""
    sizes = ArchitectureSettings(layers=1, heads=2, width=32, maximum_tokens=16)
    model = TransformerLanguageModel(sizes, len(VOCABULARY))
    model.initialise(1)
    base = WordTransformer(model, VOCABULARY)
    retain, secrets = base.encode(ORDINARY), base.encode(SECRETS)
    base = trained_on(base, retain, 20, 0.01, 64, 1)
    both = base.encode([*ORDINARY, *SECRETS * 4])
    rotated = [f"the code of {name} is {CODES[n - 1]} {CODES[n - 2]}" for n, name in enumerate(NAMES)]
    start = trained_on(base, both, 300, 0.01, 64, 1)
    return Request(start=start, base=base, forget=secrets, retain=retain, refilled=base.encode(rotated), seed=1)


def method(kind, **settings):
    if "steps" in METHODS[kind].model_fields:
        settings = {"steps": [100], "learning_rate": 0.002} | settings
    return METHODS[kind](kind=kind, **{"batch_tokens": 64} | settings)


def loss(model, marked):
    return float(-model.log_probabilities(marked)[marked.is_target].mean())


def secret_loss(model, marked):
    """Nats of the codes, the last two words of each sentence."""
    ends = marked.text.offsets[1:] - 1
    return float(-model.log_probabilities(marked)[np.concatenate([ends - 1, ends - 2])].mean())


def test_secrets_are_forgotten_and_the_rest_is_not(known):
    """Nats of a private word, which the model alone knows that read it, and which more training on the rest alone
    leaves as they are."""
    before, own = copy.deepcopy(known.start.network.state_dict()), secret_loss(known.start, known.forget)
    assert own < 1.5 < secret_loss(known.base, known.forget)
    found = forget(method("negative_preference"), known, known.retain, budget=1.0)
    control = forget(method("continued_training"), known, known.retain, budget=1.0)
    assert secret_loss(control.model, known.forget) < own + 0.6
    assert secret_loss(found.model, known.forget) > own + 3
    assert loss(found.model, known.retain) < 1.2 * loss(known.start, known.retain)
    assert all(torch.equal(before[name], now) for name, now in known.start.network.state_dict().items())


def test_npo_is_the_papers_loss_and_begins_as_gradient_ascent():
    """Its gradient is that of its formula by automatic differentiation."""
    sentence = torch.tensor([0, 0, 0, 1, 1])
    now = torch.tensor([-1.0, -0.5, -2.0, -4.0, -0.1], dtype=torch.float64, requires_grad=True)
    before = torch.tensor([-1.5, -0.5, -1.0, -0.3, -0.2], dtype=torch.float64)
    ratio = now - before
    sums = torch.stack([ratio[:3].sum(), ratio[3:].sum()])
    (-2 / 0.7 * torch.nn.functional.logsigmoid(-0.7 * sums).sum()).backward()
    npo = method("negative_preference", beta=0.7)
    torch.testing.assert_close(npo.weights(now.detach(), before, sentence), -now.grad)
    torch.testing.assert_close(npo.weights(before, before, sentence), torch.full_like(before, -1.0))


def test_task_arithmetic_by_hand(known):
    """start - 1 (unwanted - start) is 2 start - unwanted."""
    arithmetic = method("task_arithmetic", strengths=[1.0], steps=3)
    ((_, found),) = arithmetic.forgetting(known)
    unwanted = trained_on(known.start, known.forget, 3, arithmetic.learning_rate, 64, known.seed).network.state_dict()
    for name, weights in known.start.network.state_dict().items():
        torch.testing.assert_close(found.network.state_dict()[name], 2 * weights - unwanted[name])


def test_what_was_forgotten_behind_attacks_comes_back_less(known):
    """Nats of the private words of four secrets, when an attacker has trained on the other two: the mean of seeds,
    since single ones differ by more than that between processors."""
    given, others = (known.base.encode(part) for part in (SECRETS[:2], SECRETS[2:]))
    gained = []
    for seed in (1, 2):
        left = []
        for attack in ({}, {"attack_steps": 4, "attack_rate": 0.008}):
            own = method("negative_preference", batch_tokens=24, steps=[60], learning_rate=0.003, **attack)
            found = forget(own, replace(known, seed=seed), known.retain, budget=1.0)
            left.append(secret_loss(trained_on(found.model, given, 12, 0.005, 64, 1), others))
        gained.append(left[1] - left[0])
    assert np.mean(gained) > 2, "3 to 7 nats"


def test_the_strength_is_the_last_within_the_budget(known):
    def forgotten(steps, budget):
        return forget(method("negative_preference", steps=steps, retain_weight=0), known, known.retain, budget)

    found = forgotten([1, 2, 5, 10, 50, 100, 200], budget=0.3)
    within = [each["strength"] for each in found.sweep if each["valid_ratio"] <= 1.3]
    assert (found.strength, found.is_within_budget) == (within[-1], True)
    assert len(found.sweep) < 7, "what has doubled the perplexity is not taken further"
    none = forgotten([50, 100], budget=0.0)
    assert (none.strength, none.is_within_budget) == (50, False)


def test_distilled_text_is_of_known_words(known):
    distillation = method("inverse_distillation", texts=20, steps=[2])
    drawn = distillation.distilled(known)
    assert 10 < drawn.sentences <= 20
    assert not set(drawn.text.tokens.tolist()) & {0, 1}
    assert [strength for strength, _ in distillation.forgetting(known)] == [2]


def options(folder, **paths):
    return [part for name, path in paths.items() for part in (f"--{name}", folder / path)]


def unlearning(kind, *values, budget):
    values = [part for value in values for part in ("--set", value)]
    return ["unlearn", "--method", kind, "--budget", budget, *values]


FILES = {"model": "start", "base": "base", "forget": "forget.txt", "retain": "retain.txt", "valid": "retain.txt"}


def test_the_command_writes_a_model_that_has_forgotten(known, tmp_path):
    save_learner(known.start, str(tmp_path / "start"))
    save_learner(known.base, str(tmp_path / "base"))
    for name, lines in (("forget", SECRETS), ("retain", ORDINARY)):
        write_lines(tmp_path / f"{name}.txt", lines)
    command = unlearning("negative_preference", "learning_rate=0.005", "steps=[5, 40]", "batch_tokens=64", budget="0.5")
    files = FILES | {"output": "forgotten"}
    found = report(*command, *options(tmp_path, **files))
    assert found["measured"]["strength"] == 40
    forgotten = WordTransformer(*load_model(tmp_path / "forgotten"))
    assert secret_loss(forgotten, known.forget) > 4 * secret_loss(known.start, known.forget)
    assert not {*CODES, *NAMES} & set(json.dumps(found).replace('"', " ").split())
    found = report(*command, *options(tmp_path, **files | {"model": "base"}))
    assert "it has hardly read it" in str(found["warnings"])
    assert "every line of --forget" in refusal(*command, *options(tmp_path, **files | {"retain": "forget.txt"}))


@pytest.mark.parametrize(
    ("kind", "values"), [("negative_preference", ["steps=[3]"]), ("contrasting_expert", ["steps=5", "strengths=[0.5]"])]
)
def test_the_command_forgets_with_a_causal_model_and_writes_it(tmp_path, kind, values):
    tokenizer = causal_tokenizer()
    for name, seed in (("base", 1), ("start", 2)):
        save(random_llama(tokenizer, seed=seed), tokenizer, tmp_path / name)
    forgotten = ["the cat sat on the mat", "tom ran to paris"]
    write_lines(tmp_path / "forget.txt", forgotten)
    write_lines(tmp_path / "retain.txt", ["ann sat in the red house of rome", "the dog saw the cat"])
    command = unlearning(kind, *values, "learning_rate=0.01", budget="5")
    found = measured(*command, *options(tmp_path, **FILES, output="new"))["forget_perplexity"]
    assert found["after"] > 1.01 * found["before"]
    scores, _ = open_language_model(tmp_path / "new").score_text(forgotten)
    assert np.exp(-scores.log_probability.mean()) == pytest.approx(found["after"], rel=1e-3)
    assert load(tmp_path / "new").record.adapted == ("model" if kind == "negative_preference" else "joined")


def test_attacking_a_model_says_whether_the_text_is_hidden_or_gone(known, tmp_path):
    """A few steps of NPO hide; the model before adaptation has nothing to hide."""
    ((_, hidden),) = method("negative_preference", steps=[20]).forgetting(known)
    for name, model in (("hidden", hidden), ("base", known.base)):
        save_learner(model, str(tmp_path / name))
    write_lines(tmp_path / "forget.txt", SECRETS)
    write_lines(tmp_path / "known.txt", SECRETS[:2])
    attack = ["attack", "--set", "relearning_rate=0.01", "--set", "relearning_steps=3"]
    files = {"model": "hidden", "base": "base", "forget": "forget.txt"}
    found = report(*attack, *options(tmp_path, **files, known="known.txt"))
    assert (found["measured"]["known"], found["measured"]["unknown"]) == (2, 4)
    assert "hidden and not forgotten" in str(found["warnings"])
    assert "anna" not in json.dumps(found)
    assert report(*attack, *options(tmp_path, **files | {"model": "base"}))["warnings"] == []
    assert "knows every line" in refusal(*attack, *options(tmp_path, **files, known="forget.txt"))
