"""Leakage of each cell as a table, and conditions within the limits on leakage."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tasks.errors import ParameterError
from tasks.results.grid import ABSENT, Entry, Grid, GridRow, Heading
from tasks.results.measure import ABOVE, PAGE, Measure, Row
from tasks.results.measures import leakage, leaks
from tasks.results.summary.estimate import estimate
from tasks.results.tables import Table, TechniqueLine, number_entry
from tasks.results.titles import technique_name
from tasks.spelling import nearest


def leakage_grid(table: Table) -> Grid:
    """Attacks as rows, attacked conditions as columns, each number with its chance level.

    Without an attack: the identifiers that each technique leaves unmasked.
    """
    columns = {Heading(one.line.label, technique_name(one.technique or "")): one.rows for one in attacked(table)}
    if not columns:
        for one in table.conditions():
            if one.technique:
                columns.setdefault(Heading(technique_name(one.technique)), one.rows)
    found = {each.title: [leak_entry(each, rows) for rows in columns.values()] for each in leakage(PAGE)}
    rows = [GridRow(title, entries) for title, entries in found.items() if any(e.text != ABSENT for e in entries)]
    return Grid(f"Leakage of {table.dataset}", [Heading("Attack"), *columns], rows, caption_unseen=True)


def attacked(table: Table) -> list[TechniqueLine]:
    """The attacked conditions."""
    return [one for one in table.conditions() if any(row.get("attackers") for row in one.rows)]


def leak_entry(measure: Measure, rows: Sequence[Row]) -> Entry:
    """A number with its chance level, and a mark if its interval is above that."""
    number, blind = measure.estimate(rows), measure.chance(rows)
    shown = number_entry(number, measure.digits)
    if number is None or blind is None:
        return shown
    chance = f"chance {blind.value:.{measure.digits}f}"
    detail = ", ".join(part for part in (shown.note, chance) if part)
    shown = replace(shown, interval=f"{shown.interval} ({chance})".strip(), detail=detail)
    if number.low is None or number.low <= blind.value:
        return shown
    return replace(shown, sign=ABOVE, said="above chance", sign_kind="bad")


def row_of(measured: Mapping[str, Any]) -> dict[str, Any]:
    """The measurements in the report of an audit, by the names of the figures."""
    row: dict[str, Any] = {"attackers": measured.get("attackers", {})}
    for each in leaks():
        row[each.name] = measured.get(each.field or each.name)
        row[each.blind] = measured.get(f"{each.field or each.name}_blind")
        if each.interval is not None:
            row[f"{each.name}_ci"] = measured.get(each.interval)
    return row


def check_limits(limits: Mapping[str, float], where: str) -> None:
    """Raise ``ParameterError`` if a limit names no figure; ``where``: the user's setting."""
    known = [each.name for each in leaks()]
    for name in limits:
        if name not in known:
            raise ParameterError(
                f"{where}: no attack gives {name!r}{nearest(name, known)}; there are: {', '.join(known)}"
            )


def meets(rows: Sequence[Row], limits: Mapping[str, float]) -> bool:
    """Whether a condition has all figures with limits, and the upper ends of their intervals are within these."""
    ends = {}
    for name in limits:
        number = estimate(rows, name)
        ends[name] = math.inf if number is None else number.value if number.high is None else number.high
    return all(ends[name] <= limit for name, limit in limits.items())
