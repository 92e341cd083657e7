"""The summary for other tools: a CSV table of all cells, and some twenty numbers for ``dvc metrics``."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasks.results.summary.summary_file import summarised_cell

if TYPE_CHECKING:
    from tasks.results.verdict import Verdict

Row = Mapping[str, Any]
_OF_REFERENCES = ("perplexity", "wer")
_OF_RECOMMENDED = (
    *_OF_REFERENCES,
    "gap_closed_known",
    "masked_fraction",
    "unmasked_direct",
    "reidentified",
    "exposure",
    "membership_auc",
    "membership_tpr_1",
    "extracted",
)


def summary_csv(rows: Sequence[Row]) -> str:
    """A line for each cell; an interval ``NAME_ci`` becomes ``NAME_low`` and ``NAME_high``.

    A missing value is an empty field. Columns that hold tables, such as numbers by class, are left out.
    """
    flat = [dict(with_ends(row)) for row in rows]
    columns = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def with_ends(row: Row) -> Iterator[tuple[str, Any]]:
    """The entries of a row without tables; of an interval, its ends ``NAME_low`` and ``NAME_high``."""
    for name, value in row.items():
        if name.endswith("_ci") and (value is None or len(value) == 2):
            ends = value or (None, None)
            yield from zip((f"{name.removesuffix('_ci')}_low", f"{name.removesuffix('_ci')}_high"), ends, strict=True)
        elif not isinstance(value, Mapping | list):
            yield name, value


def key_figures(verdicts: Iterable["Verdict"], rows: Sequence[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """By data set, the numbers of its recommended cell, of Baseline1 of the same technique, and of the references.

    A cell without a number lacks that key. Several seeds: the first one.
    """
    found: dict[str, dict[str, dict[str, float]]] = {}
    for verdict in verdicts:
        own = found[verdict.dataset] = {}
        for row in rows:
            cell = summarised_cell(row)
            if cell.dataset != verdict.dataset:
                continue
            if cell == verdict.cell:
                own["recommended"] = _numbers(row, _OF_RECOMMENDED)
            elif cell.technique is None or (cell.method, cell.technique) == ("baseline1", verdict.cell.technique):
                own.setdefault(str(cell.method), _numbers(row, _OF_REFERENCES))
    return {name: {cell: numbers for cell, numbers in own.items() if numbers} for name, own in found.items()}


def _numbers(row: Row, names: Iterable[str]) -> dict[str, float]:
    return {name: row[name] for name in names if row.get(name) is not None}
