"""Write the tables of README.md, docs/results.md and docs/privacy.md, and the plot of README.md, from a stored run.

    python -m benchmarks.readme_tables                         # tables from benchmarks/default_run.json
    python -m benchmarks.readme_tables --store results CELL    # first store a run of 'make demo'

CELL is the path of the cell that the verdict recommends. A stored run has numbers only: the columns that the tables
need, with commit, date, processor and a digest of params.yaml.
"""

import argparse
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.stored_numbers import with_table
from dashboards.plots import standalone
from dashboards.report_page import trade_off
from tasks.errors import CorpusError
from tasks.privacy.settings import ReleaseSettings
from tasks.records.cell import Cell
from tasks.records.stage_report import read_report, write_json
from tasks.results.grid import markdown, plain_grid, words
from tasks.results.leakage import attacked
from tasks.results.measure import Row
from tasks.results.measures import measure, measures
from tasks.results.summary.estimate import direction
from tasks.results.summary.summary_file import read_summary, summarised_cell
from tasks.results.tables import SIGNS, Table, measure_grid, number_text, tables
from tasks.results.titles import technique_name

Run = Mapping[str, Any]
STORED = Path(__file__).with_name("default_run.json")
"""The text of the default corpus is public, so exact numbers may be in git."""
FULL = ("reidentified", "membership_lira_auc", "membership_lira_tpr_1")
"""Columns of the attacks that are stronger in the full audit."""
THREATS: Sequence[Sequence[str]] = yaml.safe_load(Path(__file__).with_name("threats.yaml").read_text("utf-8"))
"""Adversary, its means and goal, its attack, and the column of the figure; empty without a measurement."""
_OF_TEXT = ("unmasked_direct", "reidentified", "reidentified_raw")
"""Figures that the raw text lacks: nothing is masked in it."""
_LEAKAGE = (*_OF_TEXT, "exposure", "exposure_unmasked", "membership_auc", "membership_tpr_1")
_FIELDS = (
    "dataset technique method filler seed filler_base signature oov_rate attackers synthetic_speech perplexity "
    "perplexity_known"
).split()
"""Stored columns of every row."""
_COLUMNS = (
    "unmasked_direct unmasked_quasi verbatim_lines reidentified reidentified_raw linked_mentions found_by_second_fill "
    "exposure exposure_unmasked membership_auc membership_tpr_1 extracted masked_fraction perplexity perplexity_known "
    "gap_closed_known ratio_to_baseline1 ratio_to_baseline1_known wer wer_masked wer_difference_to_oracle "
    "wer_difference_to_pretrained wer_difference_to_no_language_model"
).split()
"""Columns that are stored with interval and chance level, where a row has them."""


def pages(run: Run, root: Path = Path()) -> dict[Path, str]:
    """The pages with their tables made from a run."""
    tables_of = {
        "README.md": {"example": example, "results": results},
        "docs/results.md": {"quality": quality, "leakage": leakage, "speech": speech},
        "docs/privacy.md": {"threats": threats},
    }
    found = {}
    for name, by_block in tables_of.items():
        text = (root / name).read_text(encoding="utf-8")
        for block, table in by_block.items():
            text = with_table(text, block, table(run))
        found[root / name] = text
    cells = {cell.path: cell for cell in map(summarised_cell, run["rows"])}
    found[root / "docs/quality_leakage.svg"] = standalone(trade_off(tables(run["rows"])[0], cells[run["recommended"]]))
    return found


def example(run: Run) -> str:
    """A made-up sentence, masked and filled by the recommended cell."""
    lines = [f"    {name:8}{run['example'][name]}" for name in ("raw", "masked", "filled")]
    return "A made-up sentence, masked and filled as the default run recommends:\n\n" + "\n".join(lines)


def results(run: Run) -> str:
    """A row for each model of the first and the recommended technique: quality, and full audit."""
    table = tables(run["rows"])[0]
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
    below = f"[95 % intervals], (the same attack where there is nothing to find). {_ran(run)}"
    if run["full_audit"]:
        cells = sum("full" in row for row in run["rows"])
        below += f" The full audit attacked {cells} cells at commit {run['full_audit']['commit'][:7]}."
    return f"{markdown(plain_grid('', ['model, masking', *shown.values()], lines))}\n\n{below}"


def quality(run: Run) -> str:
    """Perplexity by method and technique, with the gap that each fill closes."""
    table = tables(run["rows"])[0]
    gaps: dict[str, list[str]] = {}
    for one in table.conditions():
        if one.technique and (number := measure("gap_closed_known").estimate(one.rows)):
            gaps.setdefault(technique_name(one.technique), []).append(f"{one.line.label} {number_text(number, 0)} %")
    return "\n\n".join(
        (
            markdown(measure_grid(table, measure("perplexity"))),
            f"▼ below, ▲ above Baseline1 of the same technique: the paired 95 % interval excludes 1. {_ran(run)}",
            "Share of the gap between Baseline1 and Oracle that each fill closes (words of the vocabulary, log scale):",
            "\n".join(f"- {name}: {', '.join(closed)}" for name, closed in gaps.items()),
        )
    )


def leakage(run: Run) -> str:
    """Attacks as rows, attacked cells as columns, with the chance level in brackets."""
    conditions, lines = attacked(tables(run["rows"])[0]), []
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


def speech(run: Run) -> str:
    """Word error rates and their paired difference to Oracle."""
    table = tables(run["rows"])[0]
    shown = (measure("wer"), measure("wer_masked"), measure("wer_difference_to_oracle"))
    lines, differ = [], []
    for label, rows in _labelled(table, "wer", table.techniques):
        lines.append([label, *(number_text(each.estimate(rows), each.digits) for each in shown)])
        if rows[0]["technique"] and (way := direction(rows, shown[2].name, 0.0)):
            differ.append(f"{label} {SIGNS[way]}")
    written = markdown(plain_grid("", [table.kind_of_speech, *(each.title for each in shown)], lines))
    named = ", ".join(differ) or "none"
    return f"{written}\n\nAdapted models whose paired interval excludes a difference of 0 to Oracle: {named}."


def threats(run: Run) -> str:
    """Adversary, attack, the figure that measures it, its default limit, and the figure of the recommended cell."""
    found = [row for row in run["rows"] if summarised_cell(row).path == run["recommended"]]
    release = ReleaseSettings()
    limits = {name: f"`release.at_most.{name}`: {limit:g}" for name, limit in release.at_most.items()}
    limits["unmasked_direct"] = f"`release.unmasked_direct`: {release.unmasked_direct:g}"
    shares = {each.name for each in measures() if each.share}
    lines = []
    for *threat, name in THREATS:
        column = f"`{name}`" + (", %" if name in shares else "") if name else "none"
        shown = figure(full_audit(found) if name.startswith("membership_lira") else found, name)
        lines.append([*threat, column, limits.get(name, "none"), shown])
    headings = [*words("adversary", "holds", "wants", "attack", "figure: column", "limit"), "default run"]
    below = (
        f"The recommended cell is `{run['recommended']}`. In brackets: the same attack where there is nothing to find."
    )
    return f"{markdown(plain_grid('', headings, lines))}\n\n{below}"


def full_audit(rows: Sequence[Row]) -> list[Row]:
    """The figures of the full audit, for rows that have them."""
    return [row["full"] for row in rows if "full" in row]


def figure(rows: Sequence[Row], name: str, absent: str = "not measured") -> str:
    """A figure of a cell with its interval, and the chance level in brackets."""
    by_name = {each.name: each for each in measures()}
    if not rows or name not in by_name or (number := by_name[name].estimate(rows)) is None:
        return absent
    digits, chance = by_name[name].digits, by_name[name].chance(rows)
    return number_text(number, digits) + (f" ({chance.value:.{digits}f})" if chance is not None else "")


def _ran(run: Run) -> str:
    return f"Run of {run['date']}, commit {run['commit'][:7]}, {run['processor']}."


def _labelled(table: Table, column: str, techniques: Collection[str]) -> Iterator[tuple[str, Sequence[Row]]]:
    """Label and rows of each line that has the column, under some techniques; references too."""
    for one in table.conditions(alone=True):
        if (one.technique is None or one.technique in techniques) and one.rows[0].get(column) is not None:
            yield one.label, one.rows


def store_run(folder: Path, recommended: str, full: Path | None, path: Path = STORED) -> None:
    """Store the run of a ``results`` folder; ``CorpusError`` if it has no summary, or no example of the cell.

    ``full``: the ``summary.json`` of a run with ``audit: {effort: full}``, whose figures the rows have in ``full``.
    """
    audited = {summarised_cell(row).path: row for row in read_summary(full)} if full else {}
    run = {
        **_origin(folder),
        "full_audit": _origin(full.parent) if full else None,
        "parameters": hashlib.sha256((folder.parent / "params.yaml").read_bytes()).hexdigest(),
        "recommended": recommended,
        "example": _example(folder, recommended),
        "rows": [
            _stored(row, audited.get(summarised_cell(row).path, {})) for row in read_summary(folder / "summary.json")
        ],
    }
    write_json(path, run)


def _example(folder: Path, recommended: str) -> dict[str, str]:
    """The first made-up sentence of the page raw, masked and filled, by the recommended cell."""
    for path in sorted((folder / "reports" / "examples").rglob("*.json")):
        report = read_report(path)
        dataset, measured = report["cell"]["dataset"], report["measured"]
        for by, fill in ((entry, fill) for entry in measured["by_technique"] for fill in entry["filled"]):
            cell = Cell(dataset, by["technique"], fill["method"], fill["filler"], report["seed"])
            if cell.path == recommended:
                return {"raw": measured["raw"][0], "masked": by["masked"][0], "filled": fill["lines"][0]}
    raise CorpusError(f"no example is of the cell {recommended!r}; run the experiment again")


def _origin(folder: Path) -> dict[str, str]:
    """Commit, date and processor of a run."""
    report = read_report(min((folder / "reports" / "fill").rglob("*.json")))
    processor = report["environment"]["processor"]
    return {"commit": report["code"]["commit"], "date": report["started"][:10], "processor": processor}


def _stored(row: Row, full: Row) -> dict[str, Any]:
    """The columns that tables show, and those of the full audit."""
    shown = {name: row.get(name) for name in _FIELDS} | _measured(row, _COLUMNS)
    if full.get("membership_lira_auc") is not None:
        shown["full"] = _measured(full, FULL)
    if spoken := row.get("masked_word_errors"):
        shown["masked_word_errors"] = {by: {key: one[key] for key in ("wer", "wer_ci")} for by, one in spoken.items()}
    return shown


def _measured(row: Row, columns: Sequence[str]) -> dict[str, Any]:
    names = (f"{column}{end}" for column in columns for end in ("", "_ci", "_blind"))
    return {name: row[name] for name in names if row.get(name) is not None}


def main() -> None:
    """Store a run on request, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", nargs=2, metavar=("FOLDER", "CELL"), help="store the run in this folder first")
    parser.add_argument("--full", type=Path, metavar="FILE", help="summary.json of a run with the full audit")
    arguments = parser.parse_args()
    if arguments.store:
        store_run(Path(arguments.store[0]), arguments.store[1], arguments.full)
    for path, text in pages(json.loads(STORED.read_text(encoding="utf-8"))).items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
