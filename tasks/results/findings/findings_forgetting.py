"""The claims of corpus inverse distillation (Lu et al. 2025), tested on the results of unlearning here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from tasks.results.findings.findings_claims import CONFIRMED, CONTRADICTED, NOT_CONFIRMED
from tasks.results.forgetting import Report, forgetting_grid, forgetting_legend
from tasks.results.grid import markdown, plain_grid, words

_KIND = "inverse_distillation"
_RULE = (
    "A claim is confirmed or contradicted if all seeds agree; it counts the bits that are left, without an interval."
)
_Row = Mapping[str, Any]
_Outcome = tuple[bool | None, str]


def _claims(reports: Sequence[Report]) -> Iterator[tuple[str, str, str]]:
    """The tested claims of Lu et al. (2025), with verdicts and evidence."""
    methods = reports[0]["parameters"]["methods"]

    def named(is_meant: Callable[[_Row], bool]) -> list[str]:
        rows = reports[0]["measured"]["by_method"]
        return [name for name, given in methods.items() if name in rows and is_meant(given)]

    ours = named(lambda given: given["kind"] == _KIND and given["unwanted"] and given["alpha"] > 0)
    others = {
        "samples of the model": named(lambda given: given["kind"] == _KIND and not given["unwanted"]),
        "LM-Steer": named(lambda given: given["kind"] == "steering"),
        "DExperts": named(lambda given: given["kind"] == "contrasting_expert"),
        "task arithmetic": named(lambda given: given["kind"] == "task_arithmetic"),
    }
    for title, names in others.items():
        if ours and names:
            yield _judged(f"It forgets more than {title} within the budget.", reports, _less_left, ours, names)
    if ours:
        yield _judged("It keeps the perplexity within the budget.", reports, _is_within_budget, ours)


def _judged(
    claim: str, reports: Sequence[Report], judge: Callable[..., _Outcome], *ways: Sequence[str]
) -> tuple[str, str, str]:
    found = [judge(*(report["measured"]["by_method"][names[0]] for names in ways)) for report in reports]
    said = {outcome for outcome, _ in found}
    verdict = CONFIRMED if said == {True} else CONTRADICTED if said == {False} else NOT_CONFIRMED
    return claim, verdict, "; ".join(evidence for _, evidence in found)


def _less_left(mine: _Row, other: _Row) -> _Outcome:
    """Compare the remaining bits; a method out of its budget forgets nothing within it."""
    mine_left, others_left = (
        fmean(bits for name, bits in row.items() if name.startswith("exposure_") and not name.endswith("_ci"))
        for row in (mine, other)
    )
    shown = (
        f"{mine_left:.1f} bits at {mine['ratio_to_start']:.3f} and "
        f"{others_left:.1f} at {other['ratio_to_start']:.3f} times the perplexity"
    )
    if not (mine["within_budget"] and other["within_budget"]):
        return (None if mine["within_budget"] == other["within_budget"] else mine["within_budget"]), shown
    return mine_left < others_left, shown


def _is_within_budget(mine: _Row) -> _Outcome:
    return mine["within_budget"], f"{mine['ratio_to_start']:.3f} times that before"


def forgetting_parts(forgotten: Mapping[str, Sequence[Report]]) -> list[str]:
    """The parts of the document: for each dataset a table and the claims; empty without unlearning."""
    parts = ["## What can be forgotten", _RULE] if forgotten else []
    for dataset, reports in forgotten.items():
        grid = forgetting_grid(reports)
        headings = words("claim of corpus inverse distillation", "verdict", "evidence, by seed")
        claims = list(_claims(reports))
        parts += [f"### {dataset}", f"{grid.caption}.", markdown(grid), forgetting_legend(reports[0])]
        parts += [markdown(plain_grid("", headings, claims))] if claims else []
    return parts
