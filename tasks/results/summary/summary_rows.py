"""One row per cell: the measurements in the stages' reports, and the comparisons with Oracle and with Baseline1.

Rows have no timings and no data of the machine, so the same experiment gives the same rows.
"""

import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
    score_file,
    stage_name,
    training_report,
    unmasked_report,
    word_error_file,
    word_error_report,
)
from tasks.records.run_key import lineage_of, run_key
from tasks.records.stage_report import read_report
from tasks.results.leakage import row_of
from tasks.results.measure import Measure, at_path
from tasks.results.measures import STEPS, measures
from tasks.results.summary.comparisons import Comparisons


def summary_rows(
    folder: Path, compare: CompareSettings, evaluation: EvaluationSettings, tuned: Mapping[str, TuningSettings]
) -> list[dict[str, Any]]:
    """The rows of ``results/summary.json``, from the reports and scores in a folder.

    ``tuned``: the section ``tuned_fillers``. Raises ``CorpusError`` that names every missing file, or every missing
    field with its report.
    """
    _refuse_missing(_wanted(compare, folder))
    reader = _Reader(folder / "reports")
    recognised, audited = recognised_cells(compare), audited_cells(compare)
    by_cell = {}
    for cell in expected_cells(compare):
        row = by_cell[cell] = _row(cell, reader, recognised, audited, compare.conclusions)
        row["filler_base"] = first_base(str(cell.filler), tuned) if cell.filler in tuned else None
    reader.refuse_missing()
    comparisons = Comparisons(by_cell, recognised, folder / "scores", evaluation)
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


def _wanted(compare: CompareSettings, folder: Path) -> Iterator[Path]:
    reports, scores = folder / "reports", folder / "scores"
    recognised, audited = recognised_cells(compare), audited_cells(compare)
    for cell in expected_cells(compare):
        names = [training_report(cell), *(report_of(cell) for report_of in STEPS.values()), fluency_report(cell)]
        if cell in recognised:
            names.append(word_error_report(cell))
            yield scores / word_error_file(cell)
        if cell in audited:
            names.append(audit_report(cell))
        yield from (reports / name for name in names if name is not None)
        if cell.method != NO_LANGUAGE_MODEL:
            yield scores / score_file(cell)
    yield from (reports / conclusion_report(dataset) for dataset in compare.conclusions)


def _refuse_missing(paths: Iterable[Path]) -> None:
    wanted = dict.fromkeys(paths)
    missing = [str(path) for path in wanted if not path.is_file()]
    if missing:
        names = ", ".join(missing)
        raise CorpusError(
            f"{len(missing)} of {len(wanted)} files of the experiment in 'compare' are missing: {names}; "
            "run their stages with 'dvc repro', or take the cells out of 'compare' in params.yaml"
        )


class _Reader:
    """Reads measured fields of reports and collects missing ones, so that one error names all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._missing: dict[Path, dict[str, None]] = {}
        self.report = cache(lambda name: read_report(folder / name))

    def measured(self, name: Path, field: str) -> Any:  # noqa: ANN401 - a value of a JSON document
        """One measured field; ``None`` if it is missing, which ``refuse_missing`` reports."""
        fields = self.report(name).get("measured", {})
        if field not in fields:
            self._missing.setdefault(self.folder / name, {})[field] = None
        return fields.get(field)

    def refuse_missing(self) -> None:
        """Raise ``CorpusError`` that names every missing field, with its report."""
        problems = [
            f"{str(path)!r} has no measured field{'s' * (len(fields) > 1)} {', '.join(map(repr, fields))}"
            for path, fields in self._missing.items()
        ]
        if problems:
            raise CorpusError(f"{'; '.join(problems)}; run their stages again with 'dvc repro'")


def _row(
    cell: Cell,
    reader: _Reader,
    recognised: Collection[Cell],
    audited: Collection[Cell],
    concluded: Collection[str],
) -> dict[str, Any]:
    heard = word_error_report(cell) if cell in recognised else None
    rescored = heard is not None and reader.report(heard).get("stage") == RESCORE
    reports = {step: report_of(cell) for step, report_of in STEPS.items()}
    reports |= {"word_error_rate": heard, RESCORE: heard if rescored else None}
    row: dict[str, Any] = {**cell.as_dict(), "cell": cell.path, "filler_base": None}

    def measured(report: Path | None, field: str) -> Any:  # noqa: ANN401 - a value of a JSON document
        """A measured field; null without a report."""
        return None if report is None else reader.measured(report, field)

    evaluated = reports["perplexity"]
    row["masked_words"] = measured(evaluated, "masked_words") or {}
    row["by_frequency"] = measured(evaluated, "by_frequency") or {}
    row["masked_word_errors"] = measured(heard, "masked_words") or {}
    row["signature"] = measured(evaluated, "signature")
    # Lists of another recogniser count as recorded speech.
    row["synthetic_speech"] = False if rescored else measured(heard, "synthetic_speech")
    # Not every text has every figure, and not every model is attacked.
    row |= row_of(reader.report(audit_report(cell))["measured"] if cell in audited else {})
    read = measured(fluency_report(cell), "by_fill") or {}
    tested = reader.measured(conclusion_report(cell.dataset), "by_text") if cell.dataset in concluded else None
    counted = unmasked_report(cell.dataset)
    # Without the reference reader under 'masking' no stage counts unmasked identifiers.
    is_counted = cell.technique is not None and (reader.folder / counted).is_file()
    unmasked = measured(counted if is_counted else None, "techniques") or {}
    of_technique = unmasked.get(cell.technique, {})
    row["unmasked_by"] = of_technique.get("by")
    found: dict[str, Callable[[str], Any]] = {step: partial(measured, report) for step, report in reports.items()}
    found |= {"unmasked": of_technique.get, "fluency": read.get(cell.path, {}).get}
    found["conclusion"] = (tested or {}).get(training_text(cell), {}).get
    for measure in measures():
        if measure.step in found:
            row |= _columns(measure, cell, found[measure.step])
    if reads_raw_text(cell):
        # Its training text is the unmasked corpus; a model without private text has no share.
        row["masked_fraction"] = 0.0
    row["key"] = run_key(cell, lineage_of(reader.report(training_report(cell))))
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
