"""Results of unlearning, from the reports of ``palimpsest compare-unlearning``."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from tasks.results.grid import ABSENT, Entry, Grid, GridRow, Heading
from tasks.unlearning.compare_unlearning import STAGE
from tasks.unlearning.settings import MOST_BITS

Report = Mapping[str, Any]
_LEGEND = (
    "Exposure, in bits, measures the rank of a secret of three words among sentences of its form that no model was "
    "trained on: 1 if nothing is known, {most:g} at most. Shown are medians of secrets that occurred {times} times in"
    " the text, in a template's form and after the beginning of an ordinary line. Relearned: the same for secrets that "
    "an attacker does not know, after {steps} steps on the {share:.0%} of them that are known. Membership, AUC: of "
    "an attack that separates ordinary lines to be forgotten from lines that no model was trained on. PrivLeak"
    " is 0 if the AUC is that after retraining. Cost: processor time relative to retraining. Each method has the last "
    "strength that costs at most {budget:.0%} of the perplexity on valid text; ! if none does."
)
_ENDS = {"retrained": "Retrained without it", "start": "Before"}
_KINDS = {"template": "template", "ordinary": "ordinary beginning"}


def by_dataset(reports: Iterable[Report]) -> dict[str, list[Report]]:
    """The reports on forgetting, by dataset, one a seed."""
    found: dict[str, list[Report]] = {}
    for report in reports:
        if report["stage"] == STAGE:
            found.setdefault(report["cell"]["dataset"], []).append(report)
    return found


def forgetting_grid(reports: Sequence[Report]) -> Grid:
    """One row a method of unlearning, means over seeds."""
    found = [each["measured"]["by_method"] for each in reports]
    times = reports[0]["parameters"]["repetitions"]
    seen = "/".join(map(str, times))
    headings = [
        Heading("Way to forget", words=True),
        Heading("perplexity", "to that before"),
        *(Heading(name, f"bits, {seen} times") for name in _KINDS.values()),
        *(Heading(f"{name}, relearned", "bits") for name in _KINDS.values()),
        Heading("membership, AUC", "PrivLeak"),
        Heading("cost"),
    ]
    rows = [
        _row(name, [rows[name] for rows in found], times) for name in found[0] if all(name in rows for rows in found)
    ]
    seeds = f", means over {len(found)} seeds" if len(found) > 1 else ""
    return Grid(f"What a model still knows after unlearning{seeds}", headings, rows)


def forgetting_legend(report: Mapping[str, Any]) -> str:
    """The legend of the columns."""
    given = report["parameters"]
    return _LEGEND.format(
        most=MOST_BITS,
        times=", ".join(map(str, given["repetitions"])),
        steps=given["relearning_steps"],
        share=given["relearned_share"],
        budget=given["budget"],
    )


def _name(name: str) -> str:
    return _ENDS.get(name, name.replace("_", " "))


def _mean(rows: Sequence[Mapping[str, Any]], key: str) -> float | None:
    values = [row[key] for row in rows if row.get(key) is not None]
    return fmean(values) if values else None


def _row(name: str, rows: Sequence[Mapping[str, Any]], times: Sequence[int]) -> GridRow:
    def mean(key: str) -> float | None:
        return _mean(rows, key)

    def bits(prefix: str) -> Entry:
        return Entry("/".join(_shown(mean(f"{prefix}_{count}"), ".1f") for count in times))

    interval = rows[0]["ratio_to_start_ci"] if len(rows) == 1 else None
    ends = "[{:.3f}, {:.3f}]".format(*interval) if interval else ""
    over = "" if all(row.get("within_budget", True) for row in rows) else "!"
    told, leakage = mean("membership"), mean("privacy_leakage")
    entries = [
        Entry(_shown(mean("ratio_to_start"), ".3f"), ends, over),
        *(bits(f"exposure_{kind}") for kind in _KINDS),
        *(bits(f"relearned.exposure_{kind}") for kind in _KINDS),
        Entry(f"{_shown(told, '.3f')} ({_shown(leakage, '+.0%')})"),
        Entry(_shown(mean("share_of_retraining"), ".0%")),
    ]
    return GridRow(_name(name), entries, group="reference" if name in _ENDS else "fill")


def _shown(value: float | None, written: str) -> str:
    return ABSENT if value is None else format(value, written)
