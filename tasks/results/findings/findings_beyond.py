"""What the paper does not ask: how much of the loss each way of filling wins back, which is best, what it hits.

Both perplexities are shown. Over words of the vocabulary (``perplexity_known``) alone, a fill that never writes an
unknown word gains by it, since its model gives ``<unk>`` no probability; over all words it pays for that.

Fills are ranked, and shares of gaps divided, over the seeds that all of them have: means over different seeds do not
compare.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.results.findings.findings_claims import is_of_the_paper
from tasks.results.findings.findings_comparison import (
    PERPLEXITIES,
    Comparison,
    Condition,
    Experiment,
    Outcome,
    Ranking,
    ShareOfGap,
)
from tasks.results.summary.estimate import mean
from tasks.results.titles import technique_name

GOAL = 0.2
"""A method is as good as wished where it leaves at most this share of the gap to Oracle that Top-K leaves, over words
of the vocabulary."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a gap."""

    value: float
    """Of the geometric means over the seeds; of several seeds not the mean of their shares, since seeds with a narrow
    gap would weigh more."""
    smallest: float
    largest: float
    """Of a seed."""
    interval: tuple[float, float] | None
    """Over test sentences and seeds, by a bootstrap; ``None`` without the scores of sentences."""
    seeds: int
    """How many seeds the fill and both ends of the gap have."""


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
    seeds: tuple[int | None, ...]
    """That all ranked fills have: all numbers are over these."""
    of_fewer_seeds: bool
    """Whether one of the technique's fills has others too."""


@dataclass(frozen=True, slots=True)
class Restored:
    """How many masked words a fill happens to write, beside guessing by frequency."""

    dataset: str
    technique: str
    label: str
    rate: float
    """Mean over the seeds."""
    interval: tuple[float, float] | None
    """Means of the ends of the seeds' Wilson intervals: all seeds fill the same places, so that more seeds are no more
    places."""
    by_frequency: float | None
    """What a draw by frequency among the words that may be masked would hit on average."""

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
    no_common_seed: tuple[str, ...]
    """Fills that have no seed in common with the others of their technique, or with a reference of their gaps."""
    other_protocol: tuple[str, ...]
    """Fills that are in none of these but the last, since their perplexities do not compare with Oracle's, and
    references that therefore leave gaps unknown. Seeds are named where not all of a condition follow another one."""


def beyond(experiment: Experiment) -> Beyond:
    """What a summary says beyond the paper's claims."""
    filled = list(experiment.filled())
    apart = [condition for condition in filled if experiment.follows_other_protocol(condition)]
    together = [condition for condition in filled if condition not in apart]
    return Beyond(
        tuple(_gap(experiment, condition, together) for condition in together),
        tuple(_best_fills(experiment, together, known=True)),
        tuple(_best_fills(experiment, together, known=False)),
        tuple(restored for condition in filled if (restored := _restored(experiment, condition)) is not None),
        tuple(dict.fromkeys(_without_common_seed(experiment, together))),
        tuple(_of_other_protocol(experiment, filled)),
    )


def _without_common_seed(experiment: Experiment, filled: Sequence[Condition]) -> Iterator[str]:
    """``Top-1, bert (chat, allow list) beside Oracle``."""
    for field in PERPLEXITIES.values():
        for ranking in _rankings(experiment, filled, field):
            yield from (f"{_named(condition)} beside the other fills" for condition in ranking.left_out)
        for condition in filled:
            for other in (experiment.beside(condition, "oracle"), experiment.beside(condition, "baseline1")):
                had = other is not None and all(experiment.seeds_with(c, field) for c in (condition, other))
                if other is not None and had and not experiment.common_seeds([condition, other], field):
                    yield f"{_named(condition)} beside {other.label}"


def _of_other_protocol(experiment: Experiment, filled: Sequence[Condition]) -> Iterator[str]:
    """References of gaps first; ``Oracle (chat; seed 2)``."""
    found = (experiment.beside(condition, method) for method in ("oracle", "baseline1") for condition in filled)
    references = dict.fromkeys(reference for reference in found if reference is not None)
    for condition in (*references, *filled):
        seeds = experiment.seeds_of_other_protocol(condition)
        if len(seeds) == len(experiment.by_condition[condition]):
            yield _named(condition)
        elif seeds:
            yield _named(condition, seeds)


def _named(condition: Condition, seeds: Sequence[int | None] = ()) -> str:
    """``Top-K, bert (chat, allow list; seed 2)``."""
    place = condition.dataset + (f", {technique_name(condition.technique)}" if condition.technique else "")
    of_seeds = f"; {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}" if seeds else ""
    return f"{condition.label} ({place}{of_seeds})"


def _gap(experiment: Experiment, condition: Condition, filled: Sequence[Condition]) -> Gap:
    oracle, baseline = experiment.beside(condition, "oracle"), experiment.beside(condition, "baseline1")
    shares = []
    for known in (True, False):
        nearest = _top_k_of(experiment, condition, oracle, filled, known)
        shares += [
            _share(experiment, "closed", condition, baseline, oracle, known),
            _share(experiment, "left", condition, nearest.best, oracle, known, nearest.seeds),
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
    known: bool,
    seeds: Sequence[int | None] | None = None,
) -> Share | None:
    """The share over the seeds that all three have, all or these; ``None`` where there is none or a condition is
    missing, the better end is not better for one of them, or one follows another protocol."""
    if worse is None or better is None or any(map(experiment.follows_other_protocol, (worse, better))):
        return None
    field = PERPLEXITIES[known]
    common = experiment.common_seeds([condition, worse, better], field)
    seeds = [seed for seed in common if seeds is None or seed in seeds]
    numbers = [[experiment.rows(c, [seed])[0][field] for c in (condition, worse, better)] for seed in seeds]
    if not numbers:
        return None
    of_perplexities = _closed if share == "closed" else _left
    values = [of_perplexities(*of_seed) for of_seed in numbers]
    together = of_perplexities(*map(statistics.geometric_mean, zip(*numbers, strict=True)))
    found = [value for value in values if value is not None]
    if together is None or len(found) < len(values):
        return None
    interval = experiment.share_interval(share, condition, worse, better, known=known, seeds=seeds)
    return Share(together, min(found), max(found), interval, len(numbers))


def _top_k_of(
    experiment: Experiment, condition: Condition, oracle: Condition | None, filled: Iterable[Condition], known: bool
) -> Ranking:
    """Top-K by the same filler, or all of them by how near they are, over the seeds that the fill and Oracle have."""
    found = [
        other
        for other in filled
        if (other.dataset, other.technique, other.method) == (condition.dataset, condition.technique, "top_k")
        and is_of_the_paper(other)
        and condition.filler in (None, other.filler)
    ]
    beside = [condition, *([oracle] if oracle is not None else [])]
    return experiment.ranking(found, PERPLEXITIES[known], beside)


def _rankings(experiment: Experiment, filled: Sequence[Condition], field: str) -> list[Ranking]:
    """The fills of each technique."""
    places = dict.fromkeys((condition.dataset, condition.technique) for condition in filled)
    of_place = ([c for c in filled if (c.dataset, c.technique) == place] for place in places)
    return [experiment.ranking(conditions, field) for conditions in of_place]


def _best_fills(experiment: Experiment, filled: Sequence[Condition], *, known: bool) -> list[Best]:
    best = []
    for ranking in _rankings(experiment, filled, PERPLEXITIES[known]):
        if not ranking.ranked:
            continue
        (perplexity, first), *others = ranking.ranked
        following = others[0][1] if others else None
        control = next((c for _, c in others if c.filler is None), None) if first.filler is not None else None
        compared = [c for _, c in ranking.ranked]
        best.append(
            Best(
                first.dataset,
                str(first.technique),
                first.label,
                perplexity,
                _compared(experiment, first, following, known, ranking.seeds),
                _compared(experiment, first, control, known, ranking.seeds),
                ranking.seeds,
                any(set(experiment.seeds_with(c, PERPLEXITIES[known])) != set(ranking.seeds) for c in compared),
            )
        )
    return best


def _compared(
    experiment: Experiment, first: Condition, second: Condition | None, known: bool, seeds: Sequence[int | None]
) -> Comparison | None:
    found = experiment.compare(first, second, "below", known=known, seeds=seeds) if second is not None else None
    return found if isinstance(found, Comparison) else None


def _restored(experiment: Experiment, condition: Condition) -> Restored | None:
    rows = list(experiment.by_condition[condition].values())
    rate, guess = mean(rows, "restoration_rate"), mean(rows, "restoration_by_frequency")
    if rate is None:
        return None
    ends = [row.get("restoration_rate_ci") for row in rows]
    interval = None
    if all(ends):
        low, high = (statistics.fmean(end) for end in zip(*ends, strict=True))
        interval = low, high
    return Restored(condition.dataset, str(condition.technique), condition.label, rate, interval, guess)
