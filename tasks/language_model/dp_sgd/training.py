"""DP-SGD (Abadi et al. 2016, algorithm 1) with Adam: a control that measures the cost of privacy without masking.

A unit is a line, or all lines of a document. Each step samples every unit independently (Poisson sampling) and clips
the gradient of its summed loss. It adds Gaussian noise to the sum and divides by the expected number of units. A step
without units is noise alone. SHAKE-256 of the clone's secret, the text and the settings generates samples and noise. So
the same command gives the same model in this clone, and nobody can repeat them without the secret. The noise is
floating point, which is no exact Gaussian in its lowest bits (Mironov 2012).

Epsilon covers the weights, for the presence or absence of one unit; the number of units counts as known. It does not
cover the report: gradient norms and validation losses are exact.
"""

import hashlib
import hmac
import math
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tasks.corpora.text_lines import read_documents
from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.files.clone_key import clone_key
from tasks.language_model.dp_sgd.accountant import epsilon_spent, noise_multiplier_for
from tasks.language_model.dp_sgd.gradients import ClippedGradients
from tasks.language_model.encoded_text import EncodedText, encode_text, warn_of_markers
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.settings import AdaptationSettings, DifferentialPrivacy
from tasks.language_model.training import summed_loss, valid_perplexities
from tasks.language_model.transformer.batching import Windows, divide
from tasks.language_model.transformer.model import TransformerLanguageModel, load_model, save_model
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.torch_setup import set_dropout, set_up_torch
from tasks.training.optimiser import ADAM_BETAS, rate_factor
from tasks.training.stage import Curve, Log, log_nothing

if TYPE_CHECKING:
    from tasks.language_model.adapt import AdaptFiles

_WARMUP_SHARE = 0.1


class SecretNumbers:
    """Random numbers that cannot be repeated without the key."""

    def __init__(self, key: bytes) -> None:
        self._key, self._drawn = key, 0

    def uniform(self, count: int) -> np.ndarray:
        """Draw ``(count,)`` float64, uniform in the open interval from 0 to 1."""
        self._drawn += 1
        stream = hashlib.shake_256(self._key + self._drawn.to_bytes(8)).digest(8 * count)
        return ((np.frombuffer(stream, dtype="<u8") >> 11).astype(np.float64) + 0.5) / 2.0**53

    def normal(self, like: Tensor) -> Tensor:
        """Draw a tensor of this shape with mean 0 and standard deviation 1 (Box and Muller 1958)."""
        half = -(-like.numel() // 2)
        first, second = self.uniform(2 * half).reshape(2, half)
        length, angle = np.sqrt(-2 * np.log(first)), 2 * math.pi * second
        drawn = np.concatenate([length * np.cos(angle), length * np.sin(angle)])[: like.numel()]
        return torch.from_numpy(drawn).to(like.dtype).view_as(like)


def units_of(text: EncodedText, windows: Windows, documents: list[str] | None = None) -> list[np.ndarray]:
    """The windows of each unit: a sentence, or all sentences of a document; ``documents`` names each line's."""
    numbers = np.arange(text.sentences)
    if documents is not None:
        names: dict[str, int] = {}
        numbers = np.array([names.setdefault(documents[line - 1], len(names)) for line in text.lines.tolist()])
    unit = numbers[windows.sentence]
    order = np.argsort(unit, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(unit[order])) + 1)


def train_privately(
    model: TransformerLanguageModel,
    text: EncodedText,
    settings: DifferentialPrivacy,
    numbers: SecretNumbers,
    *,
    documents: list[str] | None = None,
    valid: EncodedText | None = None,
    on_log: Log = log_nothing,
    log_every_steps: int = 10,
) -> dict[str, Any]:
    """Train ``model`` in place and return the entries of a report.

    Raises ``ParameterError`` where epsilon cannot be reached, and ``ModelError`` where weights are no longer finite.
    """
    from tqdm import tqdm

    windows = divide(text, model.architecture.maximum_tokens)
    units = units_of(text, windows, documents)
    rate = min(1.0, settings.batch_units / len(units))
    steps = max(1, round(settings.epochs / rate))
    noise = noise_multiplier_for(settings.epsilon, settings.delta, rate, steps)
    deviation = noise * settings.clipping_norm
    set_dropout(model, 0.0)
    gradients = ClippedGradients(model, text, windows, units, settings.clipping_norm)
    targets_before = np.concatenate([[0], np.cumsum(text.is_target())])
    first, last = windows.first + 1, windows.first + windows.length + 1
    targets = np.array([int((targets_before[last[unit]] - targets_before[first[unit]]).sum()) for unit in units])
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.learning_rate, betas=ADAM_BETAS)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    curve: list[dict[str, float]] = []
    norms: list[np.ndarray] = []
    tokens, started = 0, time.perf_counter()

    def log(step: int, values: dict[str, float]) -> None:
        curve.append({"step": step, **values})
        on_log(step, {name: value for name, value in values.items() if name != "epoch"})

    if valid is not None:
        log(0, {"epoch": 0.0, "valid_loss": mean_loss(model, valid)})
    for step in tqdm(range(steps), desc="adapt", unit="step", disable=None, leave=False):
        chosen = np.flatnonzero(numbers.uniform(len(units)) < rate)
        total, found = gradients.of(chosen)
        norms.append(found)
        tokens += int(targets[chosen].sum())
        for name, weight in model.named_parameters():
            weight.grad = (total[name] + deviation * numbers.normal(weight)) / (rate * len(units))
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate * rate_factor(step, steps, _WARMUP_SHARE)
        optimiser.step()
        if (step + 1) % log_every_steps == 0:
            log(step + 1, {"learning_rate": optimiser.param_groups[0]["lr"]})
    model.zero_grad()
    moved = _length({name: weight.detach() - before[name] for name, weight in model.named_parameters()})
    if not math.isfinite(moved):
        raise ModelError(
            f"weights are not finite after {steps} steps; no model was saved. Give a smaller learning_rate than "
            f"{settings.learning_rate!r}"
        )
    if valid is not None:
        log(steps, {"epoch": steps * rate, "valid_loss": mean_loss(model, valid)})
    seconds = time.perf_counter() - started
    of_units = np.concatenate(norms)  # before clipping
    spent = {
        "epsilon": epsilon_spent(rate, noise, steps, settings.delta),
        "delta": settings.delta,
        "unit": settings.unit,
        "units": len(units),
        "accountant": "RDP, add or remove one unit, Poisson sampling",
        "sampling_rate": rate,
        "noise_multiplier": noise,
        "clipping_norm": settings.clipping_norm,
        "units_taken": len(of_units),
        "gradient_norm_median": float(np.median(of_units)) if len(of_units) else None,
        "clipped_share": float((of_units > settings.clipping_norm).mean()) if len(of_units) else None,
        "weights_moved": moved / _length(before),
    }
    return {
        "steps": steps,
        "epochs": round(steps * rate, 6),
        "tokens": tokens,
        "tokens_per_second": round(tokens / seconds, 1),
        "train_seconds": round(seconds, 3),
        "arithmetic": "float32",
        "curve": curve,
        "differential_privacy": spent,
    }


def _length(weights: dict[str, Tensor]) -> float:
    return math.sqrt(sum(float(weight.double().square().sum()) for weight in weights.values()))


@torch.no_grad()
def mean_loss(model: TransformerLanguageModel, text: EncodedText) -> float:
    """Mean loss of a text, in nats a target."""
    total, targets = summed_loss(model, text)
    return total / targets


def adapt(
    settings: AdaptationSettings, files: "AdaptFiles", seed: int, resources: ResourceSettings, curve: Curve
) -> Report:
    """Run the stage ``adapt`` with ``adaptation.private``: read, train, write the folder, and print one line of
    results. It runs on the processor, in one process.

    Raises ``ParameterError`` where documents are protected and not given. Raises ``CorpusError`` where they belong to
    another text, or every line is its own document. Raises ``ModelError`` where the model reads across sentences or has
    no learned positions.
    """
    private = settings.private
    assert private is not None, "the caller checks this"
    check_replaceable(files.output)
    set_up_torch(resources.threads)
    model, vocabulary = load_model(files.model)
    if not model.is_stepwise:
        raise ModelError(
            f"model {files.model!r} has {model.architecture.positions!r} positions and the languages "
            f"{model.architecture.languages!r}. Gradients are clipped line by line only with 'learned' positions and "
            "without languages; pretrain such a model"
        )
    if model.architecture.parts > 1 or model.architecture.steering:
        raise ModelError(
            f"model {files.model!r} joins several models or is steered. Gradients cannot be clipped line by line in "
            "such a model; adapt the model that it was made from"
        )
    model.languages = None  # they belong to another text
    text = encode_text(files.input, vocabulary, files.markers)
    documents = _documents(private, files, text)
    valid = encode_text(files.valid, vocabulary) if files.valid else None
    drawn = hashlib.sha256(text.offsets.tobytes() + text.tokens.tobytes() + settings.model_dump_json().encode())
    key = hmac.digest(clone_key("DP-SGD"), drawn.digest() + seed.to_bytes(8), "sha256")
    with curve.open() as on_log:
        trained = train_privately(
            model,
            text,
            private,
            SecretNumbers(key),
            documents=documents,
            valid=valid,
            on_log=on_log,
            log_every_steps=curve.every_steps,
        )
    save_model(files.output, model.eval(), vocabulary)
    report = Report(seed=seed).measure(
        **trained,
        parameters_count=model.parameter_count(),
        vocabulary_size=len(vocabulary),
        vocabulary_hash=vocabulary.hash,
        **text.counts(),
        marker_use=files.markers,
        threads=resources.threads,
    )
    warn_of_markers(report, text.marker_like)
    spent = trained["differential_privacy"]
    print(
        f"adapt: DP-SGD, epsilon {spent['epsilon']:.3f} at delta {private.delta:g} for each {private.unit} of "
        f"{spent['units']:,}; {trained['steps']:,} steps, noise {spent['noise_multiplier']:.3f}"
        f"{valid_perplexities(trained['curve'])}; model in {files.output}",
        file=sys.stderr,
    )
    return report


def _documents(private: DifferentialPrivacy, files: "AdaptFiles", text: EncodedText) -> list[str] | None:
    if private.unit == "line":
        return None
    if not files.documents:
        raise ParameterError("private.unit='document' protects all lines of a document together; give --documents")
    names = list(read_documents(files.documents))
    lines = text.sentences + text.empty_lines + text.dropped_lines
    if len(names) != lines:
        raise CorpusError(f"--documents {files.documents!r} has {len(names)} lines, the text {lines}; give one each")
    if len(set(names)) == lines:
        raise CorpusError(
            f"each line of {files.input!r} is its own document in {files.documents!r}; set private.unit: line"
        )
    return names
