"""Figures of attacks in words: ``no signal``, ``some`` or ``strong``. One rule, its thresholds named here.

*No signal*: the interval includes the chance level, which the same attack reaches without anything to find. *Strong*:
the value is at or above the threshold of its figure. *Some*: all between.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.audit.rungs import PUBLIC, RUNGS, figure_of
from tasks.results.measure import Row
from tasks.results.measures import measure
from tasks.results.summary.estimate import estimate
from tasks.results.tables import number_entry

Signal = Literal["no signal", "some", "strong"]

STRONG_RECOVERED = 0.10
"""Above chance: guesses are right so often that an attacker can rely on single words."""
STRONG_BITS = 3.0
"""Above chance: one eighth of the candidates for a canary remain."""
STRONG_AUC = 0.70
"""Lines of the text rank above others in 7 of 10 pairs: enough to detect most documents of many lines."""
STRONG_TPR = 0.05
"""At 1 % false positives: five true accusations for each false one, if half of the lines are members."""
STRONG_EXTRACTED = 0.01
"""Above chance: one in a hundred 5-grams that the model writes is from a private line."""
_FALSE_POSITIVES = 0.01

_ABOVE_CHANCE = {
    **{figure_of(rung): STRONG_RECOVERED for rung in (PUBLIC, *RUNGS)},
    "exposure": STRONG_BITS,
    "exposure_unmasked": STRONG_BITS,
    "extracted": STRONG_EXTRACTED,
}
MEMBERSHIP = {
    "membership_auc": "membership_tpr_1",
    "membership_lira_auc": "membership_lira_tpr_1",
    "membership_neighbourhood_auc": None,
}
"""Membership attacks by their AUC, each with its true positive rate at 1 % false positives."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A row of the leakage table."""

    attack: str
    result: str
    """Result with its 95 % interval."""
    chance: str
    """Chance level; empty if there is none."""
    reading: str


def readings(rows: Sequence[Row], unmasked_limit: float) -> Iterator[Reading]:
    """The leakage of a condition, from the rows of its seeds; a figure that was not measured has no row.

    ``unmasked_limit``: ``release.unmasked_direct``. Of the membership attacks that were run the strongest has a row.
    """
    attacks = [name for name in MEMBERSHIP if estimate(rows, name) is not None]
    strongest = max(attacks, key=lambda name: estimate(rows, name).value, default=None)  # type: ignore[union-attr]
    guessed = [figure_of(rung) for rung in (PUBLIC, *RUNGS)]
    for name in ("unmasked_direct", *guessed, "exposure", "exposure_unmasked", strongest, "extracted"):
        number = measure(name).estimate(rows) if name else None
        if name is None or number is None:
            continue
        each, chance = measure(name), measure(name).chance(rows)
        if name == "unmasked_direct":
            high = number.value if number.high is None else number.high
            said = f"{'within' if high <= unmasked_limit else 'above'} the limit, {unmasked_limit:g}"
        else:
            said = signal(rows, name)
        level = f"{chance.value:.{each.digits}f}" if chance is not None else ""
        yield Reading(each.title, str(number_entry(number, each.digits)), level, said)


def signal(rows: Sequence[Row], name: str) -> Signal:
    """The reading of a figure, by the rule of this module."""
    found, blind = estimate(rows, name), estimate(rows, measure(name).blind)
    assert found is not None, name
    chance = blind.value if blind is not None else 0.0
    caught = estimate(rows, str(MEMBERSHIP.get(name)))
    # A few lines may be exposed although the others are not.
    caught_some = caught is not None and caught.value >= STRONG_TPR and (caught.low or 0.0) > _FALSE_POSITIVES
    if not caught_some and (found.value if found.low is None else found.low) <= chance:
        return "no signal"
    if caught_some or found.value >= (STRONG_AUC if name in MEMBERSHIP else chance + _ABOVE_CHANCE[name]):
        return "strong"
    return "some"


def stronger(parameters: Mapping[str, object]) -> list[str]:
    """A sentence on the full audit, if the quick one was run; ``parameters`` of the audit."""
    found = "audit.effort: full runs shadow models and a larger attacker; it finds more."
    return [found] if parameters.get("effort") == "quick" else []
