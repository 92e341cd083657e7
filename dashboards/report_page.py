"""The report page: one self-contained HTML file, readable offline, light, dark and printed.

This module computes its tables; ``report_page.html`` has the sections and their text.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dashboards import provenance
from dashboards.detectors import detector_grids, detector_legend, detector_results
from dashboards.page_tables import examples_of, fill_grid, fluency_grid, readings_grid, systems_grid
from dashboards.plots import Axis, Point, figure
from tasks.language_model.settings import EvaluationSettings
from tasks.page_templates import page_environment
from tasks.records.cell import Cell
from tasks.results.findings.findings_claims import findings
from tasks.results.findings.findings_comparison import Experiment
from tasks.results.forgetting import by_dataset, forgetting_grid, forgetting_legend
from tasks.results.grid import Grid, Heading, plain_grid
from tasks.results.leakage import attacked, leakage_grid
from tasks.results.measure import PAGE, Measure, Row
from tasks.results.measures import LEAKAGE, measure, measures_of
from tasks.results.readings import MEMBERSHIP
from tasks.results.report_index import ReportIndex
from tasks.results.summary.summary_document import lists_note
from tasks.results.tables import Table, measure_grid, tables
from tasks.results.verdict import Verdict

_FOLDER = Path(__file__).parent
_RATIOS = ("ratio_to_oracle", "ratio_to_oracle_known", "ratio_to_baseline1", "ratio_to_baseline1_known")
_RATES = ("wer_masked", *(f"wer_difference_to_{name}" for name in ("no_language_model", "pretrained", "oracle")))


def report_page(
    all_rows: Sequence[Mapping[str, Any]],
    index: ReportIndex,
    verdicts: Sequence[Verdict],
    scores: str | Path | None = None,
) -> str:
    """The page for the rows of a summary and the reports from which they were made.

    ``scores``: the folder of the per-sentence scores, for the verdicts on the paper's claims.
    """
    index = index.of_datasets({row["dataset"] for row in all_rows})
    environment = page_environment(_FOLDER)
    environment.filters["drawing"] = Markup
    # The recogniser alone has word error rates and nothing else.
    rows = [row for row in all_rows if row["perplexity"] is not None]
    sets = [_data_set(table, index, rows, scores) for table in tables(all_rows)]
    results = detector_results(index.reports)
    return environment.get_template("report_page.html").render(
        style=Markup((_FOLDER / "report_page.css").read_text(encoding="utf-8")),
        sets=sets,
        answers=[
            _answer(each, one["table"], one["examples"])
            for each in verdicts
            for one in sets
            if one["name"] == each.dataset
        ],
        detectors=detector_grids(results),
        detectors_legend=detector_legend(results) if results else "",
        settings=provenance.settings_of_stages(rows, index),
        corpora=provenance.corpora(index),
        origins=[provenance.origins(all_rows, index), provenance.runs(rows, index)],
        warnings=provenance.warnings(index),
        models=len(rows),
        masked=sum(row["technique"] is not None for row in rows),
        date=min((report["started"][:10] for report in index.reports.values()), default=""),
        commits=list(dict.fromkeys(each[:8] for each in provenance.commits(index))),
    )


def _data_set(table: Table, index: ReportIndex, all_rows: Sequence[Row], scores: str | Path | None) -> dict[str, Any]:
    """The tables of a data set, and the numbers in its sections' text."""
    quality = _quality(table)
    placed = [each.name for each in measures_of(PAGE) if each.step not in (*LEAKAGE, "fluency") and each != quality]
    spoken = table.recogniser_alone
    heard = next((row for rows in spoken.by_technique.values() for row in rows), None) if spoken else None
    tried = by_dataset(index.reports.values()).get(table.dataset, [])
    mine = [row for row in all_rows if row["dataset"] == table.dataset]
    return {
        "name": table.dataset,
        "table": table,
        "quality": measure_grid(table, quality),
        "measured": max(table.rows, key=lambda row: row["sentences"]),
        "unknown": max((row["oov_rate"] or 0.0 for row in table.rows), default=0.0),
        "protocols": list(dict.fromkeys(name for row in table.rows for name in row.get("protocol_differs", []))),
        "seeds": any(
            len({row["seed"] for row in rows}) > 1 for line in table.lines for rows in line.by_technique.values()
        ),
        "leaks": leakage_grid(table),
        "attacked": attacked(table),
        "reads": fluency_grid(table),
        "examples": examples_of(table.dataset, index),
        "heard": heard,
        "lists": lists_note(table),
        "wer": measure_grid(table, measure("wer")),
        "further": _not_empty(
            table, (name for name in dict.fromkeys([*placed, *_RATIOS]) if name not in ("wer", *_RATES))
        ),
        "fills": fill_grid(table),
        "spoken": [*_not_empty(table, _RATES), systems_grid(table)] if heard else [],
        "forgotten": forgetting_grid(tried) if tried else None,
        "forgotten_legend": forgetting_legend(tried[0]) if tried else "",
        "claims": plain_grid(
            "Claims",
            ["Claim", *(Heading(name, words=True) for name in ("Here", "Evidence"))],
            [
                (each.claim, each.verdict, each.evidence)
                for each in findings(Experiment(mine, scores, EvaluationSettings()))
            ],
            caption_unseen=True,
        ),
    }


def _not_empty(table: Table, names: Iterable[str]) -> list[Grid]:
    """The tables of the measures that have numbers."""
    return [grid for grid in (measure_grid(table, measure(name)) for name in names) if not grid.is_empty]


def _quality(table: Table) -> Measure:
    """Perplexity over in-vocabulary words, if evaluation had it."""
    known = any(row["perplexity_known"] is not None for row in table.rows)
    return measure("perplexity_known" if known else "perplexity")


def _answer(verdict: Verdict, table: Table, examples: Mapping[str, Sequence[Grid]]) -> dict[str, Any]:
    """The box of a data set: its tables, a made-up sentence of the recommended technique, and the plot."""
    shown = examples.get(str(verdict.cell.technique), [])
    example = replace(shown[0], caption="A made-up sentence on its way") if shown else None
    return {
        "verdict": verdict,
        "readings": readings_grid(verdict),
        "figure": trade_off(table, verdict.cell),
        "example": example,
    }


def trade_off(table: Table, recommended: Cell) -> str:
    """The plot of quality against leakage with the recommended cell marked; empty if no attack has its figure."""
    leak, points = _trade_off(table, recommended)
    if leak is None:
        return ""
    chances = (leak.chance(one.rows) for one in attacked(table))
    levels = {round(each.value, 6) for each in chances if each is not None}
    x = Axis(leak.title, leak.digits, chance=levels.pop() if len(levels) == 1 else None)
    return figure({"": points}, f"Quality against leakage of {table.dataset}", x, Axis(_quality(table).title))


def _trade_off(table: Table, cell: Cell) -> tuple[Measure | None, list[Point]]:
    """The attack that most attacked cells have, and a point for each; else unmasked identifiers of fills."""
    quality = _quality(table)
    fills = [one for one in table.conditions(by_line=True) if one.line.group in ("fill", "control")]
    for name in (*MEMBERSHIP, "reidentified", "unmasked_direct"):
        points = []
        for one in fills if name == "unmasked_direct" else attacked(table):
            leak, cost = measure(name).estimate(one.rows), quality.estimate(one.rows)
            if leak is not None and cost is not None:
                marked = (one.technique, one.line.method, one.line.filler) == (cell.technique, cell.method, cell.filler)
                label = one.label if one.technique else f"{one.label} (unmasked text)"
                points.append(Point(f"{label}: recommended" if marked else label, leak, cost, marked))
        if len(points) > 1 and any(point.marked for point in points):
            return measure(name), points
    return None, []
