"""Write the tables of README.md, docs/results.md and docs/privacy.md from the stored run of the default experiment.

python -m benchmarks.readme_tables                     # tables from benchmarks/default_run.json
python -m benchmarks.readme_tables --results results   # store the run in this folder first
"""

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.__main__ import stamp
from benchmarks.frame import ROOT
from benchmarks.stored_run import FULL, figure, full_audit, read_run, store_run
from benchmarks.threat_table import threat_table
from dashboards.compare_detectors_command import between
from tasks.records.stage_report import write_json
from tasks.results.grid import markdown, plain_grid
from tasks.results.leakage import attacked
from tasks.results.measure import Row
from tasks.results.measures import measure
from tasks.results.summary.estimate import direction
from tasks.results.tables import SIGNS, Table, measure_grid, number_text, tables
from tasks.results.titles import technique_name

_OF_TEXT = ("unmasked_direct", "reidentified", "reidentified_raw")
"""Figures that the raw text lacks: nothing is masked in it."""
_LEAKAGE = (*_OF_TEXT, "exposure", "exposure_unmasked", "membership_auc", "membership_tpr_1")


def example(run: Mapping[str, Any]) -> str:
    """A made-up sentence, masked and filled by the recommended cell."""
    lines = [f"    {name:8}{run['example'][name]}" for name in ("raw", "masked", "filled")]
    return "A made-up sentence, masked and filled as the default run recommends:\n\n" + "\n".join(lines)


def results(run: Mapping[str, Any]) -> str:
    """A row for each model of the first and the recommended technique: quality, and full audit."""
    table = _table(run)
    shown = {
        "perplexity": "perplexity",
        "gap_closed_known": "gap closed, %",
        "unmasked_direct": "unmasked direct identifiers per 1,000 lines",
        "reidentified": "masked words recovered, %",
        "reidentified_raw": "by a model of raw text, %",
        "membership_lira_auc": "membership inference, AUC",
    }
    lines = [
        [label, *(figure(full_audit(rows) if name in FULL else rows, name, "") for name in shown)]
        for label, rows in _labelled(table, "perplexity", (table.techniques[0], run["recommended"].split("/")[1]))
    ]
    return markdown(plain_grid("", ["model, masking", *shown.values()], lines)) + (
        f"\n\n[95 % intervals], (the same attack where there is nothing to find). Run of {run['date']}, commit "
        f"{run['commit'][:7]}, {run['processor']}.{_of_full_audit(run)}"
    )


def _of_full_audit(run: Mapping[str, Any]) -> str:
    full = run["full_audit"]
    cells = sum("full" in row for row in run["rows"])
    return f" The full audit attacked {cells} cells at commit {full['commit'][:7]}." if full else ""


def quality(run: Mapping[str, Any]) -> str:
    """Perplexity by method and technique, with the gap that each fill closes."""
    table = _table(run)
    gaps: dict[str, list[str]] = {}
    for one in table.conditions():
        if one.technique and (number := measure("gap_closed_known").estimate(one.rows)):
            gaps.setdefault(technique_name(one.technique), []).append(f"{one.line.label} {number_text(number, 0)} %")
    return "\n\n".join(
        (
            markdown(measure_grid(table, measure("perplexity"))),
            "▼ below, ▲ above Baseline1 of the same technique: the paired 95 % interval excludes 1. Run of "
            f"{run['date']}, commit {run['commit'][:7]}, {run['processor']}.",
            "Share of the gap between Baseline1 and Oracle that each fill closes (words of the vocabulary, log scale):",
            "\n".join(f"- {name}: {', '.join(closed)}" for name, closed in gaps.items()),
        )
    )


def leakage(run: Mapping[str, Any]) -> str:
    """Attacks as rows, attacked cells as columns, with the chance level in brackets."""
    conditions, lines = attacked(_table(run)), []
    for audit, names in (("", _LEAKAGE), ("full audit: ", FULL)):
        for name in names:
            cells = [figure(full_audit(one.rows) if audit else one.rows, name) for one in conditions]
            if name in _OF_TEXT:
                cells = [cell if one.technique else "" for cell, one in zip(cells, conditions, strict=True)]
            lines.append([f"{audit}{measure(name).title}", *cells])
    return (
        markdown(plain_grid("", ["attack", *(one.label for one in conditions)], lines))
        + "\n\nIn brackets: the same attack where there is nothing to find. Percentages where the title says so."
    )


def speech(run: Mapping[str, Any]) -> str:
    """Word error rates and their paired difference to Oracle."""
    table = _table(run)
    shown = (measure("wer"), measure("wer_masked"), measure("wer_difference_to_oracle"))
    lines, differ = [], []
    for label, rows in _labelled(table, "wer", table.techniques):
        lines.append([label, *(number_text(each.estimate(rows), each.digits) for each in shown)])
        if rows[0]["technique"] and (way := direction(rows, shown[2].name, 0.0)):
            differ.append(f"{label} {SIGNS[way]}")
    written = markdown(plain_grid("", [table.kind_of_speech, *(each.title for each in shown)], lines))
    named = ", ".join(differ) or "none"
    return f"{written}\n\nAdapted models whose paired interval excludes a difference of 0 to Oracle: {named}."


def _labelled(table: Table, column: str, techniques: Collection[str]) -> Iterator[tuple[str, Sequence[Row]]]:
    """Label and rows of each line that has the column, under some techniques; references too."""
    for one in table.conditions(alone=True):
        if (one.technique is None or one.technique in techniques) and one.rows[0].get(column) is not None:
            yield one.label, one.rows


def _table(run: Mapping[str, Any]) -> Table:
    return tables(run["rows"])[0]


def with_table(page: str, name: str, table: str) -> str:
    """A page with a table between its marks; ``ValueError`` if the marks are missing."""
    begin, end = f"<!-- table: {name} -->", f"<!-- end of table: {name} -->"
    found = between(page, begin, end, table)
    if found is None:
        raise ValueError(f"The page needs the lines {begin!r} and {end!r} once each.")
    return found


def publish(
    name: str, page: str, block: str, measured: Mapping[str, Any], table: Callable[[Mapping[str, Any]], str]
) -> None:
    """Store numbers in ``benchmarks/results/NAME.json`` with four decimals, and write their table into a page."""
    results = {**stamp(), **rounded(measured)}
    write_json(ROOT / f"benchmarks/results/{name}.json", results)
    path = ROOT / page
    path.write_text(with_table(path.read_text(encoding="utf-8"), block, table(results)), encoding="utf-8")


def rounded(figures: Any) -> Any:
    """Figures with four decimals."""
    if isinstance(figures, Mapping):
        return {name: rounded(one) for name, one in figures.items()}
    if isinstance(figures, list | tuple):
        return [rounded(one) for one in figures]
    return round(figures, 4) if isinstance(figures, float) else figures


def ran(results: Mapping[str, Any]) -> str:
    """The line below a table: date, commit and processor."""
    return f"Run of {results['date']}, commit {results['commit']}, {results['machine']['processor']}."


def pages(run: Mapping[str, Any], root: Path = Path()) -> dict[Path, str]:
    """The pages with their tables made from a run."""
    blocks = {
        "README.md": {"example": example(run), "results": results(run)},
        "docs/results.md": {"quality": quality(run), "leakage": leakage(run), "speech": speech(run)},
        "docs/privacy.md": {"threats": threat_table(run["rows"], run["recommended"])},
    }
    found = {}
    for name, tables_of in blocks.items():
        text = (root / name).read_text(encoding="utf-8")
        for block, table in tables_of.items():
            text = with_table(text, block, table)
        found[root / name] = text
    return found


def main() -> int:
    """Store a run on request, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="store the run in this folder first")
    parser.add_argument("--strong", type=Path, metavar="FILE", help="summary.json of a run with the full audit")
    parser.add_argument("--recommended", metavar="CELL", help="the cell of the threat table, with --results")
    arguments = parser.parse_args()
    if (arguments.results is None) != (arguments.recommended is None):
        parser.error("--results and --recommended belong together. Give both, or neither.")
    if arguments.results:
        store_run(arguments.results, arguments.strong, arguments.recommended)
    for path, text in pages(read_run()).items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
