"""What a model still knows of what it had to forget, and what it is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.audit.canaries import Canaries, Family
from tasks.audit.exposure import extrapolated_exposures
from tasks.audit.line_scores import score_lines, score_references
from tasks.audit.model_attacks import Form, membership_of
from tasks.audit.resampling import perplexity_ratio
from tasks.audit.settings import AuditSettings
from tasks.language_model.evaluation.bootstrap import percentile_interval
from tasks.language_model.learners import Learner, MarkedText
from tasks.unlearning.settings import MOST_BITS

if TYPE_CHECKING:
    from tasks.unlearning.settings import UnlearningSettings
    from tasks.unlearning.trial import Trial


@dataclass(frozen=True)
class Secrets:
    """Bits of exposure of each planted secret (C,)."""

    bits: np.ndarray
    canaries: Canaries

    def medians(self, settings: "UnlearningSettings", seed: int, unknown: np.ndarray | None = None) -> dict[str, Any]:
        """By kind and repetitions, each with its interval, from a bootstrap over secrets; ``unknown`` (C,): those that
        count."""
        found: dict[str, Any] = {}
        for kind in dict.fromkeys(canary.family for canary in self.canaries.planted):
            for times in settings.repetitions:
                chosen = np.array(
                    [canary.family == kind and canary.repetitions == times for canary in self.canaries.planted]
                )
                bits = self.bits[chosen if unknown is None else chosen & unknown]
                if not len(bits):
                    continue
                drawn = np.random.default_rng(seed).choice(bits, (settings.bootstrap_samples, len(bits)))
                name = f"exposure_{kind}_{times}"
                found[name] = float(np.median(bits))
                found[f"{name}_ci"] = percentile_interval(np.median(drawn, axis=1), settings.confidence)
        return found


class Judge:
    """Measures models of one trial."""

    def __init__(
        self,
        trial: "Trial",
        base: Learner,
        test: MarkedText,
        settings: "UnlearningSettings",
        seed: int,
    ) -> None:
        self._trial, self._settings, self._seed = trial, settings, seed
        self._test = test
        self._base = base.scorer()
        self._sentences = _by_form(trial.secrets)
        self._before = score_references(self._base, self._sentences)
        members = [line.raw for line in trial.ordinary]
        kept = Random(f"{seed} retained").sample(trial.retained, min(len(members), len(trial.retained)))
        self._lines = {retained: [*lines, *trial.never_seen] for retained, lines in ((False, members), (True, kept))}
        self._lines_before = {retained: score_lines(self._base, lines) for retained, lines in self._lines.items()}

    def secrets(self, model: Learner) -> Secrets:
        """How far up among sentences of its form each secret stands, by how much more probable it is than to the model
        before adaptation (extrapolated exposure, Carlini et al. 2019)."""
        canaries = self._trial.secrets
        after = score_references(model.scorer(), self._sentences)
        bits = np.empty(len(canaries.planted))
        for form, references in canaries.references.items():
            calibrated = after[form] - self._before[form]
            numbers = [n for n, canary in enumerate(canaries.planted) if (canary.family, canary.form) == form]
            bits[numbers] = extrapolated_exposures(
                calibrated[len(references) :], calibrated[: len(references)], MOST_BITS
            )
        return Secrets(bits, canaries)

    def sums(self, model: Learner) -> np.ndarray:
        """Log-probabilities (S,) of the test sentences, in nats."""
        return np.add.reduceat(model.log_probabilities(self._test), self._test.text.offsets[:-1])

    def perplexity(self, sums: np.ndarray) -> float:
        """Of the test text."""
        return float(np.exp(-sums.sum() / self._targets.sum()))

    def ratio(self, sums: np.ndarray, to: np.ndarray) -> tuple[float, tuple[float, float] | None]:
        """Of two perplexities, with its interval."""
        logs, targets = np.stack([sums, to], axis=1), np.stack([self._targets] * 2, axis=1)
        settings = self._settings
        return perplexity_ratio(logs, targets, settings.bootstrap_samples, settings.confidence, self._seed)

    def membership(self, model: Learner, *, retained: bool = False) -> tuple[float | None, tuple[float, float] | None]:
        """AUC by which ordinary lines that were to be forgotten, or as many that are ``retained``, are told from lines
        that nobody is trained on, and its interval."""
        settings, lines, unseen = self._settings, self._lines[retained], len(self._trial.never_seen)
        is_member = np.repeat([True, False], [len(lines) - unseen, unseen])
        audit = AuditSettings(
            bootstrap_samples=settings.bootstrap_samples, confidence=settings.confidence, seed=self._seed
        )
        names = [str(number) for number in range(len(lines))]
        before = self._lines_before[retained]
        found = membership_of(model.scorer(), before, lines, is_member, names, audit)["membership_auc"]
        return found.value, found.interval

    @property
    def _targets(self) -> np.ndarray:
        return self._test.words()


def _by_form(canaries: Canaries) -> Mapping[Form, Sequence[str]]:
    """References, and behind them the secrets of the same form."""
    forms: dict[tuple[Family, int], list[str]] = {form: list(lines) for form, lines in canaries.references.items()}
    for canary in canaries.planted:
        forms[canary.family, canary.form].append(canary.text)
    return forms
