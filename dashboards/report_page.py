"""The report page: one self-contained HTML file, readable offline, light, dark and printed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from dashboards import provenance
from dashboards.detectors import STAGE, detector_grids, detector_legend, detector_results
from dashboards.page_tables import examples_of, fill_grid, fluency_grid, leakage_grid, readings_grid, systems_grid
from dashboards.plots import Axis, Point, figure
from tasks.language_model.settings import EvaluationSettings
from tasks.page_templates import page_environment
from tasks.results.findings.findings_claims import findings
from tasks.results.findings.findings_comparison import Experiment
from tasks.results.forgetting import by_dataset, forgetting_grid, forgetting_legend
from tasks.results.grid import Grid, Heading, plain_grid
from tasks.results.leakage import attacked
from tasks.results.measure import PAGE, Measure, Row
from tasks.results.measures import LEAKAGE, measure, measures_of
from tasks.results.readings import MEMBERSHIP
from tasks.results.report_index import ReportIndex
from tasks.results.summary.summary_document import lists_note
from tasks.results.tables import Table, measure_grid, tables
from tasks.results.verdict import Verdict

_FOLDER = Path(__file__).parent
_RATIOS = ("ratio_to_oracle", "ratio_to_oracle_known", "ratio_to_baseline1", "ratio_to_baseline1_known")
_DIFFERENCES = tuple(f"wer_difference_to_{name}" for name in ("no_language_model", "pretrained", "oracle"))
_SPOKEN = ("wer", "wer_masked", *_DIFFERENCES)
_WITHOUT_CAPITALS = (
    "References of n-best lists are often written without capitals. A technique that tags names finds few of them "
    "there, and its rate is then one of few words."
)


@dataclass(frozen=True, slots=True)
class Part:
    """A section of the page, or a folded part of its details."""

    name: str
    """Anchor of the part in the page's address."""
    heading: str
    text: str = ""
    grids: Sequence[Grid] = ()
    legend: str = ""
    """One line on how to read the tables."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The box of a data set, and the text that explains it."""

    verdict: Verdict
    readings: Grid
    figure: str
    caption: str
    example: Grid | None
    """A made-up sentence, masked and filled by the recommended technique."""


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
    found = tables(all_rows)
    # The recogniser alone has word error rates and nothing else.
    rows = [row for row in all_rows if row["perplexity"] is not None]
    alone = len(found) == 1
    parts = [_named(part, table, alone) for table in found for part in _parts(table, index)]
    folded = [_named(part, table, alone) for table in found for part in _folded(table, index, rows, scores)]
    folded += [part for part in _of_all(all_rows, rows, index) if part.text or any(grid.rows for grid in part.grids)]
    names = " and ".join(table.dataset for table in found)
    links = [(f"#{part.name}", part.heading) for part in parts]
    if not alone:
        links = [(f"#{_place('quality', table, alone)}", table.dataset) for table in found]
    return environment.get_template("report_page.html").render(
        style=Markup((_FOLDER / "report_page.css").read_text(encoding="utf-8")),
        names=names,
        answers=[_answer(each, found, index) for each in verdicts],
        links=[("#answer", "Answer"), *links, ("#details", "Details")],
        parts=parts,
        folded=folded,
        models=len(rows),
        masked=sum(row["technique"] is not None for row in rows),
        date=min((report["started"][:10] for report in index.reports.values()), default=""),
        commits=list(dict.fromkeys(each[:8] for each in provenance.commits(index))),
        warnings=len(provenance.warnings(index).rows),
    )


def _place(name: str, table: Table, alone: bool) -> str:
    return name if alone else f"{name}-{table.dataset}"


def _named(part: Part, table: Table, alone: bool) -> Part:
    """A part with the data set in its heading, if there are several."""
    heading = part.heading if alone else f"{part.heading}: {table.dataset}"
    return replace(part, name=_place(part.name, table, alone), heading=heading)


def _quality(table: Table) -> Measure:
    """Perplexity over in-vocabulary words, if evaluation had it."""
    known = any(row["perplexity_known"] is not None for row in table.rows)
    return measure("perplexity_known" if known else "perplexity")


def _answer(verdict: Verdict, found: Sequence[Table], index: ReportIndex) -> _Answer:
    table = next(each for each in found if each.dataset == verdict.dataset)
    leak, points = _trade_off(table, verdict)
    chance = {leak.chance(one.rows) for one in attacked(table)} if leak else set()
    levels = {round(each.value, 6) for each in chance if each is not None}
    quality = _quality(table)
    drawing = caption = ""
    if leak is not None:
        x = Axis(leak.title, leak.digits, chance=levels.pop() if len(levels) == 1 else None)
        drawing = figure({"": points}, f"Quality against leakage of {table.dataset}", x, Axis(quality.title))
        caption = (
            f"Quality against leakage of {table.dataset}. Further down, the language model is better; further left, "
            "less leaks. Bars are 95 % intervals, or the range over seeds."
        )
    examples = examples_of(verdict.dataset, index).get(str(verdict.cell.technique), [])
    example = replace(examples[0], caption="A made-up sentence on its way") if examples else None
    return _Answer(verdict, readings_grid(verdict), drawing, caption, example)


def _trade_off(table: Table, verdict: Verdict) -> tuple[Measure | None, list[Point]]:
    """The attack that most attacked cells have, and a point for each; else unmasked identifiers of fills."""
    quality, cell = _quality(table), verdict.cell
    for name in (*MEMBERSHIP, "reidentified", "unmasked_direct"):
        cells = attacked(table)
        if name == "unmasked_direct":
            cells = [one for one in table.conditions(by_line=True) if one.line.group in ("fill", "control")]
        points = []
        for one in cells:
            leak, cost = measure(name).estimate(one.rows), quality.estimate(one.rows)
            if leak is not None and cost is not None:
                marked = (one.technique, one.line.method, one.line.filler) == (cell.technique, cell.method, cell.filler)
                label = one.label if one.technique else f"{one.label} (unmasked text)"
                points.append(Point(f"{label}: recommended" if marked else label, leak, cost, marked))
        if len(points) > 1 and any(point.marked for point in points):
            return measure(name), points
    return None, []


def _parts(table: Table, index: ReportIndex) -> Iterator[Part]:
    """Quality, leakage, fluency of fills, and speech."""
    quality = _quality(table)
    row = max(table.rows, key=lambda row: row["sentences"])
    unknown = max((row["oov_rate"] or 0.0 for row in table.rows), default=0.0)
    others = list(dict.fromkeys(name for row in table.rows for name in row.get("protocol_differs", [])))
    text = (
        f"Perplexity on unmasked test text ({row['sentences']:,} sentences, {row['words']:,} words): lower is better. "
        "Oracle is trained on the unmasked text and is the best that can be reached. Pretrained is not trained on "
        "this text at all. Baselines are trained on the masked text, without filling. All others are fills, and a "
        "control fills without looking at the context."
    )
    if unknown:
        text += f" {unknown:.1%} of the test words are out of vocabulary."
    legend = "▼ lower, ▲ higher than Baseline1 of the same column by a paired 95 % interval. Small: 95 % interval."
    if any(len({row["seed"] for row in rows}) > 1 for line in table.lines for rows in line.by_technique.values()):
        legend += " ±: standard deviation over seeds."
    if others:
        legend += f" ‡ another protocol than Oracle’s ({', '.join(others)}): does not compare."
    yield Part("quality", "Quality", text, [measure_grid(table, quality)], legend)
    leaks = leakage_grid(table)
    text = (
        "Attacks on the text and on the language model that was trained on it. Chance is the result of the same "
        "attack where there is nothing to find. A stronger attacker finds more."
    )
    if not attacked(table):
        text = "Nothing was attacked: audited in an entry of compare.fills names the fills to attack."
    legend = "▲ above chance by the 95 % interval. Small: 95 % interval and chance level."
    yield Part("leakage", "Leakage", text, [leaks], legend if leaks.rows else "")
    reads, examples = fluency_grid(table), examples_of(table.dataset, index)
    if reads.rows or examples:
        yield Part(
            "fills",
            "How fills read",
            Markup('<a href="#examples">Examples</a> are made-up sentences, masked and filled by each method.')
            if examples
            else "",
            [reads] if reads.rows else [],
            "Small: 95 % interval. Perplexity is relative to that of the private text." if reads.rows else "",
        )
    if table.recogniser_alone is not None:
        yield _speech(table)


def _speech(table: Table) -> Part:
    assert table.recogniser_alone is not None
    first = next(row for rows in table.recogniser_alone.by_technique.values() for row in rows)
    lists = lists_note(table)
    how = (
        "choosing among n-best lists of another recogniser" if lists else "with each language model in its beam search"
    )
    return Part(
        "speech",
        "Speech recognition",
        f"Word error rate of one recogniser on {table.kind_of_speech}, {how}: {first['utterances']:,} utterances "
        f"({first['reference_words']:,} words), lower is better. Weights were chosen on other utterances.{lists}",
        [measure_grid(table, measure("wer"))],
        "▼ fewer, ▲ more errors than with the pretrained model by a paired 95 % interval. Small: 95 % interval.",
    )


def _folded(table: Table, index: ReportIndex, all_rows: Sequence[Row], scores: str | Path | None) -> Iterator[Part]:
    """The folded parts of a data set."""
    examples = examples_of(table.dataset, index)
    if examples:
        text = "Made-up sentences, not of any corpus, masked and filled as the private text was."
        yield Part("examples", "Examples", text, [grid for grids in examples.values() for grid in grids])
    shown = _quality(table).name
    placed = [each for each in measures_of(PAGE) if each.step not in (*LEAKAGE, "fluency") and each.name != shown]
    names = dict.fromkeys([*(each.name for each in placed), *_RATIOS])
    further = (measure_grid(table, measure(name)) for name in names if name not in _SPOKEN)
    text = "Ratios are to Oracle, which is trained on the unmasked text, or to Baseline1 of the same masking method."
    legend = "▼ below, ▲ above Baseline1 by a paired 95 % interval. Small: 95 % interval."
    yield Part("more-quality", "Further measures of quality", text, _not_empty(further), legend)
    fills = fill_grid(table)
    if fills.rows:
        text = "Exact matches: fills that happen to be the masked word, and the same by drawing words by frequency."
        yield Part("fills-in-numbers", "Fills in numbers", text, [fills])
    if table.recogniser_alone is not None:
        rates = _not_empty(measure_grid(table, measure(name)) for name in _SPOKEN[1:])
        lists = bool(lists_note(table))
        yield Part(
            "systems", "Speech in numbers", _WITHOUT_CAPITALS if lists else "", [*rates, systems_grid(table, index)]
        )
    tried = by_dataset(index.reports.values()).get(table.dataset, [])
    if tried:
        yield Part("forgotten", "Unlearning", grids=[forgetting_grid(tried)], legend=forgetting_legend(tried[0]))
    mine = [row for row in all_rows if row["dataset"] == table.dataset]
    claims = findings(Experiment(mine, scores, EvaluationSettings()))
    if claims:
        rows = [(each.claim, each.verdict, each.evidence) for each in claims]
        headings = ["Claim", *(Heading(name, words=True) for name in ("Here", "Evidence"))]
        text = (
            "Claims of Vats et al. (2023), Recovering from Privacy-Preserving Masking with Large Language Models, that "
            "this run tests. Its corpora and models are others."
        )
        yield Part("claims", "Claims of the paper", text, [plain_grid("Claims", headings, rows, caption_unseen=True)])


def _not_empty(grids: Iterable[Grid]) -> list[Grid]:
    return [grid for grid in grids if not grid.is_empty]


def _of_all(all_rows: Sequence[Row], rows: Sequence[Row], index: ReportIndex) -> Iterator[Part]:
    """The folded parts of the whole experiment."""
    evaluated = [each for each in index.reports.values() if each["stage"] == STAGE]
    if evaluated:
        results = detector_results(evaluated)
        text = "How well each technique finds the words that a person labelled as private."
        yield Part(
            "detectors", "Masking methods on labelled text", text, detector_grids(results), detector_legend(results)
        )
    settings = [provenance.settings_of_stages(rows, index, stage) for stage in ("mask", "fill")]
    yield Part("compared", "Compared methods and their settings", grids=settings)
    yield Part("corpora", "Text and models", grids=[provenance.corpora(index), provenance.models(index)])
    text = "palimpsest where-from CELL lists everything that led to a number. MLflow has one run per cell, by its key."
    yield Part("origins", "How each number was made", text, [provenance.origins(all_rows, index)])
    yield Part(
        "costs", "Time, memory, machine and protocol", grids=[provenance.costs(index), provenance.runs(rows, index)]
    )
    warnings = provenance.warnings(index)
    yield Part("warnings", f"Warnings ({len(warnings.rows)})", grids=[warnings])
