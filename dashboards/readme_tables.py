"""Write the tables of README.md, docs/results.md and docs/privacy.md from the stored run of the default experiment.

python -m dashboards.readme_tables                     # tables from tasks/results/default_run.json
python -m dashboards.readme_tables --results results   # store the run in this folder first
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dashboards.stored_run import figure, store_run
from dashboards.threat_table import threat_table
from tasks.results.default_run import FULL, full_audit, read_run
from tasks.results.grid import markdown
from tasks.results.leakage import attacked
from tasks.results.measure import Row
from tasks.results.measures import measure, measures
from tasks.results.summary.estimate import direction, estimate
from tasks.results.tables import SIGNS, Table, measure_grid, number_text, tables
from tasks.results.titles import technique_name

_LEAKAGE = ("unmasked_direct", "reidentified", "exposure", "exposure_unmasked", "membership_auc", "membership_tpr_1")
_OF_TEXT = ("unmasked_direct", "reidentified")
"""Figures that the raw text lacks: nothing is masked in it."""


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
        "membership_lira_auc": "membership inference, AUC",
    }
    lines = [f"| model, masking | {' | '.join(shown.values())} |", f"|---|{'---:|' * len(shown)}"]
    for label, rows in _labelled(table, "perplexity", (table.techniques[0], run["recommended"].split("/")[1])):
        cells = [figure(full_audit(rows) if name in FULL else rows, name, "") for name in shown]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + (
        "\n\n[95 % intervals], (the same attack where there is nothing to find). The full audit attacked two cells. "
        f"Run of {run['date']}, commit {run['commit'][:7]}, {run['processor']}."
    )


def quality(run: Mapping[str, Any]) -> str:
    """Perplexity by method and technique, with the gap that each fill closes."""
    table = _table(run)
    gaps = []
    for technique in table.techniques:
        closed = [
            f"{line.label} {number_text(number.times(100), 0)} %"
            for line in table.lines
            if line.by_technique[technique] and (number := estimate(line.by_technique[technique], "gap_closed_known"))
        ]
        gaps += [f"- {technique_name(technique)}: {', '.join(closed)}"] if closed else []
    return "\n\n".join(
        (
            markdown(measure_grid(table, measure("perplexity"))),
            "▼ below, ▲ above Baseline1 of the same technique: the paired 95 % interval excludes 1. Run of "
            f"{run['date']}, commit {run['commit'][:7]}, {run['processor']}.",
            "Share of the gap between Baseline1 and Oracle that each fill closes (words of the vocabulary, log scale):",
            "\n".join(gaps),
        )
    )


def leakage(run: Mapping[str, Any]) -> str:
    """Attacks as rows, attacked cells as columns, with the chance level in brackets."""
    conditions = attacked(_table(run))
    headings = [f"{line.label}, {technique_name(name)}" if name else line.label for name, line, _ in conditions]
    lines = [f"| attack | {' | '.join(headings)} |", f"|---|{'---:|' * len(conditions)}"]
    titles = {each.name: each.title for each in measures()}
    for audit, names in (("", _LEAKAGE), ("full audit: ", FULL)):
        for name in names:
            cells = [
                "" if name in _OF_TEXT and own is None else figure(full_audit(rows) if audit else rows, name)
                for own, _, rows in conditions
            ]
            lines.append(f"| {audit}{titles[name]} | {' | '.join(cells)} |")
    return (
        "\n".join(lines)
        + "\n\nIn brackets: the same attack where there is nothing to find. Percentages where the title says so."
    )


def speech(run: Mapping[str, Any]) -> str:
    """Word error rates and their paired difference to Oracle."""
    table = _table(run)
    shown = (measure("wer"), measure("wer_masked"), measure("wer_difference_to_oracle"))
    lines = [f"| {table.kind_of_speech} | {' | '.join(each.title for each in shown)} |", f"|---|{'---:|' * len(shown)}"]
    differ = []
    for label, rows in _labelled(table, "wer", table.techniques):
        numbers = [number_text(each.estimate(rows), each.digits) for each in shown]
        lines.append(f"| {label} | {' | '.join(numbers)} |")
        if rows[0]["technique"] and (way := direction(rows, shown[2].name, 0.0)):
            differ.append(f"{label} {SIGNS[way]}")
    named = ", ".join(differ) or "none"
    return "\n".join(lines) + f"\n\nAdapted models whose paired interval excludes a difference of 0 to Oracle: {named}."


def _labelled(table: Table, column: str, techniques: Iterable[str]) -> Iterator[tuple[str, Sequence[Row]]]:
    """Label and rows of each line that has the column, those of every technique once."""
    seen: set[str] = set()
    for technique in techniques:
        for line in table.all_lines:
            rows = line.by_technique[technique]
            label = _label(line.label, technique, rows)
            if rows and rows[0].get(column) is not None and label not in seen:
                seen.add(label)
                yield label, rows


def _label(label: str, technique: str, rows: Sequence[Row]) -> str:
    return f"{label}, {technique_name(technique)}" if rows and rows[0]["technique"] else label


def _table(run: Mapping[str, Any]) -> Table:
    return tables(run["rows"])[0]


def with_table(page: str, name: str, table: str) -> str:
    """A page with a table between its marks; ``ValueError`` if the marks are missing."""
    begin, end = f"<!-- table: {name} -->", f"<!-- end of table: {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"The page needs the lines {begin!r} and {end!r} once each.")
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"


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
