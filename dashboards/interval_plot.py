"""Perplexity by method with its interval: one panel per technique, Oracle and the pretrained model as lines."""

from dataclasses import dataclass

from dashboards.plot_panel import Panel, Scale, scale_round
from dashboards.series import series_of
from tasks.results.summary.estimate import Estimate, estimate
from tasks.results.summary.summary_table import Line, Table, number_text, technique_name

_ROW = 26.0
_LETTER, _LEAST_LEFT = 6.4, 84.0
"""Width of a letter of a row's name, about, and of the column of names at the least."""
_REFERENCES = ("oracle", "pretrained")


@dataclass(frozen=True)
class Drawing:
    """A panel with its heading."""

    heading: str
    svg: str


def interval_plots(table: Table, field: str, axis: str, *, per_cent: bool = False) -> list[Drawing]:
    """One panel per technique, all with the same axis; empty where nothing was measured.

    ``per_cent``: the field is a share and drawn as per cent.
    """
    numbers = {
        (technique, line.label): number and number.times(100 if per_cent else 1)
        for technique in table.techniques
        for line in table.lines
        for number in [estimate(line.by_technique[technique], field)]
    }
    # The pretrained model is often many times worse: on its scale, what is compared would lie in one point.
    compared = [line.label for line in table.lines if line.method != "pretrained"]
    limits = [
        limit
        for (_, label), number in numbers.items()
        if number is not None and (label in compared or not compared)
        for limit in (number.value, number.low or number.value, number.high or number.value)
    ]
    if not limits:
        return []
    return [_panel(table, technique, numbers, limits, axis) for technique in table.techniques]


def _panel(
    table: Table,
    technique: str,
    numbers: dict[tuple[str, str], Estimate | None],
    limits: list[float],
    axis: str,
) -> Drawing:
    lines = [line for line in table.lines if line.method not in _REFERENCES]
    left = max(_LEAST_LEFT, 12 + _LETTER * max((len(line.label) for line in lines), default=0))
    panel = Panel(round(276 + left), 44 + _ROW * len(lines) + 40, left=left, right=46, top=40)
    scale = scale_round(limits, *panel.x_range, logarithmic=True)
    panel.x_axis(scale, axis)
    _references(panel, table, technique, numbers, scale)
    looks = series_of(table.lines)
    for place, line in enumerate(lines):
        y = panel.top + _ROW * (place + 0.5)
        panel.text(panel.left - 8, y + 4, line.label, "row", "end")
        number = numbers[technique, line.label]
        if number is None:
            panel.text(panel.width - panel.right + 8, y + 4, "–", "value")
            continue
        look = looks[line.filler, line.method]
        if number.low is not None and number.high is not None:
            panel.line(scale(number.low), y, scale(number.high), y, f"interval {look.colour}")
        panel.mark(scale(number.value), y, look.shape, look.colour, f"{line.label}: {number_text(number)}")
        panel.text(panel.width - panel.right + 8, y + 4, f"{number.value:.1f}", "value")
    share = table.masked_fraction(technique)
    heading = technique_name(technique) + (f", {share:.1%} masked" if share is not None else "")
    return Drawing(heading, panel.svg(f"{axis}, {technique_name(technique)}", _said(table.lines, technique, numbers)))


def _references(
    panel: Panel,
    table: Table,
    technique: str,
    numbers: dict[tuple[str, str], Estimate | None],
    scale: Scale,
) -> None:
    """Vertical lines with their names above; a value beyond the scale is written at its end, with an arrow."""
    bottom, top = panel.y_range
    for line in table.lines:
        number = numbers[technique, line.label]
        if line.method not in _REFERENCES or number is None:
            continue
        if number.value > scale.high:
            text = f"{line.label} {number.value:.1f} \N{RIGHTWARDS ARROW}"
            panel.text(panel.width - panel.right, 12, text, f"label {line.method}", "end")
            continue
        x = scale(number.value)
        above = 26 if line.method == "oracle" else 12
        panel.line(x, bottom, x, top - 10 + (0 if line.method == "oracle" else -12), f"reference {line.method}")
        anchor = "middle"
        if x < panel.left + 40:
            anchor = "start"
        elif x > panel.width - panel.right - 40:
            anchor = "end"
        panel.text(x, above, f"{line.label} {number.value:.1f}", f"label {line.method}", anchor)


def _said(lines: list[Line], technique: str, numbers: dict[tuple[str, str], Estimate | None]) -> str:
    """All numbers of the panel in words."""
    return "; ".join(f"{line.label} {number_text(numbers[technique, line.label])}" for line in lines) + "."
