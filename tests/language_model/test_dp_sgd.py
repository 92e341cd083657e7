"""DP-SGD: its accountant against published values, clipped gradients against the plain loop, noise against its law."""

import json
import math

import numpy as np
import pytest
import torch
from pretrained_folder import adapt_options, fill_with_pretrained, write
from scipy.optimize import brentq
from scipy.stats import kstest
from stage_commands import settings as keys

from tasks.cli import main
from tasks.errors import ParameterError
from tasks.language_model.adapt import TransformerAdaptation
from tasks.language_model.dp_sgd import gradients as dp_gradients
from tasks.language_model.dp_sgd.accountant import ORDERS, epsilon_spent, noise_multiplier_for
from tasks.language_model.dp_sgd.gradients import ClippedGradients
from tasks.language_model.dp_sgd.training import SecretNumbers, train_privately, units_of
from tasks.language_model.settings import AdaptationSettings, DifferentialPrivacy
from tasks.language_model.transformer.batching import divide, make_batch
from tasks.language_model.transformer.joined import joined, steered
from tasks.language_model.transformer.model import load_model, save_model
from tasks.records.stage_report import read_report
from tasks.training.stage import trains_in_ranks

LINES = ["a b c", "d", "a a d b", "c b", "b b b b b b c d a b c", "unknown a", "d c b a d"]
DOCUMENTS = ["one", "two", "one", "three", "two", "two", "two"]


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "epsilon"),
    [
        # By the integral of Mironov et al. 2019 and the same orders, computed here without Opacus.
        (0.001, 4.0, 10000, 0.08622744109),
        (0.128, 0.6, 31, 16.97266962),
        (1.0, 0.6, 31, 85.69964176),
        (1.0, 4.0, 10000, 429.8612601),
        # Opacus, tests/accountants_test.py: 90 epochs at a rate of 0.04.
        (0.04, 1.5, 2250, 7.32911117143),
    ],
)
def test_epsilon_is_that_of_another_accountant(rate, noise, steps, epsilon):
    assert epsilon_spent(rate, noise, steps, 1e-5) == pytest.approx(epsilon, rel=1e-8)


def test_the_noise_is_the_least_that_is_enough():
    """Against the closed form of a Gaussian mechanism that samples every unit, solved for the noise."""
    epsilon, steps = 8.0, 31

    def spent(noise):
        divergences = ((order, order * steps / (2 * noise**2)) for order in ORDERS)
        return min(d + math.log1p(-1 / a) - (math.log(1e-5) + math.log(a)) / (a - 1) for a, d in divergences)

    found = noise_multiplier_for(epsilon, 1e-5, 1.0, steps)
    assert 1 - 1e-9 < found / brentq(lambda noise: spent(noise) - epsilon, 0.5, 20) < 1.001 + 1e-9
    assert epsilon_spent(1.0, found, steps, 1e-5) <= epsilon < epsilon_spent(1.0, found / 1.002, steps, 1e-5)
    assert noise_multiplier_for(100.0, 1e-5, 0.5, 3) == 0.25
    with pytest.raises(ParameterError, match=r"epsilon 0\.1 at delta 1e-05 cannot be reached in 100000000 steps"):
        noise_multiplier_for(0.1, 1e-5, 1.0, 100_000_000)


@pytest.fixture
def model(small_model):
    """Two layers of random weights, larger than a beginning has, so that no gradient is near 0."""
    model, generator = small_model(layers=2), torch.Generator().manual_seed(5)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5, generator=generator)
    return model


def plain(model, text, units, clip):
    """The definition: unit by unit, the gradient of the summed loss by autograd, cut to the norm, and added up."""
    windows, norms = divide(text, model.architecture.maximum_tokens), []
    total = {name: torch.zeros_like(weight) for name, weight in model.named_parameters()}
    for unit in units:
        model.zero_grad()
        for window in unit.tolist():
            batch = make_batch(text, text.is_target(), windows, np.array([window]))
            scores = model.logits(batch.tokens).flatten(0, 1)[batch.positions]
            torch.nn.functional.cross_entropy(scores, batch.targets, reduction="sum").backward()
        found = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
        norms.append(math.sqrt(sum(float(gradient.square().sum()) for gradient in found.values())))
        for name, gradient in found.items():
            total[name] += gradient * min(1.0, clip / norms[-1])
    return total, norms


@pytest.mark.parametrize(("long_unit", "by_document"), [(128, False), (6, True), (0, True)])
def test_clipped_gradients_are_those_of_the_plain_loop(model, encoded, monkeypatch, long_unit, by_document):
    """One line is longer than the model's positions; units of several windows are rows, or taken one by one. Markers
    that are no targets have no loss."""
    monkeypatch.setattr(dp_gradients, "LONG_UNIT", long_unit)
    monkeypatch.setattr(dp_gradients, "_INPUTS_AT_ONCE", 20)
    text = encoded([*LINES, "a [MASK] b"], "ignore")
    windows = divide(text, 8)
    assert len(windows) > text.sentences
    units = units_of(text, windows, [*DOCUMENTS, "one"] if by_document else None)
    assert len(units) == (3 if by_document else text.sentences)
    chosen = np.array([2, 0, *([] if by_document else [6, 4, 7])])
    for clip in (0.5, 1e6):
        expected, norms = plain(model, text, [units[index] for index in chosen], clip)
        total, found = ClippedGradients(model, text, windows, units, clip).of(chosen)
        assert found == pytest.approx(norms, rel=1e-4)
        assert set(total) == {name for name, _ in model.named_parameters()}
        for name, gradient in expected.items():
            assert float(gradient.abs().max()) > 0, name
            torch.testing.assert_close(total[name], gradient, rtol=1e-4, atol=1e-5 * max(1.0, min(clip, 100.0)))


def test_noise_has_the_stated_deviation_and_units_are_taken_at_the_stated_rate(small_model, encoded, monkeypatch):
    """With Adam's step replaced by plain descent, weights move by (sum + noise) / expected units."""
    taken, added = [], []

    def nothing(self, chosen):
        taken.append(len(chosen))
        return {name: torch.zeros_like(weight) for name, weight in self._model.named_parameters()}, np.ones(len(chosen))

    def descent(self):
        added.append(torch.cat([weight.grad.flatten() for weight in self.param_groups[0]["params"]]))

    monkeypatch.setattr(ClippedGradients, "of", nothing)
    monkeypatch.setattr(torch.optim.Adam, "step", descent)
    settings = DifferentialPrivacy(epsilon=1.0, clipping_norm=3.0, batch_units=25, epochs=10.0)
    trained = train_privately(small_model(), encoded(["a b"] * 100), settings, SecretNumbers(b"key"))
    spent = trained["differential_privacy"]
    assert (trained["steps"], spent["sampling_rate"], len(added)) == (40, 0.25, 40)
    noise = torch.cat(added).numpy() * 25 / (3.0 * spent["noise_multiplier"])
    assert kstest(noise, "norm").pvalue > 1e-3
    # Standard error of the share over 40 x 100 coins: 0.007.
    assert spent["units_taken"] / 4000 == pytest.approx(0.25, abs=0.028)
    assert np.std(taken) == pytest.approx(math.sqrt(100 * 0.25 * 0.75), rel=0.4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts and a pretrained model, and the document of each line."""
    folder = fill_with_pretrained(tmp_path_factory.mktemp("private"), 60)
    write(folder / "documents.txt", [str(line // 3) for line in range(60)])
    return folder


def adapted(folder, private, *options, output="adapted"):
    private = ["--documents", str(folder / "documents.txt"), *keys(f"adaptation.private={json.dumps(private)}")]
    return main([*adapt_options(folder, output), *private, *options])


def test_the_report_says_what_was_spent_and_weights_move(folder):
    private = {"epsilon": 3.0, "unit": "document", "batch_units": 20, "epochs": 3.0}
    assert adapted(folder, private) == 0
    measured = read_report(folder / "adapted.json")["measured"]
    found = measured["differential_privacy"]
    assert (found["unit"], found["units"], found["delta"]) == ("document", 20, 1e-5)
    assert (found["sampling_rate"], measured["steps"]) == (1.0, 3)
    spent = epsilon_spent(found["sampling_rate"], found["noise_multiplier"], measured["steps"], found["delta"])
    assert found["epsilon"] == spent
    assert 2.97 < spent <= 3.0
    before, after = (load_model(folder / name)[0].state_dict() for name in ("pretrained", "adapted"))
    moved = sum(float((after[name] - weight).square().sum()) for name, weight in before.items())
    whole = sum(float(weight.square().sum()) for weight in before.values())
    assert found["weights_moved"] == pytest.approx(math.sqrt(moved / whole), rel=1e-4)
    assert found["weights_moved"] > 0.01
    assert 0 < found["clipped_share"] <= 1
    first = (folder / "adapted" / "model.safetensors").read_bytes()
    for seed in ("1", "2"):
        assert adapted(folder, private, "--seed", seed) == 0
        assert ((folder / "adapted" / "model.safetensors").read_bytes() == first) == (seed == "1")


def test_what_epsilon_would_not_hold_for_is_refused(folder, capsys):
    numbers = write(folder / "numbers.txt", map(str, range(60)))
    model, vocabulary = load_model(folder / "pretrained")
    width = model.architecture.width
    save_model(folder / "joined", joined([(model, 1.5), (model, -0.5)]), vocabulary)
    save_model(folder / "steered", steered(model, torch.zeros(width, 1), torch.zeros(1, width)), vocabulary)
    for unit, options, said in (
        ("line", keys("adaptation.patience=2"), "does not stop early"),
        ("document", ["--documents", str(folder / "valid.txt")], "has 50 lines, the text 60"),
        ("document", ["--documents", numbers], "is its own document"),
        ("line", ["--model", str(folder / "joined")], "joins several models or is steered"),
        ("line", ["--model", str(folder / "steered")], "joins several models or is steered"),
    ):
        assert adapted(folder, {"epsilon": 8, "unit": unit}, *options, output="refused") == 1
        assert said in capsys.readouterr().err
        assert not (folder / "refused").exists()


def test_it_runs_in_one_process_on_any_number_of_devices():
    private = AdaptationSettings(private=DifferentialPrivacy(epsilon=8.0))
    assert not trains_in_ranks(TransformerAdaptation(adaptation=private))
    assert trains_in_ranks(TransformerAdaptation())
