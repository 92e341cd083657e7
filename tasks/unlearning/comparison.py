"""Comparison of all unlearning methods on one corpus with a model that never read the text to forget."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from tasks.audit.attacked import AttackedModel
from tasks.audit.exposure import extrapolated_exposures, sentences_by_form
from tasks.audit.figure import Figure, perplexity_ratio
from tasks.audit.line_scores import score_lines, score_references
from tasks.audit.model_attacks import membership
from tasks.audit.settings import AuditSettings
from tasks.language_model.evaluation.bootstrap import percentile_interval
from tasks.language_model.learners import Learner, MarkedText
from tasks.unlearning.attacks import four_bits, relearned
from tasks.unlearning.method import Request, UnlearningMethod
from tasks.unlearning.settings import MOST_BITS, UnlearningSettings
from tasks.unlearning.trial import Trial

START, RETRAINED = "start", "retrained"
"""The model that must forget, and one retrained without the text to forget: the two ends of the scale."""
_LOST = 2.0


@dataclass(frozen=True)
class Forgotten:
    """A model that has forgotten, within its budget."""

    model: Learner
    strength: float
    seconds: float
    """Processor seconds up to this strength."""
    sweep: list[dict[str, float]]
    """Each strength that was tried, in order: ``strength`` and ``valid_ratio``, the perplexity on valid text divided by
    the perplexity before."""
    is_within_budget: bool


def forget(method: UnlearningMethod, request: Request, valid: MarkedText, budget: float) -> Forgotten:
    """The model of the last strength whose perplexity on valid text is within the budget, else of the first.

    Strengths after one that doubles the perplexity are not tried, since later ones do not recover.
    """
    before = request.start.mean_loss(valid)
    found: Forgotten | None = None
    sweep: list[dict[str, float]] = []
    begun = time.process_time()
    measuring = 0.0
    for strength, model in method.forgetting(request):
        seconds = time.process_time() - begun - measuring
        ratio = float(np.exp(min(model.mean_loss(valid) - before, 700.0)))
        measuring = time.process_time() - begun - seconds
        is_within = ratio <= 1 + budget
        sweep.append({"strength": strength, "valid_ratio": ratio, "within_budget": is_within})
        if is_within or found is None:
            found = Forgotten(model, strength, seconds, sweep, is_within)
        if ratio > _LOST:
            break
    assert found is not None, "a method has at least one strength"
    return found


class Comparison:
    """Measures models of one trial: what they know of the text to forget, and their quality."""

    def __init__(
        self, trial: Trial, settings: UnlearningSettings, request: Request, valid: MarkedText, test: MarkedText
    ) -> None:
        self._trial, self._settings, self._request = trial, settings, request
        self._valid, self._test, self._targets = valid, test, test.words()
        seed, self._planted = request.seed, trial.secrets.planted
        self._base = request.base.scorer()
        self._sentences = sentences_by_form(trial.secrets)
        self._before = score_references(self._base, self._sentences)
        members = [line.raw for line in trial.ordinary]
        retained = Random(f"{seed} retained").sample(trial.retained, min(len(members), len(trial.retained)))
        self._members = {"membership": members, "retained_membership": retained}
        scored = {name: [*lines, *trial.never_seen] for name, lines in self._members.items()}
        self._lines = {name: (lines, score_lines(self._base, lines)) for name, lines in scored.items()}
        count = max(1, round(settings.relearned_share * len(self._planted)))
        known = np.random.default_rng(seed).permutation(len(self._planted))[:count]
        self._unknown = ~np.isin(np.arange(len(self._planted)), known)
        # Lines that an attacker trains on: some secrets, lines of their form, or ordinary ones as any user has.
        self._attackers = {
            "relearned": request.base.encode(self._planted[number].text for number in known),
            "fresh": request.base.encode(trial.alike),
            "continued": request.retain,
        }

    def rows(self, retrained: Learner, seconds_of_retraining: float) -> Iterator[tuple[str, dict[str, Any]]]:
        """The measurements of each model, by the name of the method."""
        ends = {RETRAINED: retrained, START: self._request.start}
        sums = {name: self._sums(model) for name, model in ends.items()}
        measured = {name: self._measured(model, sums[name], sums) for name, model in ends.items()}
        auc = measured[RETRAINED]["membership"]
        for name, row in measured.items():
            yield name, row | _privacy_leakage(row["membership"], auc)
        for name, method in self._settings.methods.items():
            found = forget(method, self._request, self._valid, self._settings.budget)
            row = self._measured(found.model, self._sums(found.model), sums)
            of_method = {
                "kind": method.kind,
                "strength": found.strength,
                "within_budget": found.is_within_budget,
                "seconds": round(found.seconds, 2),
                "share_of_retraining": found.seconds / seconds_of_retraining,
                "sweep": found.sweep,
            }
            yield name, of_method | row | _privacy_leakage(row["membership"], auc)

    def _measured(self, model: Learner, sums: np.ndarray, ends: dict[str, np.ndarray]) -> dict[str, Any]:
        settings, seed = self._settings, self._request.seed
        row: dict[str, Any] = {"perplexity": float(np.exp(-sums.sum() / self._targets.sum()))}
        targets = np.stack([self._targets] * 2, axis=1)
        for name, to in ends.items():
            logs = np.stack([sums, to], axis=1)
            ratio = perplexity_ratio(logs, targets, seed, settings.bootstrap_samples, settings.confidence)
            row |= ratio.ends(f"ratio_to_{name}")
        row |= self._exposures(model)
        for name in self._lines:
            row |= self._membership(model, name).ends(name)
        attacked = ((name, relearned(model, lines, settings, seed)) for name, lines in self._attackers.items())
        for attack, found in (*attacked, ("four_bits", four_bits(model))):
            row |= {f"{attack}.{key}": value for key, value in self._exposures(found, self._unknown).items()}
        return row

    def _exposures(self, model: Learner, chosen: np.ndarray | None = None) -> dict[str, Any]:
        """Median bits of exposure by kind and repetitions, with intervals from a bootstrap over secrets.

        The exposure of a secret is extrapolated (Carlini et al. 2019): its rank among sentences of its form, by the
        gain in log-probability since before adaptation. ``chosen`` (C,), bool, selects secrets.
        """
        settings, planted = self._settings, self._planted
        after = score_references(model.scorer(), self._sentences)
        bits = np.empty(len(planted))
        for form, references in self._trial.secrets.references.items():
            gain = after[form] - self._before[form]
            numbers = [number for number, secret in enumerate(planted) if (secret.family, secret.form) == form]
            bits[numbers] = extrapolated_exposures(gain[len(references) :], gain[: len(references)], MOST_BITS)
        found: dict[str, Any] = {}
        for kind in dict.fromkeys(secret.family for secret in planted):
            for times in settings.repetitions:
                of_kind = np.array([(secret.family, secret.repetitions) == (kind, times) for secret in planted])
                own = bits[of_kind if chosen is None else of_kind & chosen]
                if not len(own):
                    continue
                drawn = np.random.default_rng(self._request.seed).choice(own, (settings.bootstrap_samples, len(own)))
                name = f"exposure_{kind}_{times}"
                found[name] = float(np.median(own))
                found[f"{name}_ci"] = percentile_interval(np.median(drawn, axis=1), settings.confidence)
        return found

    def _sums(self, model: Learner) -> np.ndarray:
        """The log-probabilities (S,) of the test sentences, in nats."""
        return np.add.reduceat(model.log_probabilities(self._test), self._test.text.offsets[:-1])

    def _membership(self, model: Learner, name: str) -> Figure:
        """The AUC of membership inference. Members are the ordinary lines to forget, or as many retained lines;
        non-members are lines of no training text."""
        settings, (lines, before) = self._settings, self._lines[name]
        is_member = np.arange(len(lines)) < len(self._members[name])
        chance = {"bootstrap_samples": settings.bootstrap_samples, "confidence": settings.confidence}
        audit = AuditSettings.model_validate({**chance, "seed": self._request.seed})
        documents = [str(number) for number in range(len(lines))]
        attacked = AttackedModel(model.scorer(), lines, is_member, documents, audit, before=before)
        return membership(attacked)["membership_auc"]


def _privacy_leakage(auc: float | None, of_retrained: float | None) -> dict[str, float | None]:
    """PrivLeak of MUSE (Shi et al. 2024). 0: as after retraining; below 0: membership inference still finds the
    forgotten lines; above 0: their absence shows."""
    if auc is None or of_retrained is None or of_retrained == 1:
        return {"privacy_leakage": None}
    return {"privacy_leakage": (of_retrained - auc) / (1 - of_retrained)}
