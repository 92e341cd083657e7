"""The result of one attack: a number, its interval, and the result where there is nothing to find."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.audit.resampling import bootstrap, interval_of
from tasks.filling.restoration import wilson_interval
from tasks.language_model.evaluation.bootstrap import ratio_of_sums

Interval = tuple[float, float]
SHARES = (0.0, 1.0)
"""Bounds of a share."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of an audit. A share is from 0 to 1, exposure is in bits."""

    value: float | None
    """``None`` if there was nothing to attack."""
    interval: Interval | None
    """Both ends; ``None`` if the value is exact or has too few places."""
    attacker: str
    """The attack in one line, without words of the text; figures of different attackers are not comparable."""
    blind: float | None = None
    """Result of the attack without the attacked text or model: guesses by frequency, or the model before adaptation.
    ``None`` if there is no such attack, as for a count."""
    places: int = 0
    """Number of words, lines or canaries that the value is over."""

    def ends(self, name: str) -> dict[str, Any]:
        """Value and interval under their names in a report."""
        return {name: self.value, f"{name}_ci": list(self.interval) if self.interval is not None else None}

    def fields(self, name: str) -> dict[str, Any]:
        """The figure's entries in a report, under its name."""
        return self.ends(name) | {f"{name}_blind": self.blind, f"{name}_places": self.places}


def fields_of(figures: Mapping[str, Figure]) -> dict[str, Any]:
    """The entries of figures in a report."""
    return {key: value for name, figure in figures.items() for key, value in figure.fields(name).items()}


def share_figure(hits: Sequence[float], places: Sequence[float], attacker: str, blind: float | None = None) -> Figure:
    """A share of places, from the hits and places of each document; places of one document are not independent.

    The interval is at 95 %, from a bootstrap over documents. Resamples of equal values have no width, so it is Wilson's
    score interval if all or none of the places are hits, if every document has at most one place, or, with a document
    as one place, if all documents have the same share. With few
    documents the bootstrap is too narrow, so the interval is stretched (``student_stretch``).
    """
    found, counted = np.array(hits, dtype=np.float64), np.array(places, dtype=np.float64)
    found, counted = found[counted > 0], counted[counted > 0]
    total = int(counted.sum())
    if not total:
        return Figure(None, None, attacker, blind)
    value = float(found.sum() / total)
    if np.ptp(found / counted) == 0 or counted.max() == 1:
        many = total if value in (0, 1) or counted.max() == 1 else len(counted)
        ends = wilson_interval(round(value * many), many)
        return Figure(value, (ends[0], ends[1]) if ends else None, attacker, blind, total)
    return _ratio(found, counted, attacker, blind, SHARES)


def share_difference(gained: Sequence[float], places: Sequence[float], attacker: str) -> Figure:
    """The difference of two shares of the same places, from the hits gained and the places of each document.

    The interval is at 95 %, from a bootstrap over documents.
    """
    more, counted = np.array(gained, dtype=np.float64), np.array(places, dtype=np.float64)
    return _ratio(more, counted, attacker, None, (-1.0, 1.0))


def _ratio(hits: np.ndarray, places: np.ndarray, attacker: str, blind: float | None, bounds: Interval) -> Figure:
    def ratio(drawn: np.ndarray) -> np.ndarray:
        return ratio_of_sums(drawn @ hits, drawn @ places)

    value, total = float(hits.sum() / places.sum()), int(places.sum())
    return bootstrapped(value, ratio, len(places), attacker, blind=blind, places=total, bounds=bounds)


def bootstrapped(
    value: float,
    statistic: Callable[[np.ndarray], np.ndarray],
    units: int,
    attacker: str,
    *,
    blind: float | None = None,
    places: int = 0,
    bounds: Interval = SHARES,
    samples: int = 1000,
    confidence: float = 0.95,
    seed: int = 1,
) -> Figure:
    """A figure with an interval from a bootstrap over units.

    ``statistic``: the value of each resample (r,), from blocks of counts (r, units), how often each unit is drawn.
    """
    drawn = bootstrap(statistic, units, samples, seed)
    return Figure(value, interval_of(value, drawn, units, confidence, bounds), attacker, blind, places)


def perplexity_ratio(
    logs: np.ndarray, targets: np.ndarray, seed: int, samples: int = 1000, confidence: float = 0.95
) -> Figure:
    """Perplexity of the first column divided by the second, with an interval from a bootstrap over sentences.

    ``logs`` (S, 2): log-probabilities of the sentences in nats; ``targets`` (S, 2): their numbers of targets.
    """

    def log_ratio(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
        means: np.ndarray = ratio_of_sums(sums, counts)
        return means[..., 1] - means[..., 0]

    value = float(log_ratio(logs.sum(axis=0), targets.sum(axis=0)))
    drawn = bootstrap(lambda counts: log_ratio(counts @ logs, counts @ targets), len(logs), samples, seed)
    ends = interval_of(value, drawn, len(logs), confidence, (-np.inf, np.inf))
    return Figure(float(np.exp(value)), (float(np.exp(ends[0])), float(np.exp(ends[1]))) if ends else None, "")
