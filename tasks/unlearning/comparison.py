"""All ways to forget, tried on one corpus, beside the model that never read what had to be forgotten."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tasks.language_model.learners import Learner, MarkedText
from tasks.unlearning.attacks import ATTACKS, Attacker
from tasks.unlearning.judge import Judge
from tasks.unlearning.method import UnlearningMethod
from tasks.unlearning.request import Request
from tasks.unlearning.settings import UnlearningSettings
from tasks.unlearning.trial import Trial

START, RETRAINED = "start", "retrained"
"""The model that has to forget, and one that was trained like it on what is kept alone: the two ends of the scale."""
_LOST = 2.0


@dataclass(frozen=True)
class Forgotten:
    """A model that has forgotten, as far as its budget allows."""

    model: Learner
    strength: float
    seconds: float
    """Processor seconds up to this strength."""
    sweep: list[dict[str, float]]
    """Of each strength that was tried, in their order: ``strength`` and ``valid_ratio``, the perplexity on valid text
    by that of the model before."""
    is_within_budget: bool
    """Whether every request had a strength within the budget."""


def forget_in_turn(
    method: UnlearningMethod, requests: Sequence[Request], valid: MarkedText, budget: float, before: float
) -> Forgotten:
    """Forget one request after the other, and return the model after the last one that the budget allows.

    The budget is of all requests together, over ``before``, the loss of the model before in nats. The first request
    is answered as by ``forget``. A later one that has no strength within the budget is left out. Seconds and sweeps
    add up.
    """
    found = forget(method, requests[0], valid, budget, before)
    for request in requests[1:]:
        after = forget(method, replace(request, start=found.model), valid, budget, before)
        taken = after if after.is_within_budget else found
        found = replace(
            taken,
            seconds=found.seconds + after.seconds,
            sweep=found.sweep + after.sweep,
            is_within_budget=found.is_within_budget and after.is_within_budget,
        )
    return found


def forget(
    method: UnlearningMethod, request: Request, valid: MarkedText, budget: float, before: float | None = None
) -> Forgotten:
    """Take the last of a method's strengths whose perplexity on valid text is within the budget; the first, if none is.

    Strengths behind one that doubles the perplexity are not tried: what is lost then does not come back. ``before``:
    loss in nats that the budget is of (default: that of the model that has to forget).
    """
    before = valid_loss(request.start, valid) if before is None else before
    found: Forgotten | None = None
    sweep: list[dict[str, float]] = []
    begun = time.process_time()
    measuring = 0.0
    for strength, model in method.forgetting(request):
        seconds = time.process_time() - begun - measuring
        ratio = float(np.exp(min(valid_loss(model, valid) - before, 700.0)))
        measuring = time.process_time() - begun - seconds
        is_within = ratio <= 1 + budget
        sweep.append({"strength": strength, "valid_ratio": ratio, "within_budget": is_within})
        if is_within or found is None:
            found = Forgotten(model, strength, seconds, sweep, is_within)
        if ratio > _LOST:
            break
    assert found is not None, "a method has a strength at least"
    return found


def valid_loss(model: Learner, text: MarkedText) -> float:
    """Nats a word or sentence's end."""
    return -float(model.log_probabilities(text).sum() / text.is_word.sum())


@dataclass(frozen=True)
class Comparison:
    """One trial, and the two models at the ends of the scale."""

    trial: Trial
    settings: UnlearningSettings
    requests: Sequence[Request]
    """What is to be forgotten, all at once or in parts; of the first one's start."""
    retrained: Learner
    seconds_of_retraining: float
    valid: MarkedText
    judge: Judge

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What is measured of each model, by the name of the method."""
        judge = self.judge
        sums = {name: judge.sums(model) for name, model in self._ends().items()}
        retrained_auc: float | None = None
        for name, model in self._ends().items():
            row = self._measured(model, sums[name], sums)
            if name == RETRAINED:
                retrained_auc = row["membership"]
            yield name, row | _privacy_leakage(row["membership"], retrained_auc)
        before = valid_loss(self.requests[0].start, self.valid)
        for name, method in self.settings.methods.items():
            forgotten = forget_in_turn(method, self.requests, self.valid, self.settings.budget, before)
            row = self._measured(forgotten.model, judge.sums(forgotten.model), sums)
            row |= _privacy_leakage(row["membership"], retrained_auc)
            yield (
                name,
                {
                    "kind": method.kind,
                    "strength": forgotten.strength,
                    "within_budget": forgotten.is_within_budget,
                    "seconds": round(forgotten.seconds, 2),
                    "share_of_retraining": forgotten.seconds / self.seconds_of_retraining,
                    "sweep": forgotten.sweep,
                    **row,
                },
            )

    def _ends(self) -> dict[str, Learner]:
        return {RETRAINED: self.retrained, START: self.requests[0].start}

    def _measured(self, model: Learner, sums: np.ndarray, ends: dict[str, np.ndarray]) -> dict[str, Any]:
        judge, settings, seed = self.judge, self.settings, self.requests[0].seed
        row: dict[str, Any] = {"perplexity": judge.perplexity(sums)}
        for name, to in ends.items():
            row[f"ratio_to_{name}"], row[f"ratio_to_{name}_ci"] = judge.ratio(sums, to)
        row |= judge.secrets(model).medians(settings, seed)
        row["membership"], row["membership_ci"] = judge.membership(model)
        row["retained_membership"], row["retained_membership_ci"] = judge.membership(model, retained=True)
        attacker, unknown = self._attacker
        for name, attack in ATTACKS.items():
            found = judge.secrets(attack(model, attacker)).medians(settings, seed, unknown)
            row |= {f"{name}.{key}": value for key, value in found.items()}
        return row

    @cached_property
    def _attacker(self) -> tuple[Attacker, np.ndarray]:
        """Who knows a few of the secrets, and which of them (C,) he does not know."""
        secrets, settings, seed = self.trial.secrets, self.settings, self.requests[0].seed
        count = max(1, round(settings.relearned_share * len(secrets.planted)))
        known = np.random.default_rng(seed).permutation(len(secrets.planted))[:count]
        lines = [secrets.planted[number].text for number in known]
        unknown = np.ones(len(secrets.planted), dtype=bool)
        unknown[known] = False
        base, retained = self.requests[0].base, self.requests[0].retain
        return Attacker(settings, seed, base.encode(lines), base.encode(self.trial.alike), retained), unknown


def _privacy_leakage(auc: float | None, of_retrained: float | None) -> dict[str, float | None]:
    """PrivLeak of MUSE (Shi et al. 2024): below 0 what was forgotten is still told from what was never seen, above 0
    its absence is; 0 is retraining."""
    if auc is None or of_retrained is None or of_retrained == 1:
        return {"privacy_leakage": None}
    return {"privacy_leakage": (of_retrained - auc) / (1 - of_retrained)}
