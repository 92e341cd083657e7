"""The report page: one HTML file with everything in it, readable offline, light, dark and printed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dashboards import provenance
from dashboards.comparison_plot import PAPER_SHAPES, comparison_plots
from dashboards.curve_plot import curve_plots
from dashboards.detector_results import STAGE, detector_results
from dashboards.detector_tables import detector_legend, detector_sections
from dashboards.examples import examples_of
from dashboards.headline import facts, sentences
from dashboards.interval_plot import interval_plots
from dashboards.paper_claims import verdicts
from dashboards.paper_results import CITATION
from dashboards.result_tables import (
    fill_rows,
    frequency_tables,
    masked_counts,
    masked_share_rows,
    masked_share_techniques,
    number_rows,
    paper_table,
)
from dashboards.series import series_of
from dashboards.speech_tables import speech_part
from dashboards.trade_off_plot import leakage_plots, masked_share_plot
from tasks.page_templates import page_environment
from tasks.results.report_index import ReportIndex
from tasks.results.summary.summary_table import Table, method_name, tables, technique_name

_FOLDER = Path(__file__).parent


def report_page(all_rows: Sequence[Mapping[str, Any]], index: ReportIndex, scores: str | Path | None = None) -> str:
    """The page for the rows of a summary and the reports that they were made from.

    ``scores``: the folder of the per-sentence scores, by which the paper's claims are judged.
    """
    from markupsafe import Markup

    environment = page_environment(_FOLDER)
    # The panels escape their texts themselves.
    environment.filters["drawing"] = Markup
    environment.filters["method_name"] = method_name
    found = tables(all_rows)
    # The recogniser alone has word error rates and nothing else.
    rows = [row for row in all_rows if row["perplexity"] is not None]
    reports = list(index.reports.values())
    detectors = detector_results(reports) if any(report["stage"] == STAGE for report in reports) else []
    signatures = list(dict.fromkeys(row["signature"] for row in rows))
    return environment.get_template("report_page.html").render(
        style=Markup((_FOLDER / "report_page.css").read_text(encoding="utf-8")),
        datasets=[_dataset(table, rows, index, scores) for table in found],
        paper=paper_table(found),
        paper_shapes=PAPER_SHAPES,
        citation=CITATION,
        detectors=detector_sections(detectors),
        detector_legend=detector_legend(detectors) if detectors else "",
        masked_techniques=masked_share_techniques(found),
        masked_rows=masked_share_rows(found),
        corpora=provenance.corpora(index),
        models=provenance.models(index),
        techniques=provenance.settings_of_stages(rows, index, "mask"),
        methods=provenance.settings_of_stages(rows, index, "fill"),
        origins=provenance.origins(all_rows, index),
        costs=provenance.costs(index),
        warnings=provenance.warnings(index),
        machines=provenance.machines(index),
        commits=provenance.commits(index),
        between=provenance.measured_between(index),
        signatures=signatures,
        cells=len(all_rows),
        models_compared=len(rows),
    )


def _dataset(
    table: Table, rows: Sequence[Mapping[str, Any]], index: ReportIndex, scores: str | Path | None
) -> dict[str, Any]:
    """Everything that the page shows of one dataset."""
    mine = [row for row in rows if row["dataset"] == table.dataset]
    unknown = [row["oov_rate"] for row in mine if row["oov_rate"] is not None]
    return {
        "name": table.dataset,
        "anchor": f"dataset-{table.dataset}",
        "techniques": [(technique_name(name), table.masked_fraction(name)) for name in table.techniques],
        "facts": facts(table),
        "sentences": sentences(table),
        "all_words": number_rows(table, "perplexity"),
        "known_words": number_rows(table, "perplexity_known"),
        "masked_words": number_rows(table, "perplexity_masked_known", spanning=False) if _told_apart(mine) else [],
        "rest_words": number_rows(table, "perplexity_rest_known", spanning=False) if _told_apart(mine) else [],
        "masked_counts": masked_counts(table),
        "frequency_tables": frequency_tables(table),
        "other_protocols": list(dict.fromkeys(name for row in mine for name in row.get("protocol_differs", []))),
        "interval_plots": interval_plots(table, "perplexity", "perplexity, all words"),
        "known_plots": interval_plots(table, "perplexity_known", "perplexity, known words"),
        "speech": speech_part(table, index),
        "comparison_plots": comparison_plots(table),
        "masked_share_plot": masked_share_plot(table),
        "leakage_plots": leakage_plots(table),
        "fills": fill_rows(table),
        "examples": examples_of(table.dataset, index),
        "valid_curves": curve_plots(table, index.reports, "valid_loss", "step; loss in nats on unmasked text"),
        "train_curves": curve_plots(table, index.reports, "train_loss", "step; loss in nats on own text"),
        "looks": list(series_of(table.lines).values()),
        "claims": verdicts(mine, scores),
        "oov_rate": f"{max(unknown):.1%}" if unknown else None,
        "words": f"{max(row['words'] for row in mine):,}",
        "sentences_count": f"{max(row['sentences'] for row in mine):,}",
        "seeds": len({row["seed"] for row in mine if row["seed"] is not None}),
    }


def _told_apart(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether evaluation told the words apart that a technique masks."""
    return any(row.get("masked_words") for row in rows)
