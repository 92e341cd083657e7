"""The report page: one HTML file with everything in it, readable offline, light, dark and printed.

Examples for the page: made-up sentences as they were masked and filled, with what was changed marked.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dashboards import provenance
from dashboards.detectors import STAGE, detector_grids, detector_legend, detector_results
from dashboards.forgetting import forgetting_plots
from dashboards.headline import facts, sentences
from dashboards.page_tables import fill_grid, fluency_grid, masked_counts, masked_share_grid, paper_grid, speech_part
from dashboards.paper_results import CITATION
from dashboards.plots import (
    PAPER_SHAPES,
    comparison_plots,
    curve_plots,
    fluency_plots,
    frontier_plots,
    interval_plots,
    masked_share_plot,
)
from tasks.corpora.masked_text import MARKER_PATTERN
from tasks.language_model.settings import EvaluationSettings
from tasks.page_templates import page_environment
from tasks.results.choice import leaders
from tasks.results.findings.findings_claims import Finding, findings
from tasks.results.findings.findings_comparison import Experiment
from tasks.results.forgetting import by_dataset, forgetting_grid, forgetting_legend
from tasks.results.grid import Entry, Grid, GridRow, Heading, html, plain_grid
from tasks.results.leakage import attacked, leak_grid
from tasks.results.measure import PAGE
from tasks.results.measures import LEAKAGE, measure, measures_of
from tasks.results.report_index import ReportIndex
from tasks.results.tables import Table, class_grids, measure_grid, tables
from tasks.results.titles import cell_label, technique_name
from tasks.results.verdict import Verdict

EXAMPLES = "examples"
Piece = tuple[str, bool]
"""A piece of a sentence, and whether masking or filling wrote it."""


def examples_of(dataset: str, index: ReportIndex) -> list[tuple[str, list[Grid]]]:
    """The examples of a dataset by technique: a table for every sentence, raw, masked, and filled by every method.

    Fills of all fillers stand below each other, controls last. Empty where none were made.
    """
    reports = [
        report
        for report in index.reports.values()
        if report["stage"] == EXAMPLES and report["cell"]["dataset"] == dataset
    ]
    # Fillers of all techniques before those that are tuned on the text of one.
    reports.sort(key=lambda report: report["cell"]["technique"] is not None)
    raw: dict[str, list[str]] = {}
    entries: dict[str, list[Mapping[str, Any]]] = {}
    for report in reports:
        for entry in report["measured"]["by_technique"]:
            raw.setdefault(entry["technique"], report["measured"]["raw"])
            entries.setdefault(entry["technique"], []).append(entry)
    return [
        (
            technique_name(technique),
            [
                _sentence(place, text, technique_name(technique), entries[technique], several=len(reports) > 1)
                for place, text in enumerate(texts)
            ],
        )
        for technique, texts in raw.items()
    ]


def _sentence(place: int, raw: str, technique: str, entries: Sequence[Mapping[str, Any]], *, several: bool) -> Grid:
    """One sentence on its way; a control is the same beside every filler, and stands there once."""
    forms: dict[str, list[Piece]] = {"raw": [(raw, False)], "masked": _markers(entries[0]["masked"][place])}
    controls: dict[str, list[Piece]] = {}
    for entry in entries:
        for fill in entry["filled"]:
            pieces = filled_pieces(entry["masked"][place], fill["lines"][place])
            kind = controls if fill["filler"] is None else forms
            kind.setdefault(cell_label(fill["method"], fill["filler"] if several else None), pieces)
    rows = [GridRow(label, [Entry(_marked(pieces))]) for label, pieces in {**forms, **controls}.items()]
    return Grid(
        f"Sentence {place + 1} raw, masked by {technique}, and filled by each method",
        [Heading(""), Heading("", words=True)],
        rows,
        "plain examples",
        f"Example {place + 1}, {technique}",
        caption_unseen=True,
    )


def _marked(pieces: Sequence[Piece]) -> Markup:
    return Markup("").join(Markup("<mark>{}</mark>").format(text) if marked else text for text, marked in pieces)


def _markers(line: str) -> list[Piece]:
    pieces: list[Piece] = []
    position = 0
    for match in MARKER_PATTERN.finditer(line):
        pieces += [(line[position : match.start()], False), (match.group(), True)]
        position = match.end()
    return [piece for piece in [*pieces, (line[position:], False)] if piece[0]]


def filled_pieces(masked: str, filled: str) -> list[Piece]:
    """A filled line with the words that stand in the place of markers marked."""
    before, after = (re.findall(r"\[\w+(?::\w+)?\]|\w+|\W", line) for line in (masked, filled))
    pieces: list[Piece] = []
    for kind, _, _, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if text := "".join(after[start:end]):
            pieces.append((text, kind != "equal"))
    return pieces


_FOLDER = Path(__file__).parent
_PLACED = ("perplexity", "perplexity_known", "perplexity_masked_known", "perplexity_rest_known", "wer", "wer_masked")
"""Measures that have a place of their own in the text of the page; all others stand together."""


def report_page(
    all_rows: Sequence[Mapping[str, Any]],
    index: ReportIndex,
    verdicts: Sequence[Verdict],
    scores: str | Path | None = None,
) -> str:
    """The page for the rows of a summary and the reports that they were made from.

    ``scores``: the folder of the per-sentence scores, by which the paper's claims are judged.
    """
    index = index.of_datasets({row["dataset"] for row in all_rows})
    environment = page_environment(_FOLDER)
    # The panels escape their texts themselves.
    environment.filters["drawing"] = Markup
    environment.filters["table"] = html
    found = tables(all_rows)
    # The recogniser alone has word error rates and nothing else.
    rows = [row for row in all_rows if row["perplexity"] is not None]
    reports = list(index.reports.values())
    detectors = detector_results(reports) if any(report["stage"] == STAGE for report in reports) else []
    return environment.get_template("report_page.html").render(
        style=Markup((_FOLDER / "report_page.css").read_text(encoding="utf-8")),
        datasets=[_dataset(table, rows, index, verdicts, scores) for table in found],
        paper=paper_grid(found),
        paper_shapes=PAPER_SHAPES,
        citation=CITATION,
        names=" and ".join(table.dataset for table in found),
        detectors=detector_grids(detectors),
        detector_legend=detector_legend(detectors) if detectors else "",
        masked_shares=masked_share_grid(found),
        sources=provenance.sources(index),
        corpora=provenance.corpora(index),
        models=provenance.models(index),
        techniques=provenance.settings_of_stages(rows, index, "mask"),
        methods=provenance.settings_of_stages(rows, index, "fill"),
        origins=provenance.origins(all_rows, index),
        costs=provenance.costs(index),
        warnings=provenance.warnings(index),
        machines=provenance.machines(index),
        commits=provenance.commits(index),
        signatures=list(dict.fromkeys(row["signature"] for row in rows)),
        cells=len(all_rows),
        models_compared=len(rows),
    )


def _dataset(
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    index: ReportIndex,
    verdicts: Sequence[Verdict],
    scores: str | Path | None,
) -> dict[str, Any]:
    """Everything that the page shows of one dataset."""
    mine = [row for row in rows if row["dataset"] == table.dataset]
    unknown = [row["oov_rate"] for row in mine if row["oov_rate"] is not None]
    text = f"{max(row['sentences'] for row in mine):,} sentences, {max(row['words'] for row in mine):,} words"
    name = f"Perplexity on {table.dataset}"
    tried = by_dataset(index.reports.values()).get(table.dataset, [])
    perplexity, known = measure("perplexity"), measure("perplexity_known")
    further = [
        each for each in measures_of(PAGE) if each.name not in _PLACED and each.step not in (*LEAKAGE, "fluency")
    ]
    experiment = Experiment(mine, scores, EvaluationSettings())
    best, best_known = (leaders(experiment, table.dataset, known=known) for known in (False, True))
    verdict = next((each for each in verdicts if each.dataset == table.dataset), None)
    return {
        "name": table.dataset,
        "anchor": f"dataset-{table.dataset}",
        "verdict": verdict,
        "readings": _readings(verdict) if verdict is not None else None,
        "facts": facts(table),
        "sentences": sentences(table),
        "all_words": measure_grid(
            table,
            perplexity,
            PAGE,
            f"Perplexity on the unmasked test text of {table.dataset}, all words: {text}",
            best,
        ),
        "known_words": measure_grid(table, known, PAGE, f"{name} over in-vocabulary words", best_known),
        # Whether evaluation told the words apart that a technique masks.
        "told_apart": any(row.get("masked_words") for row in mine),
        "masked_words": measure_grid(
            table,
            measure("perplexity_masked_known"),
            PAGE,
            f"{name} over the known words that the technique would mask",
        ),
        "rest_words": measure_grid(
            table, measure("perplexity_rest_known"), PAGE, f"{name} over all other known words and sentence ends"
        ),
        "masked_counts": masked_counts(table),
        "frequencies": [
            (
                technique_name(technique),
                replace(
                    grid,
                    caption=f"{name} by frequency of the word, {technique_name(technique)}",
                    label=f"Perplexity by frequency, {technique_name(technique)}",
                ),
            )
            for technique, grid in class_grids(table, "Method")
        ],
        "further": [
            (each, grid, interval_plots(table, each))
            for each in further
            if not (grid := measure_grid(table, each, PAGE)).is_empty
        ],
        "other_protocols": list(dict.fromkeys(name for row in mine for name in row.get("protocol_differs", []))),
        "interval_plots": interval_plots(table, perplexity, "perplexity, all words"),
        "known_plots": interval_plots(table, known, "perplexity, known words"),
        "speech": speech_part(table, index),
        "comparison_plots": comparison_plots(table),
        "masked_share_plot": masked_share_plot(table),
        "frontier_plots": frontier_plots(table),
        "leaks": leak_grid(table, PAGE),
        "attacked": list({line.label: line for _, line, _ in attacked(table)}.values()),
        "fills": fill_grid(table),
        "reads": fluency_grid(table),
        "fluency_plots": fluency_plots(table),
        "forgotten": [(forgetting_grid(tried), forgetting_legend(tried[0]), forgetting_plots(tried))] if tried else [],
        "filled": [line for line in table.lines if line.group in ("fill", "control")],
        "examples": examples_of(table.dataset, index),
        "valid_curves": curve_plots(table, index.reports, "valid_loss", "step; loss in nats on unmasked text"),
        "train_curves": curve_plots(table, index.reports, "train_loss", "step; loss in nats on own text"),
        "looks": table.lines,
        "claims": _claims(findings(experiment)),
        "oov_rate": f"{max(unknown):.1%}" if unknown else None,
        "seeds": len({row["seed"] for row in mine if row["seed"] is not None}),
    }


def _readings(verdict: Verdict) -> Grid:
    """The leakage of the recommended cell."""
    return plain_grid(
        f"Leakage of {verdict.cell.path}",
        ["Attack", "Result", "Chance level", Heading("Reading", words=True)],
        [(each.attack, each.result, each.chance, each.reading) for each in verdict.leakage],
        kind="plain readings",
        caption_unseen=True,
    )


def _claims(verdicts: Sequence[Finding]) -> Grid:
    """The eight claims of the paper, in its order."""
    verdict = Markup('<span class="verdict {}">{}</span>')
    rows = [
        (each.claim, verdict.format(each.verdict.replace(" ", "-"), each.verdict), each.evidence) for each in verdicts
    ]
    return plain_grid(
        "The paper’s claims and what this experiment says of them",
        ["Claim", "Here", Heading("Evidence", words=True)],
        rows,
        kind="claims",
        label="Claims of the paper",
        caption_unseen=True,
    )
