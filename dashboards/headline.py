"""What came out, in a few sentences that are computed from the rows."""

import math
from dataclasses import dataclass

from tasks.results.measures import measure
from tasks.results.summary.estimate import direction, estimate
from tasks.results.tables import Line, Table, best_fills
from tasks.results.titles import technique_name


@dataclass(frozen=True, slots=True)
class Fact:
    """A number to be seen first, with its name and what it means."""

    name: str
    value: str
    meaning: str


def facts(table: Table) -> list[Fact]:
    """Pretrained model and Oracle, and for each technique the lowest fill, by a model or without one."""
    found = []
    pretrained, oracle = _reference(table, "pretrained"), _reference(table, "oracle")
    if pretrained is not None:
        found.append(Fact("Pretrained model", f"{pretrained:.1f}", "saw no private text"))
    if oracle is not None:
        meaning = f"adapted on the raw text: {1 - oracle / pretrained:.0%} lower" if pretrained else "on the raw text"
        found.append(Fact("Oracle", f"{oracle:.1f}", meaning))
    for technique in table.techniques:
        best = best_fills(table, measure("perplexity"))[technique]
        if best is not None:
            line, value = best
            share = table.masked_fraction(technique)
            meaning = f"lowest fill: {line.label}"
            name = technique_name(technique).capitalize() + (f", {share:.1%} masked" if share is not None else "")
            found.append(Fact(name, f"{value:.1f}", meaning))
    return found


def sentences(table: Table) -> list[str]:
    """Per technique: how much of the gap from Baseline1 to Oracle the best fill closes, and how the control does."""
    said = []
    for technique in table.techniques:
        best, baseline, oracle = (
            _best(table, technique),
            _number(table, "baseline1", technique),
            _reference(table, "oracle"),
        )
        if best is None or baseline is None or oracle is None:
            continue
        line, value = best
        closed = (math.log(baseline) - math.log(value)) / (math.log(baseline) - math.log(oracle))
        if value < baseline:
            gap = f"the gap between Baseline1 ({baseline:.1f}) and Oracle ({oracle:.1f})"
            text = f"{line.label} closes {closed:.0%} of {gap}"
        else:
            text = f"no model's fill is below Baseline1 ({baseline:.1f}); the best, {line.label}, has {value:.1f}"
        control = _best(table, technique, control=True)
        if control is not None:
            other, guess = control
            if guess <= value:
                text += f"; the control {other.label}, which sees no context, does as well or better ({guess:.1f})"
            else:
                text += f"; the control {other.label}, which sees no context, has {guess:.1f}"
        said.append(f"{technique_name(technique).capitalize()}: {text}.")
    return [*said, *_of_speech(table)]


def _of_speech(table: Table) -> list[str]:
    """Word error rates: without language model, with the references, and with all fills by a model."""
    if table.recogniser_alone is None or not table.techniques:
        return []
    lines = {"without a language model": table.recogniser_alone}
    for line in table.lines:
        if line.method in ("pretrained", "oracle"):
            lines["with the pretrained one" if line.method == "pretrained" else "with Oracle"] = line
    rates = [
        f"{100 * number.value:.1f}% {name}"
        for name, line in lines.items()
        if (number := estimate(line.by_technique[table.techniques[0]], "wer")) is not None
    ]
    fills = [
        (number.value, direction(rows, "wer_difference_to_oracle", neutral=0))
        for technique in table.techniques
        for line in table.lines
        if line.filler is not None and (number := estimate(rows := line.by_technique[technique], "wer")) is not None
    ]
    if not rates or not fills:
        return []
    values, ways = zip(*fills, strict=True)
    # Not the best of them alone: chosen on the test, its interval would say too much.
    text = f"{100 * min(values):.1f} to {100 * max(values):.1f}% with fills by a model"
    fewer, more = ways.count(-1), ways.count(1)
    text += f" ({len(fills)} in all; by their intervals {fewer} with fewer errors than Oracle, {more} with more)"
    return [f"Word error rate on {table.kind_of_speech}: {', '.join(rates)}, {text}."]


def _reference(table: Table, method: str) -> float | None:
    return _number(table, method, table.techniques[0]) if table.techniques else None


def _number(table: Table, method: str, technique: str) -> float | None:
    for line in table.lines:
        if line.method == method:
            number = estimate(line.by_technique[technique], "perplexity")
            return number.value if number else None
    return None


def _best(table: Table, technique: str, *, control: bool = False) -> tuple[Line, float] | None:
    """The lowest perplexity among fills by a model, or among the controls."""
    return best_fills(table, measure("perplexity"), ("control",) if control else ("fill",))[technique]
