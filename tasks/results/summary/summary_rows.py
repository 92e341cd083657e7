"""One row per cell: what the stages' reports say of it, and how far it is from Oracle and from Baseline1.

Rows hold no timings and nothing of the machine, so the same experiment gives the same rows.
"""

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError
from tasks.language_model.evaluation.protocol import differing_fields
from tasks.language_model.settings import EvaluationSettings
from tasks.records.cell import Cell
from tasks.records.cells import (
    NO_LANGUAGE_MODEL,
    ORACLE,
    RESCORE,
    fill_report,
    mask_report,
    perplexity_report,
    score_file,
    stage_name,
    training_report,
    word_error_file,
    word_error_report,
)
from tasks.records.run_key import lineage_of, run_key
from tasks.records.stage_report import read_report
from tasks.results.summary.comparisons import Comparisons
from tasks.results.summary.speech_columns import no_speech_columns, speech_columns
from tasks.results.summary.word_error_comparisons import WordErrorComparisons


def summary_rows(
    cells: Sequence[Cell],
    reports: str | Path,
    scores: str | Path,
    evaluation: EvaluationSettings,
    large_fillers: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The rows of ``results/summary.json``, in the order of ``cells``.

    ``reports`` and ``scores`` are the folders that the stages write to; data sets with speech are those of which
    ``cells`` has the recogniser alone. Raises ``CorpusError`` that names every missing file, or every missing
    field with its report.
    """
    reports, scores = Path(reports), Path(scores)
    spoken = {cell.dataset for cell in cells if cell.method == NO_LANGUAGE_MODEL}
    _refuse_missing(_wanted(cells, spoken, reports, scores))
    reader = _Reader(reports)
    rows = [_row(cell, reader, spoken) for cell in cells]
    reader.refuse_missing()
    by_cell = dict(zip(cells, rows, strict=True))
    comparisons = Comparisons(
        cells,
        scores,
        evaluation,
        comparable=lambda first, second: by_cell[first]["signature"] == by_cell[second]["signature"],
        told_apart=lambda cell: cell.technique in by_cell[cell]["masked_words"],
    )
    of_speech = WordErrorComparisons([cell for cell in cells if cell.dataset in spoken], scores, evaluation)
    for cell, row in by_cell.items():
        row["protocol_differs"] = _other_protocol(cell, by_cell)
        row.update(comparisons.columns(cell))
        row.update(of_speech.columns(cell))
        row["over_seeds"] = _over_seeds(cell, by_cell, comparisons, of_speech)
        rescored_alone = cell.method == NO_LANGUAGE_MODEL and row["wer_best_of_lists"] is not None
        step = RESCORE if rescored_alone else "evaluate"
        row["command"] = f"dvc repro {stage_name(cell, step, large_fillers)}"
    return rows


def _other_protocol(cell: Cell, by_cell: Mapping[Cell, Mapping[str, Any]]) -> list[str]:
    """Fields of the signature in which a cell differs from the first Oracle of its dataset: such numbers do not compare
    with the others of the table, whatever they are."""
    oracles = (row for other, row in by_cell.items() if (other.dataset, other.method) == (cell.dataset, ORACLE))
    oracle, mine = next(oracles, None), by_cell[cell]["signature"]
    return differing_fields(mine, oracle["signature"]) if oracle and mine else []


def _over_seeds(
    cell: Cell,
    by_cell: Mapping[Cell, Mapping[str, Any]],
    comparisons: Comparisons,
    of_speech: WordErrorComparisons,
) -> dict[str, Any] | None:
    """Mean and standard deviation over the seeds of a condition, and its ratios; each of its rows holds the same."""
    columns = comparisons.columns_over_seeds(cell)
    if columns is None:
        return None
    columns |= of_speech.columns_over_seeds(cell)
    mine = [row for other, row in by_cell.items() if replace(other, seed=None) == replace(cell, seed=None)]
    for name in ("perplexity", "perplexity_known", "perplexity_masked_known", "bits_per_character", "wer"):
        values = [row[name] for row in mine]
        defined = all(value is not None for value in values)
        columns[f"{name}_mean"] = statistics.fmean(values) if defined else None
        columns[f"{name}_deviation"] = statistics.stdev(values) if defined and len(values) > 1 else None
    return columns


def _wanted(cells: Sequence[Cell], spoken: set[str | None], reports: Path, scores: Path) -> Iterator[Path]:
    for cell in cells:
        names = [training_report(cell), mask_report(cell), fill_report(cell), perplexity_report(cell)]
        if cell.dataset in spoken:
            names.append(word_error_report(cell))
            yield scores / word_error_file(cell)
        yield from (reports / name for name in names if name is not None)
        if cell.method != NO_LANGUAGE_MODEL:
            yield scores / score_file(cell)


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
    """Reads measured fields of reports and gathers what is missing, so that all is said at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._missing: dict[Path, list[str]] = {}
        self._documents: dict[Path, dict[str, Any]] = {}

    def report(self, name: Path) -> dict[str, Any]:
        if name not in self._documents:
            self._documents[name] = read_report(self.folder / name)
        return self._documents[name]

    def measured(self, name: Path, field: str) -> Any:
        """One measured field; ``None`` where it is missing, which ``refuse_missing`` says."""
        fields = self.report(name).get("measured", {})
        if field not in fields:
            self._missing.setdefault(self.folder / name, []).append(field)
        return fields.get(field)

    def refuse_missing(self) -> None:
        """``CorpusError`` that names every field that is missing, with its report."""
        problems = [
            f"{str(path)!r} has no measured field{'s' * (len(fields) > 1)} {', '.join(map(repr, fields))}"
            for path, fields in self._missing.items()
        ]
        if problems:
            raise CorpusError(f"{'; '.join(problems)}; run their stages again with 'dvc repro'")


def _row(cell: Cell, reader: _Reader, spoken: set[str | None]) -> dict[str, Any]:
    row: dict[str, Any] = cell.as_dict()
    row["masked_fraction"] = _masked_fraction(cell, reader)
    row.update(_perplexities(cell, reader))
    row.update(_filling(cell, reader))
    if cell.dataset in spoken:
        report = word_error_report(cell)
        rescored = reader.report(report).get("stage") == RESCORE
        row.update(speech_columns(cell, lambda field: reader.measured(report, field), rescored=rescored))
    else:
        row.update(no_speech_columns())
    row["key"] = run_key(cell, lineage_of(reader.report(training_report(cell))))
    return row


def _perplexities(cell: Cell, reader: _Reader) -> dict[str, Any]:
    """The columns of evaluation; null where there is no language model."""
    report = perplexity_report(cell)

    def measured(field: str) -> Any:
        return reader.measured(report, field) if report is not None else None

    row: dict[str, Any] = {
        "perplexity": measured("perplexity"),
        "perplexity_ci": measured("perplexity_ci"),
    }
    for name in ("perplexity_known", "perplexity_unknown", "perplexity_without_markers", "bits_per_character"):
        row[name] = measured(name)
        row[f"{name}_ci"] = measured(f"{name}_ci")
    row["masked_words"] = measured("masked_words") or {}
    row["by_frequency"] = measured("by_frequency") or {}
    row.update(masked_word_columns(row["masked_words"], cell.technique))
    row["oov_rate"] = measured("oov_rate")
    row["words"] = measured("words")
    row["sentences"] = measured("sentences")
    row["signature"] = measured("signature")
    return row


def masked_word_columns(masked_words: Mapping[str, Any], technique: str | None) -> dict[str, Any]:
    """Perplexities over the test words that a technique would mask and over the rest; null where they are not told
    apart. A row has those of its own technique; pretrained and Oracle have none, but the numbers for every technique.
    """
    measured = masked_words.get(technique or "")
    columns = {
        "perplexity_masked": "perplexity",
        "perplexity_masked_known": "perplexity_known",
        "perplexity_rest_known": "perplexity_rest_known",
    }
    return {
        column + end: measured[name + end] if measured else None
        for column, name in columns.items()
        for end in ("", "_ci")
    }


def _masked_fraction(cell: Cell, reader: _Reader) -> float | None:
    """Share of the training words that are masked: 0 for Oracle, undefined for a model that saw no private text."""
    masked = mask_report(cell)
    if masked is not None:
        return reader.measured(masked, "masked_fraction")
    return 0.0 if cell.method == ORACLE else None


def _filling(cell: Cell, reader: _Reader) -> dict[str, Any]:
    columns = {
        "markers": "markers",
        "fallback_count": "fallback_count",
        "distinct_fills": "distinct_fills",
        "restoration_rate": "restoration_rate",
        "restoration_by_frequency": "expected_restoration_by_frequency",
    }
    filled = fill_report(cell)
    if filled is None:
        return dict.fromkeys([*columns, "restoration_rate_ci"])
    row = {column: reader.measured(filled, field) for column, field in columns.items()}
    restored = reader.measured(filled, "restoration")
    return row | {"restoration_rate_ci": ((restored or {}).get("overall") or {}).get("rate_ci")}
