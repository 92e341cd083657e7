"""The page's part about speech: word error rates by system, and the weights that were chosen on dev."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.interval_plot import Drawing, interval_plots
from dashboards.result_tables import Comparison, NumberCell, NumberRow, lowest_fills, rows_of
from dashboards.series import Series, series_of
from tasks.records.cells import NO_LANGUAGE_MODEL, word_error_report
from tasks.results.report_index import ReportIndex
from tasks.results.summary.estimate import Estimate, direction, estimate
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.summary.summary_table import Line, Row, Table, lists_note, number_text, technique_name

_REFERENCES = ((NO_LANGUAGE_MODEL, "No LM"), ("pretrained", "Pretrained"), ("oracle", "Oracle"))
WITHOUT_CAPITALS = (
    "References of n-best lists are often written without capitals, and there a technique that tags names finds few of "
    "them: its rate is then one of few words, and not of the names that were said."
)
"""What a reader must know of the rates on masked words where they come from n-best lists."""
_SIGNS = {
    -1: ("▼", "fewer errors than", "below"),
    0: ("≈", "not told apart from", "alike"),
    1: ("▲", "more errors than", "above"),
}


@dataclass(frozen=True)
class SystemRow:
    """A recogniser with one language model, in numbers."""

    look: Series
    technique: str
    numbers: list[str]
    """Insertions, deletions, substitutions, character error rate, weight of the language model, insertion bonus,
    real-time factor."""


@dataclass(frozen=True)
class DevGrid:
    """What was tried on dev for one system: the word error rate of each pair of weights, in per cent."""

    label: str
    bonuses: list[str]
    rows: list[tuple[str, list[tuple[str, bool]]]]
    """Weight of the language model; of each insertion bonus the rate, and whether it was chosen."""


@dataclass(frozen=True)
class SpeechPart:
    """All that the page shows of a dataset's speech."""

    kind: str
    """``synthetic speech`` or ``recorded speech``."""
    lists: str
    """A sentence on what can be won by choosing among n-best lists; empty where language models join the beam."""
    utterances: str
    words: str
    rates: list[NumberRow]
    masked_rates: list[NumberRow]
    masked_counts: list[tuple[str, str, str]]
    """Of each technique: its name, how many words of the references it would mask, and their share."""
    without_capitals: str
    """A sentence on references that hide names from a tagger; empty where they are ours."""
    plots: list[Drawing]
    systems: list[SystemRow]
    grids: list[DevGrid]


def speech_part(table: Table, index: ReportIndex) -> SpeechPart | None:
    """``None`` where the dataset has no speech."""
    alone = table.recogniser_alone
    if alone is None:
        return None
    lines = [alone, *table.lines]
    rows = [row for found in alone.by_technique.values() for row in found]
    masked = [row for row in table.rows if row.get("wer_masked") is not None]
    return SpeechPart(
        kind=table.kind_of_speech,
        lists=lists_note(table),
        utterances=f"{rows[0]['utterances']:,}",
        words=f"{rows[0]['reference_words']:,}",
        rates=_rate_rows(table, lines, "wer", compared=True),
        masked_rates=_rate_rows(table, lines, "wer_masked", compared=False) if masked else [],
        masked_counts=_masked_counts(table),
        without_capitals=WITHOUT_CAPITALS if of_lists(rows) else "",
        plots=interval_plots(table, "wer", "word error rate in per cent", per_cent=True),
        systems=list(_systems(table, lines, index)),
        grids=list(_grids(table, lines, index)),
    )


def of_lists(rows: Sequence[Row]) -> bool:
    """Whether word error rates come from n-best lists of another recogniser."""
    return any(row.get("wer_best_of_lists") is not None for row in rows)


def _masked_counts(table: Table) -> list[tuple[str, str, str]]:
    found = []
    for technique in table.techniques:
        rows = [row for line in table.lines for row in line.by_technique[technique]]
        row = next((row for row in rows if technique in (row.get("masked_word_errors") or {})), None)
        if row is not None:
            words = row["masked_word_errors"][technique]["words"]
            found.append((technique_name(technique), f"{words:,}", f"{words / row['reference_words']:.1%}"))
    return found


def _rate_rows(table: Table, lines: Sequence[Line], field: str, *, compared: bool) -> list[NumberRow]:
    def cell(found: Sequence[Row], best: bool, columns: int) -> NumberCell:
        return _cell(found, field, compared, best, columns)

    return rows_of(table, lines, cell, lowest_fills(table, field), spanning=compared)


def _cell(rows: Sequence[Row], field: str, compared: bool, best: bool, columns: int) -> NumberCell:
    rate = _per_cent(estimate(rows, field))
    if rate is None:
        return NumberCell("–", "", [], False, columns)
    value, _, rest = number_text(rate).partition(" ")
    interval = rest.strip("[]").replace(", ", "–")
    return NumberCell(value, interval, list(_comparisons(rows)) if compared else [], best, columns)


def _comparisons(rows: Sequence[Row]) -> list[Comparison]:
    found = []
    for method, name in _REFERENCES:
        column = f"wer_difference_to_{method}"
        difference = _per_cent(estimate(rows, column))
        if difference is not None:
            sign, said, kind = _SIGNS[direction(rows, column, neutral=0)]
            text = f"{difference.value:+.1f}".replace("-", "−")
            found.append(Comparison(name, text, sign, f"{said} {name}", kind))
    return found


def _per_cent(number: Estimate | None) -> Estimate | None:
    return number and number.times(100)


def _reports(line: Line, technique: str, index: ReportIndex) -> list[Mapping[str, Any]]:
    """The reports of recognition of a line's seeds."""
    names = [word_error_report(summarised_cell(row)).with_suffix("").as_posix() for row in line.by_technique[technique]]
    return [index.reports[name] for name in names if name in index.reports]


def _each(table: Table, lines: Sequence[Line]) -> list[tuple[Line, str]]:
    """Every system once: a line under a technique; references belong to none."""
    return [
        (line, technique)
        for line in lines
        for place, technique in enumerate(table.techniques)
        if (rows := line.by_technique[technique]) and (place == 0 or rows[0]["technique"] is not None)
    ]


def _systems(table: Table, lines: Sequence[Line], index: ReportIndex) -> list[SystemRow]:
    looks = series_of(lines)
    found = []
    for line, technique in _each(table, lines):
        rows = line.by_technique[technique]
        measured = [report["measured"] for report in _reports(line, technique, index)]
        factors = [each["real_time_factor"] for each in measured if each.get("real_time_factor") is not None]
        texts = [_text(estimate(rows, name), ",.0f") for name in ("insertions", "deletions", "substitutions")]
        texts.append(_text(_per_cent(estimate(rows, "character_error_rate")), ".1f"))
        texts += [_text(estimate(rows, name), ".2f") for name in ("lm_weight", "insertion_bonus")]
        texts.append(f"{sum(factors) / len(factors):.3f}" if factors else "–")
        name = technique_name(technique) if rows[0]["technique"] else ""
        found.append(SystemRow(looks[line.filler, line.method], name, texts))
    return found


def _text(number: Estimate | None, form: str) -> str:
    return format(number.value, form) if number else "–"


def _grids(table: Table, lines: Sequence[Line], index: ReportIndex) -> list[DevGrid]:
    """One for each system, of its first seed."""
    found = []
    for line, technique in _each(table, lines):
        reports = _reports(line, technique, index)
        points = (reports[0]["measured"].get("dev") or {}).get("grid") if reports else None
        if points:
            name = f", {technique_name(technique)}" if line.by_technique[technique][0]["technique"] else ""
            found.append(_grid(f"{line.label}{name}", points, reports[0]["measured"]))
    return found


def _grid(label: str, points: Sequence[Mapping[str, Any]], measured: Mapping[str, Any]) -> DevGrid:
    weights = sorted({point["lm_weight"] for point in points})
    bonuses = sorted({point["insertion_bonus"] for point in points})
    rates: dict[tuple[float, float], float] = {}
    for point in points:
        place = point["lm_weight"], point["insertion_bonus"]
        # With an internal language model several points share a place: the best of them stands there.
        rates[place] = min(rates.get(place, point["wer"]), point["wer"])
    chosen = measured["lm_weight"], measured["insertion_bonus"]
    rows = [
        (
            f"{weight:g}",
            [
                (f"{100 * rates[weight, bonus]:.1f}" if (weight, bonus) in rates else "", (weight, bonus) == chosen)
                for bonus in bonuses
            ],
        )
        for weight in weights
    ]
    return DevGrid(label, [f"{bonus:g}" for bonus in bonuses], rows)
