"""One row per cell: the measurements in the stages' reports, and the comparisons with Oracle and with Baseline1.

Rows have no timings and no data of the machine, so the same experiment gives the same rows.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError
from tasks.filling.fillers.settings import TuningSettings
from tasks.language_model.evaluation.protocol import differing_fields
from tasks.language_model.settings import EvaluationSettings
from tasks.parameters.cells_file import training_text
from tasks.parameters.compare_settings import CompareSettings
from tasks.parameters.parameter_file import first_base
from tasks.records.cell import Cell
from tasks.records.cells import (
    NO_LANGUAGE_MODEL,
    ORACLE,
    RESCORE,
    audit_report,
    audited_cells,
    conclusion_report,
    expected_cells,
    fluency_report,
    reads_raw_text,
    recognised_cells,
    stage_name,
    training_report,
    unmasked_report,
    word_error_report,
)
from tasks.records.run_key import lineage_of, run_key
from tasks.records.stage_report import read_report
from tasks.results.leakage import row_of
from tasks.results.measure import Measure, at_path
from tasks.results.measures import STEPS, measures
from tasks.results.summary.comparisons import Comparisons

Read = Callable[[Path], dict[str, Any]]


def summary_rows(
    folder: Path, compare: CompareSettings, evaluation: EvaluationSettings, tuned: Mapping[str, TuningSettings]
) -> list[dict[str, Any]]:
    """The rows of ``results/summary.json``, from the reports and scores in a folder.

    ``tuned``: the section ``tuned_fillers``. Raises ``CorpusError`` if a report or one of its fields is missing.
    """
    read: Read = cache(lambda name: read_report(folder / "reports" / name))
    by_cell = {}
    for cell in expected_cells(compare):
        row = by_cell[cell] = _row(cell, read, compare, folder / "reports")
        row["filler_base"] = first_base(str(cell.filler), tuned) if cell.filler in tuned else None
    comparisons = Comparisons(by_cell, recognised_cells(compare), folder / "scores", evaluation)
    for cell, row in by_cell.items():
        row["protocol_differs"] = _other_protocol(cell, by_cell)
        row.update(comparisons.columns(cell))
        row["over_seeds"] = _over_seeds(cell, by_cell, comparisons)
        rescored_alone = cell.method == NO_LANGUAGE_MODEL and row["wer_best_of_lists"] is not None
        step = RESCORE if rescored_alone else "evaluate"
        row["command"] = f"dvc repro {stage_name(cell, step)}"
    return list(by_cell.values())


def _other_protocol(cell: Cell, by_cell: Mapping[Cell, Mapping[str, Any]]) -> list[str]:
    """Fields of the signature in which a cell differs from its dataset's first Oracle: its numbers do not
    compare with the others of the table."""
    oracles = (row for other, row in by_cell.items() if (other.dataset, other.method) == (cell.dataset, ORACLE))
    oracle, mine = next(oracles, None), by_cell[cell]["signature"]
    return differing_fields(mine, oracle["signature"]) if oracle and mine else []


def _over_seeds(
    cell: Cell, by_cell: Mapping[Cell, Mapping[str, Any]], comparisons: Comparisons
) -> dict[str, Any] | None:
    """Mean and standard deviation over the seeds of a condition, and its ratios; equal in each of its rows."""
    columns = comparisons.columns_over_seeds(cell)
    if columns is None:
        return None
    mine = [row for other, row in by_cell.items() if replace(other, seed=None) == replace(cell, seed=None)]
    for name in (measure.name for measure in measures() if measure.over_seeds):
        values = [row[name] for row in mine]
        defined = all(value is not None for value in values)
        columns[f"{name}_mean"] = statistics.fmean(values) if defined else None
        columns[f"{name}_deviation"] = statistics.stdev(values) if defined and len(values) > 1 else None
    return columns


def _row(cell: Cell, read: Read, compare: CompareSettings, folder: Path) -> dict[str, Any]:
    """The measurements of a cell in the reports of its stages."""

    def measured(report: Path | None, field: str) -> Any:  # noqa: ANN401 - a value of a JSON document
        """A measured field; null without a report."""
        if report is None:
            return None
        found = read(report)["measured"]
        if field not in found:
            raise CorpusError(f"report {str(folder / report)!r} has no measured field {field!r}; run its stage again")
        return found[field]

    heard = word_error_report(cell) if cell in recognised_cells(compare) else None
    rescored = heard is not None and read(heard)["stage"] == RESCORE
    reports = {step: report_of(cell) for step, report_of in STEPS.items()}
    reports |= {"word_error_rate": heard, RESCORE: heard if rescored else None}
    evaluated = reports["perplexity"]
    row: dict[str, Any] = {**cell.as_dict(), "cell": cell.path, "filler_base": None}
    row["masked_words"] = measured(evaluated, "masked_words") or {}
    row["by_frequency"] = measured(evaluated, "by_frequency") or {}
    row["masked_word_errors"] = measured(heard, "masked_words") or {}
    row["signature"] = measured(evaluated, "signature")
    # Lists of another recogniser count as recorded speech.
    row["synthetic_speech"] = False if rescored else measured(heard, "synthetic_speech")
    # Not every text has every figure, and not every model is attacked.
    row |= row_of(read(audit_report(cell))["measured"] if cell in audited_cells(compare) else {})
    fluent = measured(fluency_report(cell), "by_fill") or {}
    concluded = conclusion_report(str(cell.dataset)) if cell.dataset in compare.conclusions else None
    tested = measured(concluded, "by_text") or {}
    counted = unmasked_report(str(cell.dataset))
    # Without the reference reader under 'masking' no stage counts unmasked identifiers.
    is_counted = cell.technique is not None and (folder / counted).is_file()
    unmasked = (measured(counted if is_counted else None, "techniques") or {}).get(cell.technique, {})
    row["unmasked_by"] = unmasked.get("by")
    found: dict[str, Callable[[str], Any]] = {step: partial(measured, report) for step, report in reports.items()}
    found |= {"unmasked": unmasked.get, "fluency": fluent.get(cell.path, {}).get}
    found["conclusion"] = tested.get(training_text(cell), {}).get
    for measure in measures():
        if measure.step in found:
            row |= _columns(measure, cell, found[measure.step])
    if reads_raw_text(cell):
        # Its training text is the unmasked corpus; a model without private text has no share.
        row["masked_fraction"] = 0.0
    row["key"] = run_key(cell, lineage_of(read(training_report(cell))))
    return row


def _columns(measure: Measure, cell: Cell, measured: Callable[[str], Any]) -> dict[str, Any]:
    """The number of a measure and its interval; null if a record on the way to it lacks it."""
    fields = {measure.name: measure.field or measure.name}
    fields |= {f"{measure.name}_ci": measure.interval} if measure.interval is not None else {}
    columns = {}
    for name, field in fields.items():
        first, *further = [str(cell.technique) if part == "{technique}" else part for part in field.split(".")]
        columns[name] = at_path(measured(first), further)
    return columns
