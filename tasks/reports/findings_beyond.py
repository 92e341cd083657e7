"""What the paper does not ask: how much of the loss each way of filling wins back, which is best, what it restores.

Both perplexities are shown. Over words of the vocabulary (``perplexity_known``) alone, a fill that never writes an
unknown word gains by it, since its model gives ``<unk>`` no probability; over all words it pays for that.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tasks.reports.findings_claims import is_of_the_paper
from tasks.reports.findings_comparison import Comparison, Condition, Experiment, Row

_KNOWN, _ALL = "perplexity_known", "perplexity"
GOAL = 0.2
"""A method is as good as wished where it leaves at most this share of the gap to Oracle that Top-K leaves, over words
of the vocabulary."""


@dataclass(frozen=True, slots=True)
class OverSeeds:
    """Mean, smallest and largest value over the seeds."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Gap:
    """How near a fill comes to Oracle; each number is ``None`` where a reference is missing or not beyond Oracle."""

    dataset: str
    technique: str
    label: str
    seeds: int
    closed: OverSeeds | None
    """Share of the gap from Baseline1 to Oracle that it closes, in log perplexity: 0 is Baseline1, 1 is Oracle."""
    of_top_k: OverSeeds | None
    """Its distance from Oracle per that of Top-K by the same filler, in perplexity; a fill without a filler is held
    against the nearest Top-K."""
    closed_all_words: OverSeeds | None
    of_top_k_all_words: OverSeeds | None


@dataclass(frozen=True, slots=True)
class Best:
    """The fill with the lowest perplexity of a technique, over words of the vocabulary or over all words."""

    dataset: str
    technique: str
    label: str
    perplexity: float
    to_next: Comparison | None
    """Against the next best."""
    to_control: Comparison | None
    """Against the best control, a fill without any filler; ``None`` where it is one itself."""


@dataclass(frozen=True, slots=True)
class Restored:
    """How many masked words a fill gives back, beside guessing by frequency."""

    dataset: str
    technique: str
    label: str
    rate: float
    by_frequency: float | None
    """What a draw by frequency among the words that may be masked would restore on average."""

    @property
    def more_than_guessing(self) -> bool | None:
        """Whether it restores more than the guess; ``None`` where there is no guess."""
        return None if self.by_frequency is None else self.rate > self.by_frequency


@dataclass(frozen=True, slots=True)
class Beyond:
    """All of it."""

    gaps: tuple[Gap, ...]
    best: tuple[Best, ...]
    """Over words of the vocabulary."""
    best_all_words: tuple[Best, ...]
    restored: tuple[Restored, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "gaps": [asdict(gap) for gap in self.gaps],
            "best": [asdict(best) for best in self.best],
            "best_all_words": [asdict(best) for best in self.best_all_words],
            "restored": [{**asdict(r), "more_than_guessing": r.more_than_guessing} for r in self.restored],
        }


def beyond(experiment: Experiment) -> Beyond:
    """What a summary says beyond the paper's claims."""
    filled = list(experiment.filled())
    return Beyond(
        tuple(_gap(experiment, condition, filled) for condition in filled),
        tuple(_best_fills(experiment, filled, _KNOWN)),
        tuple(_best_fills(experiment, filled, _ALL)),
        tuple(restored for condition in filled if (restored := _restored(experiment, condition)) is not None),
    )


def _gap(experiment: Experiment, condition: Condition, filled: Sequence[Condition]) -> Gap:
    oracle, baseline = experiment.beside(condition, "oracle"), experiment.beside(condition, "baseline1")
    mine = experiment.by_condition[condition]

    def shares(field: str) -> tuple[OverSeeds | None, OverSeeds | None]:
        top_k = _top_k_of(experiment, condition, filled, field)
        return (
            _over_seeds(experiment, [condition, baseline, oracle], _closed, field),
            _over_seeds(experiment, [condition, top_k, oracle], _left, field),
        )

    place = condition.dataset, str(condition.technique), condition.label, len(mine)
    return Gap(*place, *shares(_KNOWN), *shares(_ALL))


def _closed(fill: float, baseline: float, oracle: float) -> float | None:
    return math.log(baseline / fill) / math.log(baseline / oracle) if baseline > oracle else None


def _left(fill: float, top_k: float, oracle: float) -> float | None:
    return (fill - oracle) / (top_k - oracle) if top_k > oracle else None


def _over_seeds(
    experiment: Experiment, conditions: Sequence[Condition | None], share: Callable[..., float | None], field: str
) -> OverSeeds | None:
    """A share computed for every seed of the first condition; ``None`` where a number or a condition is missing."""
    values = []
    for seed in experiment.by_condition[conditions[0]] if conditions[0] is not None else ():
        numbers = [experiment.by_condition[c].get(seed, {}).get(field) if c is not None else None for c in conditions]
        value = share(*numbers) if all(numbers) else None
        if value is None:
            return None
        values.append(value)
    return OverSeeds(statistics.fmean(values), min(values), max(values)) if values else None


def _top_k_of(
    experiment: Experiment, condition: Condition, filled: Iterable[Condition], field: str
) -> Condition | None:
    found = [
        (number, other)
        for other in filled
        if (other.dataset, other.technique, other.method) == (condition.dataset, condition.technique, "top_k")
        and is_of_the_paper(other)
        and condition.filler in (None, other.filler)
        and (number := experiment.number(other, field)) is not None
    ]
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _best_fills(experiment: Experiment, filled: Sequence[Condition], field: str) -> list[Best]:
    places = list(dict.fromkeys((condition.dataset, condition.technique) for condition in filled))
    best = []
    known = field == _KNOWN
    for place in places:
        ranked = sorted(
            (
                (number, index, condition)
                for index, condition in enumerate(filled)
                if (condition.dataset, condition.technique) == place
                and (number := experiment.number(condition, field)) is not None
            ),
        )
        if not ranked:
            continue
        perplexity, _, first = ranked[0]
        following = ranked[1][2] if len(ranked) > 1 else None
        control = next((c for _, _, c in ranked if c.filler is None and c is not first), None)
        best.append(
            Best(
                first.dataset,
                str(first.technique),
                first.label,
                perplexity,
                experiment.compare(first, following, "below", known=known),
                experiment.compare(first, control, "below", known=known) if first.filler is not None else None,
            )
        )
    return best


def _restored(experiment: Experiment, condition: Condition) -> Restored | None:
    rows = list(experiment.by_condition[condition].values())
    rate, guess = _mean(rows, "restoration_rate"), _mean(rows, "restoration_by_frequency")
    if rate is None:
        return None
    return Restored(condition.dataset, str(condition.technique), condition.label, rate, guess)


def _mean(rows: Iterable[Row], field: str) -> float | None:
    values = [row.get(field) for row in rows]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None
