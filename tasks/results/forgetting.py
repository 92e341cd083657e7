"""What models were made to forget, from the reports of ``palimpsest compare-unlearning``."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from tasks.records.stage_report import read_report
from tasks.results.grid import ABSENT, Entry, Grid, GridRow, Heading
from tasks.unlearning.compare_unlearning import STAGE
from tasks.unlearning.settings import MOST_BITS

Report = Mapping[str, Any]
_LEGEND = (
    "Exposure, in bits, is how far up a secret of three words stands among sentences of its form that nobody was "
    "trained on: 1 where nothing is known, {most:g} at most. Shown are medians of secrets that stood {times} times in"
    " the text, of a template's form and behind the beginning of an ordinary line. Relearned: of secrets that an "
    "attacker does not know, after {steps} steps on {share:.0%} of them that he does. Told apart: the area under the "
    "curve by which ordinary lines that were to be forgotten are told from lines that nobody was trained on; PrivLeak"
    " is 0 where that is as after retraining. Cost: processor time by that of retraining. Of each way the last "
    "strength that costs at most {budget:.0%} of the perplexity on valid text; ! where none does."
)
_AS_FAR = 1.1
"""Times the perplexity before: what costs more is out of the picture."""
RETRAINED = "Retrained without it"
_ENDS = {"retrained": RETRAINED, "start": "Before"}
_KINDS = {"template": "template", "ordinary": "ordinary beginning"}


def read_forgetting(folder: str | Path) -> list[Report]:
    """All reports on forgetting below a folder of reports."""
    return [read_report(path) for path in sorted(Path(folder).glob("unlearning/*.json"))]


def by_dataset(reports: Iterable[Report]) -> dict[str, list[Report]]:
    """Those on forgetting, by dataset, one a seed."""
    found: dict[str, list[Report]] = {}
    for report in reports:
        if report["stage"] == STAGE:
            found.setdefault(report["cell"]["dataset"], []).append(report)
    return found


def forgetting_grid(reports: Sequence[Report]) -> Grid:
    """One row a way to forget, means over seeds."""
    found = [each["measured"]["by_method"] for each in reports]
    times = reports[0]["parameters"]["repetitions"]
    seen = "/".join(map(str, times))
    headings = [
        Heading("Way to forget", words=True),
        Heading("perplexity", "to that before"),
        *(Heading(name, f"bits, {seen} times") for name in _KINDS.values()),
        *(Heading(f"{name}, relearned", "bits") for name in _KINDS.values()),
        Heading("told apart", "PrivLeak"),
        Heading("cost"),
    ]
    rows = [
        _row(name, [rows[name] for rows in found], times) for name in found[0] if all(name in rows for rows in found)
    ]
    seeds = f", means over {len(found)} seeds" if len(found) > 1 else ""
    return Grid(f"What a model still knows of what it was made to forget{seeds}", headings, rows)


def forgetting_legend(report: Mapping[str, Any]) -> str:
    """What the columns mean."""
    given = report["parameters"]
    return _LEGEND.format(
        most=MOST_BITS,
        times=", ".join(map(str, given["repetitions"])),
        steps=given["relearning_steps"],
        share=given["relearned_share"],
        budget=given["budget"],
    )


@dataclass(frozen=True, slots=True)
class Left:
    """Of one way, means over seeds."""

    way: str
    bits: float
    """Median exposure of the secrets that stood most often in the text."""
    ratio: float
    """Perplexity by that before."""
    is_end: bool
    """Whether it is a model at an end of the scale, and no way to forget."""


def left_of_secrets(reports: Sequence[Report]) -> dict[str, list[Left]]:
    """What is left at which cost, by the kind of the secrets, of what keeps the perplexity nearly: of all others the
    table tells."""
    times = reports[0]["parameters"]["repetitions"][-1]
    found = [each["measured"]["by_method"] for each in reports]
    left: dict[str, list[Left]] = {}
    for kind, title in _KINDS.items():
        for name in found[0]:
            rows = [each[name] for each in found if name in each]
            bits, ratio = _mean(rows, f"exposure_{kind}_{times}"), _mean(rows, "ratio_to_start")
            if len(rows) == len(found) and bits is not None and ratio is not None and ratio <= _AS_FAR:
                left.setdefault(f"{title}, {times} times", []).append(Left(_name(name), bits, ratio, name in _ENDS))
    return left


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
