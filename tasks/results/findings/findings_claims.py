"""The paper's eight claims held against an experiment: one verdict each, by the intervals of paired differences.

A claim is a set of comparisons. It is *confirmed* where every comparison is for it by an interval that excludes the
limit, *contradicted* where more are against it than for it (for a claim on *every* method: where any is against it),
and *not confirmed* otherwise. *Not tested*: its methods are not part of the experiment, none of their numbers can be
compared, or no comparison has an interval. A comparison that the claim is about and that cannot be made (a baseline is
not part of the experiment, two numbers follow different protocols) is named, and keeps the claim from being confirmed.

Methods and fillers are known by their names in ``params.yaml``: ``top_1`` and ``top_k`` (and names that begin with
these) are the paper's methods; a filler with ``roberta`` or ``llama`` in its name is one of that kind (``smollm`` has
LLaMA's architecture). Which filler was fine-tuned on masked text, and from which, the summary says (``filler_base``).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tasks.results.findings.findings_comparison import (
    PERPLEXITIES,
    Comparison,
    Condition,
    Experiment,
    Incomparable,
    Ranking,
)
from tasks.results.findings.findings_speech import rate_of
from tasks.results.titles import technique_name

CONFIRMED, NOT_CONFIRMED, CONTRADICTED, NOT_TESTED = "confirmed", "not confirmed", "contradicted", "not tested"
_LLAMA = re.compile(r"llama|smollm", re.IGNORECASE)
_NO_COMMON_SEED = "it has no seed in common with what it is ranked with"
_LESS_BY = 0.85
_ABOVE_ORACLE = {"vocabulary_threshold": 1.01, "entity_tagger": 1.05}


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim and what an experiment says of it."""

    number: int
    claim: str
    verdict: str
    """One of ``CONFIRMED``, ``NOT_CONFIRMED``, ``CONTRADICTED``, ``NOT_TESTED``."""
    evidence: str
    comparisons: tuple[Comparison, ...] = ()
    missing: tuple[Incomparable, ...] = ()
    """What the claim is about too, and cannot be compared."""


def findings(experiment: Experiment, *, known: bool = False) -> list[Finding]:
    """The eight claims in the paper's order; ``known``: by the perplexity over words of the vocabulary alone."""
    return [Finding(number, claim, *judge(experiment, known)) for number, (claim, judge) in enumerate(_CLAIMS, start=1)]


def is_of_the_paper(condition: Condition) -> bool:
    """Whether a fill is one of the paper's: Top-1 or Top-K by a filler."""
    return condition.is_filled and condition.filler is not None and condition.method.startswith(("top_1", "top_k"))


_Compared = Sequence[Comparison | Incomparable]
_Judgement = tuple[str, str, tuple[Comparison, ...], tuple[Incomparable, ...]]


def _decide(compared: _Compared, absent: str, *, every: bool = False, note: str = "") -> _Judgement:
    made = tuple(each for each in compared if isinstance(each, Comparison))
    missing = tuple(each for each in compared if isinstance(each, Incomparable))
    left_out = f" Not compared: {_some(_reasons(missing))}." if missing else ""
    if not made:
        return NOT_TESTED, absent + left_out, (), missing
    if all(comparison.low is None for comparison in made):
        return NOT_TESTED, "Without scores of sentences no interval of the differences can be made.", made, missing
    outcomes = [comparison.outcome for comparison in made]
    agree, against = outcomes.count("for"), outcomes.count("against")
    without = sum(comparison.low is None for comparison in made)
    ratios = [comparison.ratio for comparison in made]
    text = (
        f"{agree} of {len(made)} comparisons are for it, {against} against it, {len(made) - agree - against - without} "
        f"within their interval{f', {without} without one' if without else ''}; ratios from {min(ratios):.3f} to "
        f"{max(ratios):.3f}."
    )
    if agree == len(made) and not missing:
        verdict = CONFIRMED
    elif against > (0 if every else agree):
        verdict = CONTRADICTED
    else:
        verdict = NOT_CONFIRMED
    failing = [_named(comparison) for comparison in made if comparison.outcome == "against"]
    if failing:
        text += f" Against it: {_some(failing)}."
    return verdict, text + left_out + note, made, missing


def _reasons(missing: Sequence[Incomparable]) -> list[str]:
    """``Top-1, minilm against Baseline0 (reddit, allow list): Baseline0 is not in the summary``."""
    return [f"{_named(each)}: {each.reason}" for each in missing]


def _named(compared: Comparison | Incomparable) -> str:
    place = [compared.dataset, *([technique_name(compared.technique)] if compared.technique else [])]
    return f"{compared.first} against {compared.second} ({', '.join(place)})"


def _some(names: Sequence[str]) -> str:
    return "; ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _fills_beat_baselines(experiment: Experiment, known: bool) -> _Judgement:
    comparisons = [
        experiment.compare(condition, replace(condition, method=baseline, filler=None), "below", known=known)
        for condition in _fills_of_the_paper(experiment)
        for baseline in ("baseline0", "baseline1")
    ]
    return _decide(comparisons, "It takes Top-1 or Top-K by a filler, and a baseline.", every=True)


def _top_k_beats_top_1(experiment: Experiment, known: bool) -> _Judgement:
    comparisons = [
        experiment.compare(condition, other, "below", known=known)
        for condition in _fills_of_the_paper(experiment)
        if condition.method.startswith("top_k")
        and (other := replace(condition, method=condition.method.replace("top_k", "top_1", 1)))
        in experiment.by_condition
    ]
    return _decide(comparisons, "It takes Top-1 and Top-K by the same filler.")


def _tuned_beats_pretrained(experiment: Experiment, known: bool) -> _Judgement:
    comparisons = []
    for condition in _fills_of_the_paper(experiment):
        other = experiment.pretrained(condition)
        if other in experiment.by_condition:
            comparisons.append(experiment.compare(condition, other, "below", known=known))
    return _decide(comparisons, "It takes a fine-tuned filler beside the same one pretrained.")


def _largest_gap(experiment: Experiment, known: bool) -> _Judgement:
    """Oracle is the same for both techniques, so the ratio of their gaps is the ratio of their perplexities."""
    comparisons = [
        experiment.compare(replace(condition, technique="allow_list"), condition, "above", known=known)
        for condition in _fills_of_the_paper(experiment)
        if condition.technique != "allow_list" and replace(condition, technique="allow_list") in experiment.by_condition
    ]
    return _decide(comparisons, "It takes fills of the allow list and of another technique.")


def _roberta_is_best(experiment: Experiment, known: bool) -> _Judgement:
    fills = list(_fills_of_the_paper(experiment))
    comparisons = [
        experiment.compare(condition, other, "below", known=known)
        for condition in fills
        if "roberta" in str(condition.filler).lower()
        for other in fills
        if "roberta" not in str(other.filler).lower()
        and (other.dataset, other.technique, other.method) == (condition.dataset, condition.technique, condition.method)
        and (experiment.pretrained(other) is None) == (experiment.pretrained(condition) is None)
    ]
    fillers = ", ".join(sorted({str(condition.filler) for condition in fills})) or "none"
    return _decide(comparisons, f"It takes RoBERTa, called by its name, beside another filler; here: {fillers}.")


def _llama_is_behind(experiment: Experiment, known: bool) -> _Judgement:
    """Competitive: below Baseline1. Behind: above the best fill of the paper's by another filler."""
    fills = list(_fills_of_the_paper(experiment))
    comparisons: list[Comparison | Incomparable] = []
    names = set()
    for condition in fills:
        is_top_1 = condition.method.startswith("top_1")
        if not (_LLAMA.search(str(condition.filler)) and is_top_1 and experiment.pretrained(condition)):
            continue
        others = [
            other
            for other in fills
            if (other.dataset, other.technique) == (condition.dataset, condition.technique)
            and not _LLAMA.search(str(other.filler))
        ]
        if not others:
            continue
        names.add(str(condition.filler))
        baseline = replace(condition, method="baseline1", filler=None)
        comparisons.append(experiment.compare(condition, baseline, "below", known=known))
        apart = [other for other in others if experiment.follows_other_protocol(other)]
        comparable = [other for other in others if other not in apart]
        ranking = experiment.ranking(comparable, PERPLEXITIES[known], beside=[condition])
        if ranking.best is not None:
            compared = experiment.compare(condition, ranking.best, "above", known=known, seeds=ranking.seeds)
            comparisons.append(compared)
        comparisons += [_cannot(condition, other, _NO_COMMON_SEED) for other in ranking.left_out]
        comparisons += [_cannot(condition, other, "it follows another protocol than Oracle") for other in apart]
    note = f" LLaMA's architecture is here: {', '.join(sorted(names))}." if names else ""
    absent = "It takes a fine-tuned LLaMA, called by its name, with Top-1, beside a masked language model."
    return _decide(comparisons, absent, note=note)


def _cannot(first: Condition, second: Condition, reason: str) -> Incomparable:
    return Incomparable(first.dataset, first.technique or second.technique or "", first.label, second.label, reason)


def _wer_falls(experiment: Experiment, known: bool) -> _Judgement:
    """Against the pretrained model: Oracle, and the best fill of each technique."""
    comparisons: list[Comparison | Incomparable] = []
    for ranking in _by_wer(experiment, "pretrained").values():
        comparisons += _compare_best_wer(experiment, ranking, "pretrained", _LESS_BY)
    for dataset in _spoken(experiment):
        oracle, pretrained = (Condition(dataset, None, method, None) for method in ("oracle", "pretrained"))
        comparisons.append(_compare_wer(experiment, oracle, pretrained, _LESS_BY))
    return _decide(comparisons, "It takes word error rates with the pretrained model and with an adapted one.")


def _wer_near_oracle(experiment: Experiment, known: bool) -> _Judgement:
    rankings = _by_wer(experiment, "oracle")
    comparisons: list[Comparison | Incomparable] = []
    for dataset in _spoken(experiment):
        for technique, limit in _ABOVE_ORACLE.items():
            if (dataset, technique) in rankings:
                comparisons += _compare_best_wer(experiment, rankings[dataset, technique], "oracle", limit)
            else:
                reason = "no fill of this technique has a rate"
                comparisons.append(Incomparable(dataset, technique, "the best fill", "Oracle", reason))
    absent = (
        "It takes word error rates of Oracle, and of Top-1 or Top-K for the vocabulary threshold or the entity tagger."
    )
    return _decide(comparisons, absent)


def _spoken(experiment: Experiment) -> list[str]:
    """Data sets with word error rates of an adapted model."""
    adapted = [c for c in experiment.by_condition if c.method == "oracle" or is_of_the_paper(c)]
    return list(dict.fromkeys(c.dataset for c in adapted if experiment.seeds_with(c, "wer")))


def _by_wer(experiment: Experiment, reference: str) -> dict[tuple[str, str | None], Ranking]:
    """The paper's fills by word error rate, for each data set and technique that has one, over the seeds that they and
    the reference have."""
    places: dict[tuple[str, str | None], list[Condition]] = {}
    for condition in _fills_of_the_paper(experiment):
        if experiment.seeds_with(condition, "wer"):
            places.setdefault((condition.dataset, condition.technique), []).append(condition)
    return {
        place: experiment.ranking(
            fills, "wer", [c for c in (Condition(place[0], None, reference, None),) if c in experiment.by_condition]
        )
        for place, fills in places.items()
    }


def _compare_best_wer(
    experiment: Experiment, ranking: Ranking, reference: str, limit: float
) -> list[Comparison | Incomparable]:
    compared: list[Comparison | Incomparable] = []
    if ranking.best is not None:
        other = Condition(ranking.best.dataset, None, reference, None)
        compared.append(_compare_wer(experiment, ranking.best, other, limit, ranking.seeds))
    for condition in ranking.left_out:
        compared.append(_cannot(condition, Condition(condition.dataset, None, reference, None), _NO_COMMON_SEED))
    return compared


def _compare_wer(
    experiment: Experiment,
    first: Condition,
    second: Condition,
    limit: float,
    seeds: Sequence[int | None] | None = None,
) -> Comparison | Incomparable:
    """The ratio of two word error rates over the seeds that both have, all or these; its interval is that of their
    paired difference by the second's rate."""
    for condition in (first, second):
        if condition not in experiment.by_condition:
            return _cannot(first, second, f"{condition.label} is not in the summary")
    if not all(experiment.seeds_with(condition, "wer") for condition in (first, second)):
        return _cannot(first, second, "one of them has no word error rate")
    seeds = experiment.common_seeds([first, second], "wer") if seeds is None else seeds
    if not seeds:
        return _cannot(first, second, "they have no seed in common")
    rows, reference = (experiment.rows(condition, seeds) for condition in (first, second))
    mine, others = rate_of(rows, "wer"), rate_of(reference, "wer")
    if mine is None or others is None or not others.value:
        return _cannot(first, second, "one of them has no word error rate")
    difference = rate_of(rows, f"wer_difference_to_{second.method}")
    low, high = (difference.low, difference.high) if difference is not None else (None, None)
    return Comparison(
        first.dataset,
        first.technique or second.technique or "",
        first.label,
        second.label,
        mine.value / others.value,
        None if low is None else 1 + low / others.value,
        None if high is None else 1 + high / others.value,
        len(rows),
        "below",
        limit,
    )


def _fills_of_the_paper(experiment: Experiment) -> Iterator[Condition]:
    return (condition for condition in experiment.by_condition if is_of_the_paper(condition))


_CLAIMS: tuple[tuple[str, Callable[[Experiment, bool], _Judgement]], ...] = (
    ("Every filling method beats both baselines.", _fills_beat_baselines),
    ("Top-K beats Top-1.", _top_k_beats_top_1),
    ("Fine-tuned fillers beat pretrained ones.", _tuned_beats_pretrained),
    ("The gap to Oracle is largest for the allow list.", _largest_gap),
    ("RoBERTa is the best filler.", _roberta_is_best),
    ("LLaMA 2 Top-1 fine-tuned is competitive but behind.", _llama_is_behind),
    ("An adapted language model cuts the word error rate by more than 15 %.", _wer_falls),
    ("The best filled word error rates lie 1 % and 5 % above Oracle.", _wer_near_oracle),
)
