"""The page's tables that are not of one measure: fills, masked words, speech, and the paper's numbers beside ours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dashboards.paper_results import DATASETS, MASKED_SHARES, RESULTS, TECHNIQUES, printed
from dashboards.plots import Drawing, interval_plots
from tasks.records.cells import word_error_report
from tasks.results.grid import ABSENT, Entry, Grid, GridRow, Heading, plain_grid, words
from tasks.results.measure import OTHER_PROTOCOL, PAGE, Measure, Row, follows_protocol
from tasks.results.measures import measure, measures
from tasks.results.report_index import ReportIndex
from tasks.results.summary.estimate import Estimate, estimate
from tasks.results.summary.summary_document import lists_note
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tables import SIGNS, Line, Table, judgement, measure_grid, number_entry
from tasks.results.titles import method_name, technique_name

WITHOUT_CAPITALS = (
    "References of n-best lists are often written without capitals, and there a technique that tags names finds few of "
    "them: its rate is then one of few words, and not of the names that were said."
)
"""What a reader must know of the rates on masked words where they come from n-best lists."""
_SHORT_NAMES = {"allow_list": "allow", "vocabulary_threshold": "thresh.", "entity_tagger": "entity"}


def masked_counts(table: Table) -> list[tuple[str, str, str, str]]:
    """Of each technique: its name, how many test words it would mask, their share, and how many of them are unknown."""
    return [
        (technique_name(technique), f"{each['words']:,}", f"{each['share']:.1%}", f"{each['unknown_words']:,}")
        for technique, _, each in _records(table, "masked_words")
    ]


def _records(table: Table, column: str) -> Iterator[tuple[str, Row, Mapping[str, Any]]]:
    """Of each technique the first row that has a record of it in a column, and the record."""
    for technique in table.techniques:
        rows = [row for line in table.lines for row in line.by_technique[technique]]
        row = next((row for row in rows if technique in (row.get(column) or {})), None)
        if row is not None:
            yield technique, row, row[column][technique]


def fill_grid(table: Table) -> Grid:
    """Per technique and method: markers, different fills, fills against the rule, masked words hit by coincidence."""
    fields = ("markers", "distinct_fills", "fallback_count", "restoration_rate", "restoration_by_frequency")
    rows = []
    for technique in table.techniques:
        for line in table.lines:
            found = [estimate(line.by_technique[technique], name) for name in fields]
            if line.group not in ("fill", "control") or found[0] is None:
                continue
            texts = [
                _text(number, ".2%" if name.startswith("restoration") else ",.0f")
                for name, number in zip(fields, found, strict=True)
            ]
            rows.append([technique_name(technique), line.label, *texts])
    counts = ("Markers", "Different fills", "Against the off-list rule", "Coincidence", "Guess by frequency")
    headings = ["Technique", *words("Method"), *counts]
    return plain_grid("What was filled, by technique and method", headings, rows, label="Fills in numbers")


def fluency_grid(table: Table) -> Grid:
    """How well each fill reads, with intervals; empty where that was not measured."""
    shown = [each for each in measures() if each.step == "fluency" and not each.name.endswith("_before")]
    rows = []
    for technique in table.techniques:
        for line in table.lines:
            found = [each.estimate(line.by_technique[technique]) for each in shown]
            if any(found):
                entries = [number_entry(number, each.digits) for number, each in zip(found, shown, strict=True)]
                rows.append(GridRow(technique_name(technique), [Entry(line.label), *entries]))
    headings = [Heading("Technique"), *words("Method"), *(Heading(each.title) for each in shown)]
    return Grid("How well fills read", headings, rows, label="How well fills read")


def _text(number: Estimate | None, form: str) -> str:
    return format(number.value, form) if number else ABSENT


def masked_share_grid(tables: Sequence[Table]) -> Grid:
    """The share of words that each technique masked in our corpora, and in the paper's."""
    techniques = list(dict.fromkeys([*(name for table in tables for name in table.techniques), *TECHNIQUES]))
    rows = []
    for table in tables:
        shares = [table.masked_note(name, "{}") if name in table.techniques else "" for name in techniques]
        entries = [Entry(share) for share in shares]
        rows.append(GridRow(table.dataset, entries, "ours", tag="here"))
    for corpus, numbers in MASKED_SHARES.items():
        by_name = dict(zip(TECHNIQUES, numbers, strict=True))
        rows.append(GridRow(corpus, [Entry(f"{by_name[name]}%" if name in by_name else "") for name in techniques]))
    caption = "Share of words masked, here and in the paper’s Table 2"
    headings = [Heading("Corpus"), *(Heading(technique_name(name)) for name in techniques)]
    return Grid(caption, headings, rows, label="Share of words masked")


def paper_grid(tables: Sequence[Table]) -> Grid:
    """Tables 3 to 6 with our datasets in front; a row per method and filler, the same methods below each other."""
    perplexity, wer = measure("perplexity"), measure("wer")
    spoken = [table for table in tables if table.recogniser_alone is not None]
    groups = [(Heading(table.dataset, "perplexity, here"), table.techniques) for table in tables]
    for table in spoken:
        what = f"word error rate in %, here, {table.kind_of_speech}"
        groups.append((Heading(f"{table.dataset} speech", what), table.techniques))
    groups += [(Heading(name, what), list(TECHNIQUES)) for name, what in DATASETS.items()]
    headings = [
        Heading(technique_name(name), edge=place == 0, short=_SHORT_NAMES.get(name, technique_name(name)))
        for _, techniques in groups
        for place, name in enumerate(techniques)
    ]
    ours = {_paper_name(line): line for table in tables for line in table.all_lines}
    rows = []
    for name in sorted([*RESULTS, *(name for name in ours if name not in RESULTS)], key=_order):
        cells = [_our_cells(_line(table, name), table, perplexity) for table in tables]
        cells += [_our_cells(_line(table, name), table, wer) for table in spoken]
        cells += [_paper_cells(name, dataset) for dataset in DATASETS]
        entries = [replace(cell, edge=place == 0) for group in cells for place, cell in enumerate(group)]
        rows.append(GridRow(name, entries, "" if name in RESULTS else "ours"))
    return Grid(
        "Perplexities and word error rates of the paper, beside ours",
        [Heading("Method"), *headings],
        rows,
        "plain paper",
        "The paper’s tables beside ours",
        caption_unseen=True,
        groups=[(heading, len(techniques)) for heading, techniques in groups],
    )


def _paper_name(line: Line) -> str:
    return method_name(line.method) + (f", {line.filler}" if line.filler else "")


def _order(name: str) -> tuple[int, str, str]:
    """References, baselines, Top-1, Top-K, fine-tuned ones, then what the paper does not have."""
    method, _, filler = name.partition(", ")
    known = list(dict.fromkeys(printed_name.partition(", ")[0] for printed_name in RESULTS))
    return (known.index(method) if method in known else len(known), method if method not in known else "", filler)


def _line(table: Table, name: str) -> Line | None:
    return next((line for line in table.all_lines if _paper_name(line) == name), None)


def _our_cells(line: Line | None, table: Table, measure: Measure) -> list[Entry]:
    if line is None:
        return [Entry("")] * len(table.techniques)
    if line.group == "reference":
        return [replace(_our_cell(line, table.techniques[0], measure), columns=len(table.techniques))]
    return [_our_cell(line, technique, measure) for technique in table.techniques]


def _our_cell(line: Line, technique: str, measure: Measure) -> Entry:
    rows, reference = line.by_technique[technique], measure.reference
    number = measure.estimate(rows)
    if number is None:
        return Entry("")
    shown = number_entry(number, measure.digits)
    if not follows_protocol(rows):
        return replace(shown, sign=OTHER_PROTOCOL)
    if reference is None or estimate(rows, reference.column) is None:
        return shown
    way = reference.way(rows)
    return replace(shown, sign=SIGNS[way], said=reference.said(way), sign_kind=judgement(measure, way))


def _paper_cells(name: str, dataset: str) -> list[Entry]:
    entry = RESULTS.get(name, {}).get(dataset)
    if isinstance(entry, str):
        return [Entry(entry, columns=len(TECHNIQUES))]
    return [Entry(printed(name, dataset, technique) or "") for technique in TECHNIQUES]


@dataclass(frozen=True)
class SpeechPart:
    """All that the page shows of a dataset's speech."""

    kind: str
    """``synthetic speech`` or ``recorded speech``."""
    lists: str
    """A sentence on what can be won by choosing among n-best lists; empty where language models join the beam."""
    utterances: str
    words: str
    rates: Grid
    masked_rates: Grid | None
    masked_counts: list[tuple[str, str, str]]
    """Of each technique: its name, how many words of the references it would mask, and their share."""
    without_capitals: str
    """A sentence on references that hide names from a tagger; empty where they are ours."""
    plots: list[Drawing]
    systems: Grid
    grids: list[Grid]
    """What was tried on dev for each system: the word error rate of each pair of weights, in per cent."""


def speech_part(table: Table, index: ReportIndex) -> SpeechPart | None:
    """``None`` where the dataset has no speech."""
    alone = table.recogniser_alone
    if alone is None:
        return None
    rows = [row for found in alone.by_technique.values() for row in found]
    wer, wer_masked = measure("wer"), measure("wer_masked")
    about = f"Word error rate on {table.dataset} in per cent"
    of_masked = f"{about} on words that the technique would mask, {table.kind_of_speech}"
    masked = measure_grid(table, wer_masked, PAGE, of_masked)
    return SpeechPart(
        kind=table.kind_of_speech,
        lists=lists_note(table),
        utterances=f"{rows[0]['utterances']:,}",
        words=f"{rows[0]['reference_words']:,}",
        rates=measure_grid(table, wer, PAGE, f"{about}, {table.kind_of_speech}"),
        masked_rates=None if masked.is_empty else masked,
        masked_counts=[
            (technique_name(technique), f"{each['words']:,}", f"{each['words'] / row['reference_words']:.1%}")
            for technique, row, each in _records(table, "masked_word_errors")
        ],
        without_capitals=WITHOUT_CAPITALS if of_lists(rows) else "",
        plots=interval_plots(table, wer, "word error rate in per cent"),
        systems=_systems(table, index),
        grids=list(_dev_grids(table, index)),
    )


def of_lists(rows: Sequence[Row]) -> bool:
    """Whether word error rates come from n-best lists of another recogniser."""
    return any(row.get("wer_best_of_lists") is not None for row in rows)


def _each_system(
    table: Table, index: ReportIndex
) -> Iterator[tuple[Line, str, Sequence[Row], list[Mapping[str, Any]]]]:
    """Every system once, with the name of its technique (references belong to none), its rows, and what the reports of
    its seeds measured."""
    for line in table.all_lines:
        for place, technique in enumerate(table.techniques):
            rows = line.by_technique[technique]
            if rows and (place == 0 or rows[0]["technique"] is not None):
                names = [word_error_report(summarised_cell(row)).with_suffix("").as_posix() for row in rows]
                measured = [index.reports[name]["measured"] for name in names if name in index.reports]
                yield line, technique_name(technique) if rows[0]["technique"] else "", rows, measured


def _systems(table: Table, index: ReportIndex) -> Grid:
    rows = []
    for line, technique, found, measured in _each_system(table, index):
        factors = [each["real_time_factor"] for each in measured if each.get("real_time_factor") is not None]
        texts = [_text(estimate(found, name), ",.0f") for name in ("insertions", "deletions", "substitutions")]
        texts.append(_text(measure("character_error_rate").estimate(found), ".1f"))
        texts += [_text(estimate(found, name), ".2f") for name in ("lm_weight", "insertion_bonus")]
        texts.append(f"{sum(factors) / len(factors):.3f}" if factors else ABSENT)
        rows.append(GridRow(line.label, [Entry(text) for text in (technique, *texts)], colour=line.colour))
    kinds = f"Errors by kind, characters, weights, and seconds of search per second of {table.kind_of_speech}"
    headings = ("Insertions", "Deletions", "Substitutions", "Character errors, %", "Weight", "Insertion bonus")
    heads = [Heading("Language model"), *words("Technique"), *map(Heading, headings)]
    return Grid(kinds, [*heads, Heading("Real-time factor")], rows, label="Systems in numbers")


def _dev_grids(table: Table, index: ReportIndex) -> Iterator[Grid]:
    """Of weights that language models share, else one for each system, of its first seed."""
    for name, label in (("adapted", "All adapted models, tuned with Oracle's"), ("pretrained", "Pretrained model")):
        if shared := index.reports.get(f"tune_fusion/{table.dataset}/{name}"):
            yield _dev_grid(label, shared["measured"]["dev"]["grid"], shared["measured"])
    for line, technique, _, measured in _each_system(table, index):
        points = (measured[0].get("dev") or {}).get("grid") if measured else None
        if points:
            yield _dev_grid(f"{line.label}, {technique}" if technique else line.label, points, measured[0])


def _dev_grid(label: str, points: Sequence[Mapping[str, Any]], measured: Mapping[str, Any]) -> Grid:
    weights = sorted({point["lm_weight"] for point in points})
    bonuses = sorted({point["insertion_bonus"] for point in points})
    rates: dict[tuple[float, float], float] = {}
    for point in points:
        place = point["lm_weight"], point["insertion_bonus"]
        # With an internal language model several points share a place: the best of them stands there.
        rates[place] = min(rates.get(place, point["wer"]), point["wer"])
    texts = {place: f"{100 * rate:.1f}" for place, rate in rates.items()}
    rows = [[f"{weight:g}", *(texts.get((weight, bonus), "") for bonus in bonuses)] for weight in weights]
    headings = ["Weight", *(f"{bonus:g}" for bonus in bonuses)]
    chosen = f"chosen are {measured['lm_weight']:g} and {measured['insertion_bonus']:g}"
    what = f"word error rate on dev in per cent, by language model weight (down) and insertion bonus (across); {chosen}"
    return plain_grid(f"{label}: {what}", headings, rows, label=f"Dev grid, {label}")
