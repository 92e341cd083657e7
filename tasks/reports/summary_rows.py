"""One row per cell: what the stages' reports say of it, and how far it is from Oracle and from Baseline1.

Rows hold no timings and nothing of the machine, so the same experiment gives the same rows.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError
from tasks.language_model.settings import EvaluationSettings
from tasks.reports.cell import Cell
from tasks.reports.expected_cells import (
    ORACLE,
    PRETRAINED,
    fill_report,
    mask_report,
    perplexity_report,
    score_file,
    stage_name,
    training_report,
)
from tasks.reports.run_key import lineage_of, run_key
from tasks.reports.stage_report import read_report

_SPEECH_COLUMNS = ("wer", "wer_ci", "insertions", "deletions", "substitutions")
"""Columns of the recogniser's results: null until a stage measures them."""


def summary_rows(
    cells: Sequence[Cell], reports: str | Path, scores: str | Path, evaluation: EvaluationSettings
) -> list[dict[str, Any]]:
    """The rows of ``results/summary.json``, in the order of ``cells``.

    ``reports`` and ``scores`` are the folders that the stages write to. Raises ``CorpusError`` that names every
    missing file, or every missing or impossible field with its report.
    """
    reports, scores = Path(reports), Path(scores)
    _refuse_missing(cells, reports, scores)
    reader = _Reader(reports)
    rows = [_row(cell, reader) for cell in cells]
    if reader.problems:
        count = f"{len(reader.problems)} fields of reports: " if len(reader.problems) > 1 else ""
        raise CorpusError(f"{count}{'; '.join(reader.problems)}; run their stages again with 'dvc repro'")
    compared = set(cells)
    oracle_seeds = [cell.seed for cell in cells if cell.method == ORACLE]
    for cell, row in zip(cells, rows, strict=True):
        # The pretrained model has no seed: it is compared with the first Oracle.
        oracle = Cell(
            dataset=cell.dataset,
            method=ORACLE,
            seed=oracle_seeds[0] if cell.method == PRETRAINED and oracle_seeds else cell.seed,
        )
        row.update(_ratios("oracle", cell, oracle, compared, scores, evaluation))
        baseline = replace(cell, method="baseline1", filler=None)
        row.update(_ratios("baseline1", cell, baseline if cell.technique else None, compared, scores, evaluation))
        row["command"] = f"dvc repro {stage_name(cell, 'evaluate')}"
    return rows


def _refuse_missing(cells: Sequence[Cell], reports: Path, scores: Path) -> None:
    wanted: dict[Path, None] = {}
    for cell in cells:
        for name in (training_report(cell), mask_report(cell), fill_report(cell), perplexity_report(cell)):
            if name is not None:
                wanted[reports / name] = None
        wanted[scores / score_file(cell)] = None
    missing = [str(path) for path in wanted if not path.is_file()]
    if missing:
        names = ", ".join(missing)
        raise CorpusError(
            f"{len(missing)} of {len(wanted)} files of the experiment in 'compare' are missing: {names}; "
            "run their stages with 'dvc repro', or take the cells out of 'compare' in params.yaml"
        )


class _Reader:
    """Reads measured fields of reports and gathers what is wrong with them, so that all is said at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[str] = []
        self._documents: dict[Path, dict[str, Any]] = {}

    def report(self, name: Path) -> dict[str, Any]:
        if name not in self._documents:
            self._documents[name] = read_report(self.folder / name)
        return self._documents[name]

    def measured(self, name: Path, field: str, kind: str) -> Any:
        """One measured field; ``kind`` is number, count, interval or text, with ``?`` behind where null is allowed."""
        fields = self.report(name).get("measured", {})
        if field not in fields:
            self.problems.append(f"{str(self.folder / name)!r} has no measured field {field!r}")
            return None
        value = fields[field]
        if value is None and kind.endswith("?"):
            return None
        if not _fits(value, kind.rstrip("?")):
            self.problems.append(f"{str(self.folder / name)!r}: measured field {field!r} is {value!r}, not a {kind}")
            return None
        return value


def _fits(value: Any, kind: str) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "count":
            return isinstance(value, int) and not isinstance(value, bool) and value >= 0
        case "interval":
            return isinstance(value, list) and len(value) == 2 and all(_fits(limit, "number") for limit in value)
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _row(cell: Cell, reader: _Reader) -> dict[str, Any]:
    measured = perplexity_report(cell)
    training = reader.report(training_report(cell))
    row: dict[str, Any] = cell.as_dict()
    row["masked_fraction"] = _masked_fraction(cell, reader)
    row["perplexity"] = reader.measured(measured, "perplexity", "number")
    row["perplexity_ci"] = reader.measured(measured, "perplexity_ci", "interval?")
    row["perplexity_known"] = reader.measured(measured, "perplexity_known", "number?")
    row["perplexity_known_ci"] = reader.measured(measured, "perplexity_known_ci", "interval?")
    row["oov_rate"] = reader.measured(measured, "oov_rate", "number?")
    row["words"] = reader.measured(measured, "words", "count")
    row["sentences"] = reader.measured(measured, "sentences", "count")
    row.update(_filling(cell, reader))
    row.update(dict.fromkeys(_SPEECH_COLUMNS))
    row["signature"] = reader.measured(measured, "signature", "text")
    row["key"] = run_key(cell, lineage_of(training))
    return row


def _masked_fraction(cell: Cell, reader: _Reader) -> float | None:
    """Share of the training words that are masked: 0 for Oracle, undefined for a model that saw no private text."""
    masked = mask_report(cell)
    if masked is not None:
        return reader.measured(masked, "masked_fraction", "number")
    return 0.0 if cell.method == ORACLE else None


def _filling(cell: Cell, reader: _Reader) -> dict[str, Any]:
    columns = {
        "markers": ("markers", "count"),
        "fallback_count": ("fallback_count", "count?"),
        "distinct_fills": ("distinct_fills", "count"),
        "restoration_rate": ("restoration_rate", "number?"),
        "restoration_by_frequency": ("expected_restoration_by_frequency", "number?"),
    }
    filled = fill_report(cell)
    if filled is None:
        return dict.fromkeys(columns)
    return {column: reader.measured(filled, field, kind) for column, (field, kind) in columns.items()}


def _ratios(
    name: str,
    cell: Cell,
    reference: Cell | None,
    compared: set[Cell],
    scores: Path,
    evaluation: EvaluationSettings,
) -> Mapping[str, Any]:
    """Perplexity over that of a reference model, with a paired bootstrap interval; null without a reference."""
    columns: dict[str, Any] = {}
    for suffix, known in (("", False), ("_known", True)):
        ratio = interval = None
        if reference is not None and reference in compared and reference != cell:
            ratio, interval = _paired_ratio(
                scores / score_file(cell), scores / score_file(reference), known, evaluation
            )
        columns[f"ratio_to_{name}{suffix}"] = ratio
        columns[f"ratio_to_{name}{suffix}_ci"] = interval
    return columns


def _paired_ratio(
    path: Path, reference: Path, known: bool, evaluation: EvaluationSettings
) -> tuple[float | None, list[float] | None]:
    # numpy is loaded here, so that the module's other users (the plan, where-from) start without it.
    from tasks.language_model.bootstrap import paired_perplexity_ratio

    ratio, low, high = paired_perplexity_ratio(
        path,
        reference,
        samples=evaluation.bootstrap_samples,
        confidence=evaluation.confidence,
        seed=evaluation.seed,
        known=known,
    )
    if ratio is None or low is None or high is None or not math.isfinite(ratio + low + high):
        return None, None
    return ratio, [low, high]


def summarised_cell(row: Mapping[str, Any]) -> Cell:
    """The cell that a row of the summary belongs to."""
    return Cell(**{name: row[name] for name in Cell.__dataclass_fields__})


def read_summary(path: str | Path) -> list[dict[str, Any]]:
    """The rows of ``summary.json``; ``CorpusError`` where it is missing or no list of rows."""
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(f"summary {str(path)!r} does not exist; run 'palimpsest summarise' first") from None
    except ValueError:
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "key" in row for row in rows):
        raise CorpusError(f"summary {str(path)!r} is no list of rows; run 'palimpsest summarise' again")
    return rows
