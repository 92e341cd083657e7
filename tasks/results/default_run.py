"""The stored run of the default experiment: its numbers are in README.md, docs/privacy.md and the notes of a verdict.

``benchmarks.readme_tables`` writes it. The text of the default corpus is public, so exact numbers may be in git.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.results.measures import measure
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tables import number_text

STORED = Path(__file__).with_suffix(".json")
STRONGER = {
    "masked words recovered, top-1, %": ("reidentified", "reidentified"),
    "membership inference, AUC": ("membership_auc", "membership_lira_auc"),
    "membership inference, TPR at 1 % FPR, %": ("membership_tpr_1", "membership_lira_tpr_1"),
}
"""Pairs of columns for attacks that are stronger in the full audit: quick audit, full audit."""
FULL = [full for _, full in STRONGER.values()]


def read_run(path: Path = STORED) -> dict[str, Any]:
    """The stored run: ``commit``, ``date``, ``processor``, ``parameters``, ``recommended`` and ``rows``.

    Rows of cells with a full audit have its figures in ``full``.
    """
    return json.loads(path.read_text(encoding="utf-8"))


def full_audit(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The figures of the full audit, for rows that have them."""
    return [row["full"] for row in rows if "full" in row]


def found_by_full_audit(run: Mapping[str, Any]) -> str:
    """A sentence: how the figures of the recommended cell grow from the quick audit to the full one."""
    rows = [row for row in run["rows"] if summarised_cell(row).path == run["recommended"]]
    pairs = []
    for attack, (quick, full) in STRONGER.items():
        digits = measure(quick).digits
        before = number_text(measure(quick).estimate(rows), digits)
        after = number_text(measure(full).estimate(full_audit(rows)), digits)
        pairs.append(f"{attack}, from {before} to {after}")
    return f"On the default experiment's corpus: {'; '.join(pairs)}."
