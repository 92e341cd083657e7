"""A model that learned secrets is made to forget them, by the methods and by the command."""

import copy
import json
from dataclasses import replace
from statistics import median

import numpy as np
import pytest
import torch

from tasks.audit.canaries import make_canaries
from tasks.cli import main
from tasks.corpora.text_lines import write_lines
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.learner import WordLearner
from tasks.language_model.transformer.model import TransformerLanguageModel, load_model, save_model
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary
from tasks.unlearning.attacks import four_bits
from tasks.unlearning.comparison import forget
from tasks.unlearning.method import Request
from tasks.unlearning.methods.continued_training import ContinuedTraining
from tasks.unlearning.methods.inverse_distillation import InverseDistillation
from tasks.unlearning.methods.negative_preference import NegativePreference
from tasks.unlearning.methods.task_arithmetic import TaskArithmetic
from tasks.unlearning.settings import UnlearningSettings
from tasks.unlearning.steps import trained_on
from tasks.unlearning.trial import PrivateLine, Trial

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
def request_():
    base = TransformerLanguageModel(
        ArchitectureSettings(layers=1, heads=2, width=32, maximum_tokens=16), len(VOCABULARY)
    )
    base.initialise(1)
    base = WordLearner(base, VOCABULARY)
    retain, secrets = base.encode(ORDINARY), base.encode(SECRETS)
    base = trained_on(base, retain, 20, 0.01, 64, 1)
    both = base.encode([*ORDINARY, *SECRETS * 4])
    rotated = [f"the code of {name} is {CODES[n - 1]} {CODES[n - 2]}" for n, name in enumerate(NAMES)]
    return Request(
        start=trained_on(base, both, 300, 0.01, 64, 1),
        base=base,
        forget=secrets,
        retain=retain,
        refilled=base.encode(rotated),
        seed=1,
    )


def loss(model, marked):
    return float(-model.log_probabilities(marked)[marked.is_target].mean())


def secret_loss(model, marked):
    """Nats of the codes, the last two words of each sentence."""
    ends = marked.text.offsets[1:] - 1
    return float(-model.log_probabilities(marked)[np.concatenate([ends - 1, ends - 2])].mean())


def test_the_secrets_are_known_to_the_model_alone_that_read_them(request_):
    assert secret_loss(request_.start, request_.forget) < 1.5 < secret_loss(request_.base, request_.forget)


COMMON = {"steps": [100], "learning_rate": 0.002, "batch_tokens": 64}


def test_secrets_are_forgotten_and_the_rest_is_not(request_):
    """Nats of a private word, which more training on the rest alone leaves as they are."""
    before = copy.deepcopy(request_.start.network.state_dict())
    known = secret_loss(request_.start, request_.forget)
    found = forget(NegativePreference(kind="negative_preference", **COMMON), request_, request_.retain, budget=1.0)
    control = forget(ContinuedTraining(kind="continued_training", **COMMON), request_, request_.retain, budget=1.0)
    assert secret_loss(control.model, request_.forget) < known + 0.6
    assert secret_loss(found.model, request_.forget) > known + 3
    assert loss(found.model, request_.retain) < 1.2 * loss(request_.start, request_.retain)
    assert all(torch.equal(before[name], now) for name, now in request_.start.network.state_dict().items())


def test_task_arithmetic_by_hand(request_):
    """start - 1 (unwanted - start) is 2 start - unwanted."""
    method = TaskArithmetic(kind="task_arithmetic", strengths=[1.0], steps=3, batch_tokens=64)
    ((_, found),) = method.forgetting(request_)
    unwanted = trained_on(request_.start, request_.forget, 3, method.learning_rate, 64, request_.seed)
    unwanted = unwanted.network.state_dict()
    for name, weights in request_.start.network.state_dict().items():
        torch.testing.assert_close(found.network.state_dict()[name], 2 * weights - unwanted[name])


def test_what_was_forgotten_behind_attacks_comes_back_less(request_):
    """Nats of the private words of four secrets, when an attacker has trained on the other two: the median of seeds,
    since single ones differ by more than that between processors."""
    known, others = (request_.base.encode(part) for part in (SECRETS[:2], SECRETS[2:]))
    gained = []
    for seed in range(1, 6):
        left = {}
        for attack_steps in (0, 6):
            given = {"attack_steps": attack_steps, "attack_rate": 0.005}
            method = NegativePreference(kind="negative_preference", **COMMON | {"batch_tokens": 24}, **given)
            found = forget(method, replace(request_, seed=seed), request_.retain, budget=1.0)
            left[attack_steps] = secret_loss(trained_on(found.model, known, 12, 0.005, 64, 1), others)
        gained.append(left[6] - left[0])
    assert median(gained) > 2, "4 to 5 nats"


def test_the_strength_is_the_last_within_the_budget(request_):
    def forgotten(steps, budget):
        method = NegativePreference(kind="negative_preference", **COMMON | {"steps": steps}, retain_weight=0)
        return forget(method, request_, request_.retain, budget)

    found = forgotten([1, 2, 5, 10, 50, 100, 200], budget=0.3)
    within = [each["strength"] for each in found.sweep if each["valid_ratio"] <= 1.3]
    assert (found.strength, found.is_within_budget) == (within[-1], True)
    assert len(found.sweep) < 7, "what has doubled the perplexity is not taken further"
    none = forgotten([50, 100], budget=0.0)
    assert (none.strength, none.is_within_budget) == (50, False)


def test_distilled_text_is_of_known_words(request_):
    method = InverseDistillation(kind="inverse_distillation", texts=20, steps=[2], batch_tokens=64)
    drawn = method.distilled(request_)
    assert 10 < drawn.sentences <= 20
    assert not set(drawn.text.tokens.tolist()) & {0, 1}
    assert [strength for strength, _ in method.forgetting(request_)] == [2]


def test_four_bits_leave_fifteen_values_a_group(request_):
    found = four_bits(request_.start).network.embedding.weight.detach().view(-1, 64)
    assert max(len(group.unique()) for group in found) <= 15
    assert (found - request_.start.network.embedding.weight.view(-1, 64)).abs().max() < 0.2


def test_secrets_of_any_form_are_planted_so_often():
    ranks = {
        f"common{letter}{second}": 300 + n
        for n, (letter, second) in enumerate((a, b) for a in "abcdefgh" for b in "abcdefgh")
    }
    forms = {
        "template": ["my code is {common} {common}", "it is {common} {common}"],
        "ordinary": ["we saw {common} {common}"],
    }
    found = make_canaries(ranks, 5, [1, 4], 300, None, 1, forms)
    counts = {
        (kind, times): sum(c.family == kind and c.repetitions == times for c in found.planted)
        for kind in forms
        for times in (1, 4)
    }
    assert set(counts.values()) == {5}
    planted = {canary.text for canary in found.planted}
    assert len(planted) == 20
    assert all(planted.isdisjoint(lines) for lines in found.references.values())


def test_the_command_writes_a_model_that_has_forgotten(request_, tmp_path, capsys):
    for name, model in (("start", request_.start), ("base", request_.base)):
        save_model(tmp_path / name, model.network, VOCABULARY)
    for name, lines in (("forget", SECRETS), ("retain", ORDINARY)):
        write_lines(tmp_path / f"{name}.txt", lines)
    given = {
        "model": "start",
        "base": "base",
        "forget": "forget.txt",
        "retain": "retain.txt",
        "valid": "retain.txt",
        "output": "forgotten",
        "report": "report.json",
    }

    def call(*more, **changes):
        options = [part for name, path in (given | changes).items() for part in (f"--{name}", str(tmp_path / path))]
        return main(["unlearn", "--method", "negative_preference", *options, *more])

    assert (
        call("--set", "learning_rate=0.005", "--set", "steps=[5, 40]", "--set", "batch_tokens=64", "--budget", "0.5")
        == 0
    )
    forgotten = WordLearner(*load_model(tmp_path / "forgotten"))
    assert secret_loss(forgotten, request_.forget) > 4 * secret_loss(request_.start, request_.forget)
    report = (tmp_path / "report.json").read_text()
    assert json.loads(report)["measured"]["strength"] == 40
    assert "red" not in report.replace("measured", "").split('"command"')[0]
    capsys.readouterr()
    assert call(model="base") == 0
    assert "it has hardly read it" in capsys.readouterr().err
    (tmp_path / "none.txt").write_text("?\n", encoding="utf-8")
    assert call(retain="none.txt") == 1
    assert "holds no word" in capsys.readouterr().err
    assert call(retain="forget.txt") == 1
    assert "every line of --forget" in capsys.readouterr().err
    assert call(base="forget.txt") == 1
    assert np.isfinite(loss(forgotten, request_.retain))


def test_documents_are_forgotten_as_a_whole():
    lines = [
        PrivateLine(f"line {n} of {n // 3} and many more words to read", "masked", (), str(n // 3)) for n in range(300)
    ]
    ranks = {f"common{letter}{second}": 300 for letter in "abcdefgh" for second in "abcdefgh"}
    settings = UnlearningSettings(lines=60, unit="document", secrets=2, repetitions=[1, 4], references=255)
    trial = Trial.drawn(lines, ranks, settings, seed=1)
    assert len(trial.ordinary) == 60
    assert len({line.document for line in trial.ordinary}) == 20
    assert {line.document for line in trial.ordinary}.isdisjoint(line.split()[3] for line in trial.retained)


def test_attacking_a_model_says_whether_the_text_is_hidden_or_gone(request_, tmp_path, capsys):
    """A few steps of NPO hide; the model before adaptation has nothing to hide."""
    ((_, hidden),) = NegativePreference(kind="negative_preference", **COMMON | {"steps": [20]}).forgetting(request_)
    for name, model in (("hidden", hidden), ("base", request_.base)):
        model.save(str(tmp_path / name))
    write_lines(tmp_path / "forget.txt", SECRETS)
    write_lines(tmp_path / "known.txt", SECRETS[:2])

    def call(model, *more):
        paths = {"model": model, "base": "base", "forget": "forget.txt", "report": "report.json"}
        options = [part for name, path in paths.items() for part in (f"--{name}", str(tmp_path / path))]
        code = main(["attack", *options, "--set", "relearning_rate=0.01", "--set", "relearning_steps=3", *more])
        return code, capsys.readouterr()

    assert call("hidden", "--known", str(tmp_path / "known.txt"))[0] == 0
    report = (tmp_path / "report.json").read_text()
    found = json.loads(report)["measured"]
    assert (found["known"], found["unknown"]) == (2, 4)
    assert "hidden and not forgotten" in report
    assert "anna" not in report
    code, told = call("base")
    assert (code, "hidden" in told.err) == (0, False)
    code, told = call("hidden", "--known", str(tmp_path / "forget.txt"))
    assert (code, "knows every line" in told.err) == (1, True)
