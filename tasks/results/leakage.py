"""What each cell leaks, as a table, and which conditions are within limits on it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tasks.errors import ParameterError
from tasks.results.grid import Comparison, Entry, Grid, GridRow, Heading
from tasks.results.measure import PAGE, Measure, Row
from tasks.results.measures import leakage, leaks
from tasks.results.summary.estimate import estimate
from tasks.results.tables import Line, Table, number_entry
from tasks.results.titles import technique_name
from tasks.spelling import nearest

Meets = Literal["yes", "no", "open", "unknown"]
"""Whether numbers stay below a limit; ``open``: the interval holds it; ``unknown``: nothing was attacked."""


def leak_grid(table: Table, view: str) -> Grid | None:
    """Attacked conditions down, figures across, each with its chance level; ``None`` without any."""
    conditions = attacked(table)
    columns = [each for each in leakage(view) if any(each.estimate(rows) is not None for _, _, rows in conditions)]
    if not columns:
        return None
    rows = []
    for technique, line, found in conditions:
        entries = [_entry(each, found, view) for each in columns]
        name = technique_name(technique or "")
        # A page has a tag for the technique, other views have none.
        label = line.label if view == PAGE or not name else f"{line.label}, {name}"
        rows.append(GridRow(label, entries, technique or "", line.colour, name))
    headings = [Heading("attacked"), *(Heading(each.short or each.title) for each in columns)]
    return Grid(f"Leakage of {table.dataset}", headings, rows, "numbers")


def attacked(table: Table) -> list[tuple[str | None, Line, Sequence[Row]]]:
    """Technique, line and rows of each condition that was attacked; of references once, without a technique."""
    found: list[tuple[str | None, Line, Sequence[Row]]] = []
    for technique in table.techniques:
        for line in table.lines:
            rows = line.by_technique[technique]
            own = technique if line.group != "reference" else None
            if any(row.get("attackers") for row in rows) and (own is not None or technique == table.techniques[0]):
                found.append((own, line, rows))
    return found


def _entry(measure: Measure, rows: Sequence[Row], view: str) -> Entry:
    number = measure.estimate(rows)
    shown = number_entry(number, measure.digits)
    blind = estimate(rows, measure.blind)
    if number is None or blind is None:
        return shown
    value = blind.value * (100 if measure.share else 1)
    text = f"{value:.{measure.digits}f}"
    if view != PAGE:
        return Entry(shown.text, f"{shown.interval} (chance {text})".strip())
    above = number.low is not None and number.low > value
    said = "above" if above else "not significantly different from"
    comparison = Comparison("chance", text, "▲" if above else "≈", said, "bad" if above else "alike")
    return Entry(shown.text, shown.interval, comparisons=(comparison,))


def row_of(measured: Mapping[str, Any]) -> dict[str, Any]:
    """What the report of an audit measured, by the names of the figures."""
    row: dict[str, Any] = {"attackers": measured.get("attackers", {})}
    for each in leaks():
        row[each.name] = measured.get(each.field or each.name)
        row[each.blind] = measured.get(f"{each.field or each.name}_blind")
        if each.interval is not None:
            row[f"{each.name}_ci"] = measured.get(each.interval)
    return row


def check_limits(limits: Mapping[str, float], where: str) -> None:
    """``ParameterError`` where a limit is of no figure; ``where`` the user has set it."""
    known = [each.name for each in leaks()]
    for name in limits:
        if name not in known:
            raise ParameterError(
                f"{where}: no attack gives {name!r}{nearest(name, known)}; there are: {', '.join(known)}"
            )


def limits_of(given: Sequence[str]) -> dict[str, float]:
    """``exposure=2`` and the like: figure to limit. ``ParameterError`` for another form."""
    found = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            raise ParameterError(
                f"--at-most {text!r} is not of the form FIGURE=NUMBER, such as exposure=2; shares are from 0 to 1"
            ) from None
    return found


def meets(rows: Sequence[Row], limits: Mapping[str, float]) -> Meets:
    """Whether a condition stays within all limits, by the upper ends of its intervals."""
    answers = {_meets(rows, name, limit) for name, limit in limits.items()}
    order: tuple[Meets, ...] = ("no", "unknown", "open")
    return next((answer for answer in order if answer in answers), "yes")


def _meets(rows: Sequence[Row], name: str, limit: float) -> Meets:
    number = estimate(rows, name)
    if number is None:
        return "unknown"
    low, high = (end if end is not None else number.value for end in (number.low, number.high))
    return "yes" if high <= limit else "no" if low > limit else "open"
