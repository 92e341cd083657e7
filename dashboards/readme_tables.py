"""Write the tables of README.md and docs/privacy.md from the stored run of the default experiment.

The stored run has numbers only: the columns that the tables show, with commit, date, processor and a digest of
params.yaml. ``--results`` stores a new one first; ``--strong`` adds membership inference by shadow models from a run
with ``audit: {effort: full}`` of the same cells. The text of the default corpus is public, so exact numbers may be in git.

    python -m dashboards.readme_tables                     # tables from the stored run
    python -m dashboards.readme_tables --results results   # store the run in results, then the tables
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dashboards.threat_table import threat_table
from tasks.results.grid import ABSENT, markdown
from tasks.results.leakage import attacked
from tasks.results.measure import DOCUMENT, Measure, Row
from tasks.results.measures import measure, measures
from tasks.results.summary.estimate import estimate
from tasks.results.summary.summary_file import read_summary, summarised_cell
from tasks.results.tables import SIGNS, Line, Table, measure_grid, number_text, tables
from tasks.results.titles import technique_name

STORED = Path("docs/results/default_run.json")
STRONG = ("membership_lira_auc", "membership_lira_tpr_1", "reidentified", "reidentified_10")
"""Columns that a run with full effort gives."""
LEAKAGE = (
    *("unmasked_direct", "reidentified", "exposure", "exposure_kept", "membership_auc", "membership_tpr_1"),
    *("membership_lira_auc", "membership_lira_tpr_1"),
)
OTHERS = (
    *("unmasked_quasi", "verbatim_lines", "same_entity_told", "told_by_second_fill", "extracted", "masked_fraction"),
    *("perplexity", "perplexity_known", "gap_closed_known", "ratio_to_baseline1", "ratio_to_baseline1_known"),
    *(
        "wer",
        "wer_masked",
        "wer_difference_to_oracle",
        "wer_difference_to_pretrained",
        "wer_difference_to_no_language_model",
    ),
)
FIELDS = (
    "dataset",
    "technique",
    "method",
    "filler",
    "seed",
    "filler_base",
    "key",
    "signature",
    "oov_rate",
    "attackers",
)
FIELDS += ("synthetic_speech",)


def stored_run(results: Path, strong: Path | None = None, recommended: str | None = None) -> dict[str, Any]:
    """The numbers of a finished run; ``CorpusError`` where there is no summary."""
    from tasks.records.stage_report import read_report

    rows = read_summary(results / "summary.json")
    report = read_report(next(iter(sorted((results / "reports" / "fill").rglob("*.json")))))
    found = [_stored(row) for row in rows]
    if strong is not None:
        full = {summarised_cell(row).path: row for row in read_summary(strong)}
        for row in found:
            other = full.get(summarised_cell(row).path, {})
            row["strong"] = {name: value for name, value in other.items() if name.startswith(STRONG)}
    return {
        "commit": report["code"]["commit"],
        "date": report["started"][:10],
        "processor": report["environment"]["processor"],
        "parameters": hashlib.sha256((results.parent / "params.yaml").read_bytes()).hexdigest(),
        "recommended": recommended or _recommended(rows, results),
        "rows": found,
    }


def _stored(row: Row) -> dict[str, Any]:
    names = [name for each in (*LEAKAGE, *OTHERS) for name in (each, f"{each}_ci", f"{each}_blind")]
    kept = {name: row.get(name) for name in FIELDS} | {name: row[name] for name in names if row.get(name) is not None}
    words = row.get("masked_word_errors") or {}
    kept["masked_word_errors"] = {
        technique: {name: found[name] for name in ("wer", "wer_ci") if name in found}
        for technique, found in words.items()
    }
    return kept | {"key": None, "perplexity": row["perplexity"], "perplexity_known": row["perplexity_known"]}


def _recommended(rows: Sequence[Row], results: Path) -> str | None:
    from tasks.results.report_index import ReportIndex
    from tasks.results.verdict import verdicts

    cell = next(
        (verdict.cell for verdict in verdicts(rows, ReportIndex(results / "reports"), results / "scores")), None
    )
    return cell.path if cell is not None else None


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
            markdown(measure_grid(table, measure("perplexity"), DOCUMENT)),
            "▼ below, ▲ above Baseline1 of the same technique: the paired 95 % interval excludes 1. Run of "
            f"{run['date']}, commit {run['commit'][:7]}, {run['processor']}.",
            "Share of the gap between Baseline1 and Oracle that each fill closes (words of the vocabulary, log scale):",
            "\n".join(gaps),
        )
    )


def leakage(run: Mapping[str, Any]) -> str:
    """Attacks down, attacked cells across, the same attack without anything to find in brackets."""
    table = _table(run)
    conditions = attacked(table)
    headings = [f"{line.label}, {technique_name(name)}" if name else line.label for name, line, _ in conditions]
    lines = [f"| attack | {' | '.join(headings)} |", f"|---|{'---:|' * len(conditions)}"]
    known = {each.name for each in measures()}
    for name in LEAKAGE:
        of_text = name in ("unmasked_direct", "reidentified")
        title = _strong_title(name) if name in known else name
        cells = [
            "everything"
            if name == "unmasked_direct" and own is None
            else ""
            if of_text and own is None
            else leak(rows, name)
            for own, _, rows in conditions
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n\nIn brackets: the same attack where there is nothing to find."


def _strong_title(name: str) -> str:
    return measure(name).title


def leak(rows: Sequence[Row], name: str) -> str:
    """A figure of a cell with its interval and, in brackets, its blind value; ``not measured`` where there is none."""
    each = next((found for found in measures() if found.name == name), None)
    found = [{**row, **{key: value for key, value in (row.get("strong") or {}).items()}} for row in rows]
    if each is None or (number := each.estimate(found)) is None:
        return "not measured"
    blind = estimate(found, each.blind)
    unit = 100 if each.share else 1
    return number_text(number, each.digits) + (f" ({blind.value * unit:.{each.digits}f})" if blind is not None else "")


def speech(run: Mapping[str, Any]) -> str:
    """Word error rates and their paired difference to Oracle."""
    table = _table(run)
    shown: tuple[Measure, ...] = (measure("wer"), measure("wer_masked"), measure("wer_difference_to_oracle"))
    lines = [f"| {table.kind_of_speech} | {' | '.join(each.title for each in shown)} |", f"|---|{'---:|' * len(shown)}"]
    apart = []
    for label, rows in _spoken(table):
        numbers = [number_text(each.estimate(rows), each.digits) for each in shown]
        lines.append(f"| {label} | {' | '.join(numbers)} |")
        if rows[0]["technique"] and (way := shown[2].references[0].way(rows)):
            apart.append(f"{label} {SIGNS[way]}")
    said = ", ".join(apart) or "none"
    return "\n".join(lines) + f"\n\nAdapted models whose paired interval excludes a difference of 0 to Oracle: {said}."


def _spoken(table: Table) -> Iterator[tuple[str, Sequence[Row]]]:
    seen: set[str] = set()
    for technique in table.techniques:
        for line in table.all_lines:
            rows = line.by_technique[technique]
            label = _label(line, technique, rows)
            if rows and rows[0].get("wer") is not None and label not in seen:
                seen.add(label)
                yield label, rows


def _label(line: Line, technique: str, rows: Sequence[Row]) -> str:
    return f"{line.label}, {technique_name(technique)}" if rows and rows[0]["technique"] else line.label


def _table(run: Mapping[str, Any]) -> Table:
    return tables(run["rows"])[0]


def with_table(page: str, name: str, table: str) -> str:
    """A page with a table between its marks; ``ValueError`` where the marks are missing."""
    begin, end = f"<!-- table: {name} -->", f"<!-- end of table: {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"The page needs the lines {begin!r} and {end!r} once each.")
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}"


def pages(run: Mapping[str, Any], root: Path = Path()) -> dict[Path, str]:
    """The pages with their tables made from a run."""
    readme, privacy = root / "README.md", root / "docs" / "privacy.md"
    text = readme.read_text(encoding="utf-8")
    for name, table in (("quality", quality(run)), ("leakage", leakage(run)), ("speech", speech(run))):
        text = with_table(text, name, table)
    return {
        readme: text,
        privacy: with_table(
            privacy.read_text(encoding="utf-8"), "threats", threat_table(run["rows"], run["recommended"])
        ),
    }


def main() -> int:
    """Store a run where asked to, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="store the run in this folder first")
    parser.add_argument(
        "--strong", type=Path, metavar="SUMMARY", help="summary.json of a run with audit: {effort: full}"
    )
    parser.add_argument("--recommended", metavar="CELL", help="the cell of the threat table (default: the verdict's)")
    arguments = parser.parse_args()
    if arguments.results:
        STORED.parent.mkdir(exist_ok=True)
        run = stored_run(arguments.results, arguments.strong, arguments.recommended)
        STORED.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for path, text in pages(json.loads(STORED.read_text(encoding="utf-8"))).items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
