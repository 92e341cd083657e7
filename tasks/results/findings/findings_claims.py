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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from tasks.results.findings.findings_comparison import PERPLEXITIES, Condition, Experiment, Paired
from tasks.results.measure import follows_protocol
from tasks.results.titles import technique_name

CONFIRMED, NOT_CONFIRMED, CONTRADICTED = "confirmed", "not confirmed", "contradicted"
_LLAMA = re.compile(r"llama|smollm", re.IGNORECASE)

Pairs = Callable[[Experiment, str], Iterator[Paired]]
"""The comparisons of a claim, by the experiment and the column of perplexities."""


class Claim(NamedTuple):
    """A row of the table."""

    sentence: str
    pairs: Pairs
    every: bool = False
    """Whether one comparison against the claim contradicts it."""


class Finding(NamedTuple):
    """The verdict on one claim."""

    number: int
    claim: str
    verdict: str
    """``CONFIRMED``, ``NOT_CONFIRMED`` or ``CONTRADICTED``."""
    evidence: str
    comparisons: Sequence[Paired]
    missing: Sequence[Paired]
    """Comparisons of the claim that cannot be made."""


def findings(experiment: Experiment, *, known: bool = False) -> list[Finding]:
    """Verdicts on the claims that an experiment tests; ``known``: by perplexity over in-vocabulary words."""
    found = []
    for number, claim in enumerate(CLAIMS, start=1):
        paired = list(claim.pairs(experiment, PERPLEXITIES[known]))
        made, missing = ([each for each in paired if bool(each.reason) == absent] for absent in (False, True))
        outcomes = [each.outcome for each in made]
        agree, against = outcomes.count("for"), outcomes.count("against")
        verdict = CONTRADICTED if against > (0 if claim.every else agree) else NOT_CONFIRMED
        verdict = CONFIRMED if agree == len(paired) else verdict
        if any(each.low is not None for each in made):
            found.append(Finding(number, claim.sentence, verdict, _evidence(made, missing), made, missing))
    return found


def _evidence(made: Sequence[Paired], missing: Sequence[Paired]) -> str:
    outcomes, without = [each.outcome for each in made], sum(each.low is None for each in made)
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
    dataset, technique, first, second = paired.place
    return f"{first} against {second} ({', '.join([dataset, *([technique_name(technique)] if technique else [])])})"


def _some(names: Sequence[str]) -> str:
    return "; ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _fills(experiment: Experiment, *starts: str) -> list[Condition]:
    """The paper's fills, Top-1 and Top-K by a filler; all, or those of a method."""
    starts = starts or ("top_1", "top_k")
    return [each for each in experiment.rows if each.filler is not None and each.method.startswith(starts)]


def _place(condition: Condition) -> tuple[str, str | None]:
    return condition.dataset, condition.technique


def _with(other_of: Callable[[Experiment, Condition], Condition | None], *starts: str) -> Pairs:
    """Comparisons of each fill, or those of a method, with another of the experiment."""

    def pairs(experiment: Experiment, field: str) -> Iterator[Paired]:
        for fill in _fills(experiment, *starts):
            other = other_of(experiment, fill)
            if other is not None and other != fill and other in experiment.rows:
                yield experiment.compare(fill, other, field=field)

    return pairs


def _top_1(_: Experiment, fill: Condition) -> Condition:
    return replace(fill, method=fill.method.replace("top_k", "top_1", 1))


def _both_baselines(experiment: Experiment, field: str) -> Iterator[Paired]:
    for fill, method in product(_fills(experiment), ("baseline0", "baseline1")):
        yield experiment.compare(fill, replace(fill, method=method, filler=None), field=field)


def _allow_list(experiment: Experiment, field: str) -> Iterator[Paired]:
    """Comparisons of fills: Oracle is equal for both, so the ratio of gaps is the ratio of perplexities."""
    for fill in _fills(experiment):
        other = replace(fill, technique="allow_list")
        if other != fill and other in experiment.rows:
            yield experiment.compare(other, fill, "above", field=field)


def _roberta(experiment: Experiment, field: str) -> Iterator[Paired]:
    def alike(fill: Condition) -> tuple[object, ...]:
        return *_place(fill), fill.method, experiment.pretrained(fill) is None

    fills = _fills(experiment)
    robertas = [fill for fill in fills if "roberta" in str(fill.filler).lower()]
    for fill, other in product(robertas, fills):
        if alike(other) == alike(fill) and other not in robertas:
            yield experiment.compare(fill, other, field=field)


def _llama(experiment: Experiment, field: str) -> Iterator[Paired]:
    """Each Top-1 fill by a fine-tuned LLaMA with Baseline1, and with the best fill by another filler."""
    others = [each for each in _fills(experiment) if not _LLAMA.search(str(each.filler))]
    compared = {
        fill: mine
        for fill in _fills(experiment, "top_1")
        if _LLAMA.search(str(fill.filler)) and experiment.pretrained(fill)
        if (mine := [other for other in others if _place(other) == _place(fill)])
    }
    for fill in compared:
        yield experiment.compare(fill, replace(fill, method="baseline1", filler=None), field=field)
    for fill, mine in compared.items():
        comparable = [other for other in mine if follows_protocol(experiment.rows[other])]
        for best in experiment.ranked(comparable, field)[:1]:
            yield experiment.compare(fill, best, "above", field=field)
        for other in mine:
            if other not in comparable:
                yield Paired(fill, other, reason="it follows another protocol than Oracle")


def _best_rate(experiment: Experiment, reference: str, limit: float, technique: str | None = None) -> Iterator[Paired]:
    """The fill with the lowest word error rate of each technique, or of one, with a reference."""
    fills = [fill for fill in _fills(experiment) if experiment.number(fill, "wer") is not None]
    places = dict.fromkeys(map(_place, fills))
    for place in places if technique is None else [(dataset, technique) for dataset in _spoken(experiment)]:
        other, mine = Condition(place[0], None, reference, None), [fill for fill in fills if _place(fill) == place]
        for best in experiment.ranked(mine, "wer")[:1]:
            yield experiment.compare(best, other, limit=limit, field="wer")
        if not mine:
            yield Paired(Condition(*place, "top_k", None), other, reason="no fill of this technique has a rate")


def _adapted_rates(experiment: Experiment, _: str) -> Iterator[Paired]:
    yield from _best_rate(experiment, "pretrained", 0.85)
    for dataset in _spoken(experiment):
        oracle, pretrained = (Condition(dataset, None, method, None) for method in ("oracle", "pretrained"))
        yield experiment.compare(oracle, pretrained, limit=0.85, field="wer")


def _best_rates(experiment: Experiment, _: str) -> Iterator[Paired]:
    yield from _best_rate(experiment, "oracle", 1.01, "vocabulary_threshold")
    yield from _best_rate(experiment, "oracle", 1.05, "entity_tagger")


def _spoken(experiment: Experiment) -> list[str]:
    """Data sets with word error rates of an adapted model."""
    adapted = [*_fills(experiment), *(each for each in experiment.rows if each.method == "oracle")]
    return list(dict.fromkeys(each.dataset for each in adapted if experiment.number(each, "wer") is not None))


CLAIMS = (
    Claim("Every filling method beats both baselines.", _both_baselines, every=True),
    Claim("Top-K beats Top-1.", _with(_top_1, "top_k")),
    Claim("Fine-tuned fillers beat pretrained ones.", _with(Experiment.pretrained)),
    Claim("The gap to Oracle is largest for the allow list.", _allow_list),
    Claim("RoBERTa is the best filler.", _roberta),
    Claim("LLaMA 2 Top-1 fine-tuned is competitive but worse.", _llama),
    Claim("An adapted language model cuts the word error rate by more than 15 %.", _adapted_rates),
    Claim("The best filled word error rates are 1 % and 5 % above Oracle.", _best_rates),
)
