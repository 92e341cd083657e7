"""What the paper does not ask: how much of the loss each way of filling wins back, which is best, what it restores.

Both perplexities are shown. Over words of the vocabulary (``perplexity_known``) alone, a fill that never writes an
unknown word gains by it, since its model gives ``<unk>`` no probability; over all words it pays for that.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tasks.reports.findings_claims import is_of_the_paper
from tasks.reports.findings_comparison import Comparison, Condition, Experiment, Outcome, Row, ShareOfGap

_KNOWN, _ALL = "perplexity_known", "perplexity"
GOAL = 0.2
"""A method is as good as wished where it leaves at most this share of the gap to Oracle that Top-K leaves, over words
of the vocabulary."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a gap."""

    mean: float
    """Over the seeds."""
    smallest: float
    largest: float
    """Of a seed."""
    interval: tuple[float, float] | None
    """Over test sentences and seeds, by a bootstrap; ``None`` without the scores of sentences."""


@dataclass(frozen=True, slots=True)
class Gap:
    """How near a fill comes to Oracle; each number is ``None`` where a reference is missing or not beyond Oracle."""

    dataset: str
    technique: str
    label: str
    seeds: int
    closed: Share | None
    """Share of the gap from Baseline1 to Oracle that it closes, in log perplexity: 0 is Baseline1, 1 is Oracle."""
    of_top_k: Share | None
    """Its distance from Oracle per that of Top-K by the same filler, in perplexity; a fill without a filler is held
    against the nearest Top-K."""
    closed_all_words: Share | None
    of_top_k_all_words: Share | None

    @property
    def goal(self) -> Outcome | None:
        """What the interval over known words says of ``GOAL``; ``None`` where there is none."""
        if self.of_top_k is None or self.of_top_k.interval is None:
            return None
        low, high = self.of_top_k.interval
        if low <= GOAL < high:
            return "open"
        return "for" if high <= GOAL else "against"


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
    """Mean over the seeds."""
    interval: tuple[float, float] | None
    """Means of the ends of the seeds' Wilson intervals: all seeds fill the same places, so that more seeds are no more
    places."""
    by_frequency: float | None
    """What a draw by frequency among the words that may be masked would restore on average."""

    @property
    def beside_guessing(self) -> Literal["more", "fewer", "open"] | None:
        """Whether the interval lies above or below the guess or holds it; ``None`` where there is no guess."""
        if self.by_frequency is None:
            return None
        if self.interval is None or self.interval[0] <= self.by_frequency <= self.interval[1]:
            return "open"
        return "more" if self.rate > self.by_frequency else "fewer"


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
            "gaps": [{**asdict(gap), "goal": gap.goal} for gap in self.gaps],
            "best": [asdict(best) for best in self.best],
            "best_all_words": [asdict(best) for best in self.best_all_words],
            "restored": [{**asdict(r), "beside_guessing": r.beside_guessing} for r in self.restored],
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
    shares = []
    for field in (_KNOWN, _ALL):
        top_k = _top_k_of(experiment, condition, filled, field)
        shares += [
            _share(experiment, "closed", condition, baseline, oracle, field),
            _share(experiment, "left", condition, top_k, oracle, field),
        ]
    seeds = len(experiment.by_condition[condition])
    return Gap(condition.dataset, str(condition.technique), condition.label, seeds, *shares)


def _closed(fill: float, worse: float, better: float) -> float | None:
    """In log perplexity; ``None`` where the better end is not better."""
    return math.log(worse / fill) / math.log(worse / better) if worse > better else None


def _left(fill: float, worse: float, better: float) -> float | None:
    """In perplexity; ``None`` where the better end is not better."""
    return (fill - better) / (worse - better) if worse > better else None


def _share(
    experiment: Experiment,
    share: ShareOfGap,
    condition: Condition,
    worse: Condition | None,
    better: Condition | None,
    field: str,
) -> Share | None:
    """A share computed for every seed of the condition; ``None`` where a number or a condition is missing."""
    if worse is None or better is None:
        return None
    of_seed = _closed if share == "closed" else _left
    values = []
    for seed in experiment.by_condition[condition]:
        fill, high, low = (experiment.by_condition[c].get(seed, {}).get(field) for c in (condition, worse, better))
        value = of_seed(fill, high, low) if fill and high and low else None
        if value is None:
            return None
        values.append(value)
    interval = experiment.share_interval(share, condition, worse, better, known=field == _KNOWN)
    return Share(statistics.fmean(values), min(values), max(values), interval) if values else None


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
    ends = [row.get("restoration_rate_ci") for row in rows]
    interval = None
    if all(ends):
        low, high = (statistics.fmean(end) for end in zip(*ends, strict=True))
        interval = low, high
    return Restored(condition.dataset, str(condition.technique), condition.label, rate, interval, guess)


def _mean(rows: Iterable[Row], field: str) -> float | None:
    values = [row.get(field) for row in rows]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known and len(known) == len(values) else None
