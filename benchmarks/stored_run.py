"""Store a run of the default experiment in ``default_run.json``, and show its figures.

Numbers only: the columns that the tables need, with commit, date, processor and a digest of params.yaml.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError
from tasks.records.cell import Cell
from tasks.records.stage_report import read_report, write_json
from tasks.results.measure import Row
from tasks.results.measures import measures
from tasks.results.summary.summary_file import read_summary, summarised_cell
from tasks.results.tables import number_text

STORED = Path(__file__).with_name("default_run.json")
"""Its numbers are in README.md and docs. The text of the default corpus is public, so exact numbers may be in git."""
FULL = ("reidentified", "membership_lira_auc", "membership_lira_tpr_1")
"""Columns of attacks that are stronger in the full audit."""
_COLUMNS = (
    "unmasked_direct unmasked_quasi verbatim_lines reidentified reidentified_raw linked_mentions found_by_second_fill "
    "exposure exposure_unmasked membership_auc membership_tpr_1 extracted masked_fraction perplexity perplexity_known "
    "gap_closed_known ratio_to_baseline1 ratio_to_baseline1_known wer wer_masked wer_difference_to_oracle "
    "wer_difference_to_pretrained wer_difference_to_no_language_model"
).split()
_FIELDS = (
    "dataset technique method filler seed filler_base signature oov_rate attackers synthetic_speech perplexity "
    "perplexity_known"
).split()
"""Columns of every row."""


def read_run(path: Path = STORED) -> dict[str, Any]:
    """The stored run: ``commit``, ``date``, ``processor``, ``parameters``, ``recommended`` and ``rows``.

    Rows of cells with a full audit have its figures in ``full``.
    """
    return json.loads(path.read_text(encoding="utf-8"))


def full_audit(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The figures of the full audit, for rows that have them."""
    return [row["full"] for row in rows if "full" in row]


def store_run(results: Path, strong: Path | None, recommended: str, path: Path = STORED) -> None:
    """Store the run of a ``results`` folder; ``CorpusError`` if it has no summary, or no example of the cell.

    ``strong``: the ``summary.json`` of a run with ``audit: {effort: full}``, whose figures the rows have in ``full``.
    ``recommended``: path of the cell in the verdict.
    """
    rows = read_summary(results / "summary.json")
    full = {summarised_cell(row).path: row for row in read_summary(strong)} if strong is not None else {}
    run = {
        **_stamp(results),
        "full_audit": _stamp(strong.parent) if strong is not None else None,
        "parameters": hashlib.sha256((results.parent / "params.yaml").read_bytes()).hexdigest(),
        "recommended": recommended,
        "example": _example(results, recommended),
        "rows": [_shown(row, full.get(summarised_cell(row).path)) for row in rows],
    }
    write_json(path, run)


def _stamp(results: Path) -> dict[str, str]:
    """Commit, date and processor of a run."""
    report = read_report(min((results / "reports" / "fill").rglob("*.json")))
    processor = report["environment"]["processor"]
    return {"commit": report["code"]["commit"], "date": report["started"][:10], "processor": processor}


def _example(results: Path, recommended: str) -> dict[str, str]:
    """The first made-up sentence of the page raw, masked and filled, by the recommended cell."""
    for path in sorted((results / "reports" / "examples").rglob("*.json")):
        report = read_report(path)
        measured, dataset = report["measured"], report["cell"]["dataset"]
        for entry in measured["by_technique"]:
            for fill in entry["filled"]:
                cell = Cell(dataset, entry["technique"], fill["method"], fill["filler"], report["seed"])
                if cell.path == recommended:
                    return {"raw": measured["raw"][0], "masked": entry["masked"][0], "filled": fill["lines"][0]}
    raise CorpusError(f"no example is of the cell {recommended!r}; run the experiment again")


def _shown(row: Row, full: Row | None) -> dict[str, Any]:
    """The columns that tables show, and those of the full audit."""
    shown = {name: row.get(name) for name in _FIELDS} | _measured(row, _COLUMNS)
    if full is not None and full.get("membership_lira_auc") is not None:
        shown["full"] = _measured(full, FULL)
    if spoken := row.get("masked_word_errors"):
        shown["masked_word_errors"] = {
            name: {"wer": one["wer"], "wer_ci": one["wer_ci"]} for name, one in spoken.items()
        }
    return shown


def _measured(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    names = [name for column in columns for name in (column, f"{column}_ci", f"{column}_blind")]
    return {name: row[name] for name in names if row.get(name) is not None}


def figure(rows: Sequence[Mapping[str, Any]], name: str, absent: str = "not measured") -> str:
    """A figure of a cell with its interval, and the chance level in brackets."""
    measure = next((each for each in measures() if each.name == name), None)
    if measure is None or not rows or (number := measure.estimate(rows)) is None:
        return absent
    chance = measure.chance(rows)
    level = f" ({chance.value:.{measure.digits}f})" if chance is not None else ""
    return number_text(number, measure.digits) + level
