"""The stored run of the default experiment: its numbers are in README.md, docs/privacy.md and the notes of a verdict.

``dashboards.readme_tables`` writes it. The text of the default corpus is public, so exact numbers may be in git.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.results.measures import measure
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tables import number_text

STORED = Path(__file__).with_suffix(".json")
STRONGER = {
    "membership_auc": "membership_lira_auc",
    "membership_tpr_1": "membership_lira_tpr_1",
    "reidentified": "reidentified",
}
"""Measures of the quick audit, each with that of the full audit which takes its place."""


def read_run(path: Path = STORED) -> dict[str, Any]:
    """The stored run: ``commit``, ``date``, ``processor``, ``parameters``, ``recommended`` and ``rows``.

    The rows of cells that a full audit attacked have its figures in ``full``.
    """
    return json.loads(path.read_text(encoding="utf-8"))


def found_by_full_audit(run: Mapping[str, Any]) -> str:
    """A sentence: what the full audit finds in the recommended cell, each figure with that of the quick audit."""
    row = next(row for row in run["rows"] if summarised_cell(row).path == run["recommended"])
    pairs = []
    for quick, full in STRONGER.items():
        shown = measure(quick)
        figures = (
            number_text(measure(name).estimate([of]), shown.digits) for name, of in ((full, row["full"]), (quick, row))
        )
        pairs.append("{}: {}, not {}".format(shown.title, *figures))
    return f"On the default experiment's corpus: {'; '.join(pairs)}."
