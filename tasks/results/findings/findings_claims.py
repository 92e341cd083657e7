"""The paper's claims as a table, and one rule for the verdict on each.

A claim is a set of comparisons. It is *confirmed* if every comparison supports it by an interval that excludes the
limit. It is *contradicted* if more contradict it than support it; for a claim on *every* method one is enough.
Otherwise it is *not confirmed*. A comparison that cannot be made (a baseline is absent, two numbers follow different
protocols) is named, and the claim is then not confirmed. A claim without any comparison that has an interval is not
tested, and not shown.

Methods and fillers are known by their names in ``params.yaml``: ``top_1`` and ``top_k`` (and names that begin with
these) are the paper's methods. A filler with ``roberta`` or ``llama`` in its name is one of that kind (``smollm`` has
LLaMA's architecture). The summary has the filler that each fine-tuned one started from (``filler_base``).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from tasks.results.findings.findings_comparison import PERPLEXITIES, Condition, Experiment, Paired, Seeds, Side
from tasks.results.titles import technique_name

CONFIRMED, NOT_CONFIRMED, CONTRADICTED = "confirmed", "not confirmed", "contradicted"
_LLAMA = re.compile(r"llama|smollm", re.IGNORECASE)
_NO_COMMON_SEED = "it has no seed in common with the other fills"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two conditions to compare, and the side of the limit on which a claim expects the ratio of the two."""

    first: Condition
    second: Condition
    expected: Side = "below"
    limit: float = 1.0
    measure: str = "perplexity"
    """``perplexity`` or ``wer``."""
    seeds: Seeds | None = None
    """Seeds to compare; ``None``: all seeds that both have."""
    reason: str = ""
    """Reason why they cannot be compared."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A row of the table."""

    sentence: str
    pairs: Callable[[Experiment, str], Iterable[Pair]]
    """Pairs by the experiment and the column of perplexities."""
    every: bool = False
    """Whether one comparison against the claim contradicts it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one claim."""

    number: int
    claim: str
    verdict: str
    """``CONFIRMED``, ``NOT_CONFIRMED`` or ``CONTRADICTED``."""
    evidence: str
    comparisons: tuple[Paired, ...]
    missing: tuple[Paired, ...]
    """Comparisons of the claim that cannot be made."""


def findings(experiment: Experiment, *, known: bool = False) -> list[Finding]:
    """Verdicts on the claims that an experiment tests; ``known``: by perplexity over in-vocabulary words."""
    found = (_finding(number, claim, experiment, known) for number, claim in enumerate(CLAIMS, start=1))
    return [finding for finding in found if finding is not None]


def _finding(number: int, claim: Claim, experiment: Experiment, known: bool) -> Finding | None:
    paired = [
        experiment.cannot(pair.first, pair.second, pair.reason)
        if pair.reason
        else experiment.compare(
            pair.first, pair.second, pair.expected, pair.limit, known=known, measure=pair.measure, seeds=pair.seeds
        )
        for pair in claim.pairs(experiment, PERPLEXITIES[known])
    ]
    made = tuple(each for each in paired if not each.reason)
    missing = tuple(each for each in paired if each.reason)
    if all(each.low is None for each in made):
        return None
    outcomes = [each.outcome for each in made]
    agree, against = outcomes.count("for"), outcomes.count("against")
    if agree == len(paired):
        verdict = CONFIRMED
    else:
        verdict = CONTRADICTED if against > (0 if claim.every else agree) else NOT_CONFIRMED
    return Finding(number, claim.sentence, verdict, _evidence(made, missing), made, missing)


def _evidence(made: Sequence[Paired], missing: Sequence[Paired]) -> str:
    outcomes = [each.outcome for each in made]
    without = sum(each.low is None for each in made)
    counts = {
        "support it": outcomes.count("for"),
        "contradict it": outcomes.count("against"),
        "are undecided": outcomes.count("open") - without,
        **({"have no interval": without} if without else {}),
    }
    ratios = [each.ratio for each in made if each.ratio is not None]
    text = f"Of {len(made)} comparisons {', '.join(f'{count} {name}' for name, count in counts.items())}; ratios from "
    text += f"{min(ratios):.3f} to {max(ratios):.3f}."
    if failing := [_named(each) for each in made if each.outcome == "against"]:
        text += f" Against it: {_some(failing)}."
    if missing:
        text += f" Not compared: {_some([f'{_named(each)}: {each.reason}' for each in missing])}."
    return text


def _named(paired: Paired) -> str:
    """A description: ``Top-K, bert against Baseline1 (chat, allow list)``."""
    place = [paired.dataset, *([technique_name(paired.technique)] if paired.technique else [])]
    return f"{paired.first} against {paired.second} ({', '.join(place)})"


def _some(names: Sequence[str]) -> str:
    return "; ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _fills(experiment: Experiment, start: str = "top_") -> list[Condition]:
    """The paper's fills, Top-1 and Top-K by a filler; all, or those of a method."""
    return [
        each
        for each in experiment.by_condition
        if each.filler is not None and each.method.startswith(("top_1", "top_k")) and each.method.startswith(start)
    ]


def _place(condition: Condition) -> tuple[str, str | None]:
    return condition.dataset, condition.technique


def _pairs(
    experiment: Experiment, other_of: Callable[[Condition], Condition | None], start: str = "top_"
) -> Iterator[tuple[Condition, Condition]]:
    """Each fill with another of the experiment."""
    for fill in _fills(experiment, start):
        other = other_of(fill)
        if other is not None and other != fill and other in experiment.by_condition:
            yield fill, other


def _both_baselines(experiment: Experiment, _: str) -> Iterator[Pair]:
    for fill, method in product(_fills(experiment), ("baseline0", "baseline1")):
        yield Pair(fill, replace(fill, method=method, filler=None))


def _top_1(experiment: Experiment, _: str) -> Iterator[Pair]:
    def other_of(fill: Condition) -> Condition:
        return replace(fill, method=fill.method.replace("top_k", "top_1", 1))

    return (Pair(*both) for both in _pairs(experiment, other_of, "top_k"))


def _pretrained(experiment: Experiment, _: str) -> Iterator[Pair]:
    return (Pair(*both) for both in _pairs(experiment, experiment.pretrained))


def _allow_list(experiment: Experiment, _: str) -> Iterator[Pair]:
    """Comparisons of fills: Oracle is equal for both, so the ratio of gaps is the ratio of perplexities."""
    pairs = _pairs(experiment, lambda fill: replace(fill, technique="allow_list"))
    return (Pair(other, fill, "above") for fill, other in pairs)


def _roberta(experiment: Experiment, _: str) -> Iterator[Pair]:
    def alike(fill: Condition) -> tuple[object, ...]:
        return fill.dataset, fill.technique, fill.method, experiment.pretrained(fill) is None

    def is_roberta(fill: Condition) -> bool:
        return "roberta" in str(fill.filler).lower()

    fills = _fills(experiment)
    for fill, other in product(filter(is_roberta, fills), fills):
        if alike(other) == alike(fill) and not is_roberta(other):
            yield Pair(fill, other)


def _llama(experiment: Experiment, column: str) -> Iterator[Pair]:
    """Each Top-1 fill by a fine-tuned LLaMA with Baseline1, and with the best fill by another filler."""
    others = [each for each in _fills(experiment) if not _LLAMA.search(str(each.filler))]
    compared = {
        fill: mine
        for fill in _fills(experiment, "top_1")
        if _LLAMA.search(str(fill.filler)) and experiment.pretrained(fill)
        if (mine := [other for other in others if _place(other) == _place(fill)])
    }
    yield from (Pair(fill, replace(fill, method="baseline1", filler=None)) for fill in compared)
    for fill, mine in compared.items():
        comparable = [other for other in mine if not experiment.follows_other_protocol(other)]
        ranking = experiment.ranking(comparable, column, beside=[fill])
        if ranking.best is not None:
            yield Pair(fill, ranking.best, "above", seeds=ranking.seeds)
        yield from (Pair(fill, other, reason=_NO_COMMON_SEED) for other in ranking.left_out)
        differ = [other for other in mine if other not in comparable]
        yield from (Pair(fill, other, reason="it follows another protocol than Oracle") for other in differ)


def _best_rate(
    experiment: Experiment, _: str = "", *, reference: str, limit: float, technique: str | None = None
) -> Iterator[Pair]:
    """The fill with the lowest word error rate of each technique, or of one, with a reference. It covers the
    seeds that the fills and the reference have."""
    fills = [fill for fill in _fills(experiment) if experiment.seeds_with(fill, "wer")]
    places: Iterable[tuple[str, str | None]] = dict.fromkeys(map(_place, fills))
    if technique is not None:
        places = [(dataset, technique) for dataset in _spoken(experiment)]
    for place in places:
        other = Condition(place[0], None, reference, None)
        mine = [fill for fill in fills if _place(fill) == place]
        if not mine:
            best = Condition(*place, "top_k", None)
            yield Pair(best, other, reason="no fill of this technique has a rate")
            continue
        ranking = experiment.ranking(mine, "wer", [other] if other in experiment.by_condition else [])
        if ranking.best is not None:
            yield Pair(ranking.best, other, "below", limit, "wer", ranking.seeds)
        yield from (Pair(fill, other, reason=_NO_COMMON_SEED) for fill in ranking.left_out)


def _adapted_rates(experiment: Experiment, _: str) -> Iterator[Pair]:
    yield from _best_rate(experiment, reference="pretrained", limit=0.85)
    for dataset in _spoken(experiment):
        oracle, pretrained = (Condition(dataset, None, method, None) for method in ("oracle", "pretrained"))
        yield Pair(oracle, pretrained, "below", 0.85, "wer")


def _best_rates(experiment: Experiment, _: str) -> Iterator[Pair]:
    to_oracle = partial(_best_rate, experiment, reference="oracle")
    yield from to_oracle(technique="vocabulary_threshold", limit=1.01)
    yield from to_oracle(technique="entity_tagger", limit=1.05)


def _spoken(experiment: Experiment) -> list[str]:
    """Data sets with word error rates of an adapted model."""
    adapted = [*_fills(experiment), *(each for each in experiment.by_condition if each.method == "oracle")]
    return list(dict.fromkeys(each.dataset for each in adapted if experiment.seeds_with(each, "wer")))


CLAIMS = (
    Claim("Every filling method beats both baselines.", _both_baselines, every=True),
    Claim("Top-K beats Top-1.", _top_1),
    Claim("Fine-tuned fillers beat pretrained ones.", _pretrained),
    Claim("The gap to Oracle is largest for the allow list.", _allow_list),
    Claim("RoBERTa is the best filler.", _roberta),
    Claim("LLaMA 2 Top-1 fine-tuned is competitive but worse.", _llama),
    Claim("An adapted language model cuts the word error rate by more than 15 %.", _adapted_rates),
    Claim("The best filled word error rates are 1 % and 5 % above Oracle.", _best_rates),
)
