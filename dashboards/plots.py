"""The page's plots: perplexities with their intervals, distance from Oracle beside the paper's, what masking costs and
protects, and training curves. Each is a panel for every technique, unless it says otherwise.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.paper_results import RESULTS, TECHNIQUES, printed, readable_range
from tasks.records.cells import ORACLE, PRETRAINED, training_report
from tasks.results.leakage import attacked
from tasks.results.measure import PAGE, Measure, Row
from tasks.results.measures import leaks, measure, measures_of
from tasks.results.plot_panel import Panel, Scale, label_width, scale_round, spread
from tasks.results.summary.estimate import Estimate, estimate
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.tables import Line, Table, number_text
from tasks.results.titles import method_name, technique_name
from tasks.results.tracking.curve import curve_points

_METHOD_ROW = 26.0
_LETTER, _LEAST_LEFT = 6.4, 84.0
"""Width of a letter of a row's name, about, and of the column of names at the least."""
_REFERENCES = (ORACLE, PRETRAINED)


@dataclass(frozen=True)
class Drawing:
    """A panel with its heading."""

    heading: str
    svg: str


def interval_plots(table: Table, measure: Measure, axis: str = "") -> list[Drawing]:
    """A measure by method, Oracle and the pretrained model as lines; all panels have the same axis. Empty where nothing
    was measured."""
    axis = axis or measure.title
    numbers = {
        (technique, line.label): measure.estimate(line.by_technique[technique])
        for technique in table.techniques
        for line in table.lines
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
    return [_interval_panel(table, technique, numbers, limits, axis, measure) for technique in table.techniques]


def _interval_panel(
    table: Table,
    technique: str,
    numbers: dict[tuple[str, str], Estimate | None],
    limits: list[float],
    axis: str,
    measure: Measure,
) -> Drawing:
    lines = [line for line in table.lines if line.method not in _REFERENCES]
    left = max(_LEAST_LEFT, 12 + _LETTER * max((len(line.label) for line in lines), default=0))
    panel = Panel(round(276 + left), 44 + _METHOD_ROW * len(lines) + 40, left=left, right=46, top=40)
    scale = scale_round(limits, *panel.x_range, logarithmic=min(limits) > 0)
    panel.x_axis(scale, axis)
    _references(panel, table, technique, numbers, scale)
    for place, line in enumerate(lines):
        y = panel.top + _METHOD_ROW * (place + 0.5)
        panel.text(panel.left - 8, y + 4, line.label, "row", "end")
        number = numbers[technique, line.label]
        if number is None:
            panel.text(panel.width - panel.right + 8, y + 4, "–", "value")
            continue
        if number.low is not None and number.high is not None:
            panel.line(scale(number.low), y, scale(number.high), y, f"interval {line.colour}")
        panel.mark(scale(number.value), y, line.shape, line.colour, f"{line.label}: {number_text(number)}")
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


_PAPER_ROW = 30.0
_PAPER_ROWS = ("Baseline0", "Baseline1", "Top-1", "Top-K", "Top-K fine-tuned", "Top-1 fine-tuned")
PAPER_SHAPES = {"Fisher": "circle", "Reddit": "square", "WSJ": "triangle"}

Point = tuple[str, str, float, float]
"""Corpus, paper's method, smallest and largest ratio to Oracle that the printed digits allow."""


def paper_ratios(technique: str, row: str) -> list[Point]:
    """The paper's ratios to Oracle for one row, over its corpora and fillers."""
    points = []
    for method in RESULTS:
        if method.partition(",")[0] != row:
            continue
        for corpus in PAPER_SHAPES:
            number, oracle = printed(method, corpus, technique), printed("Oracle", corpus, technique)
            if number is not None and oracle is not None:
                low, high = readable_range(number)
                points.append((corpus, method, low / float(oracle), high / float(oracle)))
    return points


def comparison_plots(table: Table) -> list[Drawing]:
    """One panel per technique that the paper has too."""
    techniques = [technique for technique in table.techniques if technique in TECHNIQUES]
    ours: dict[tuple[str, str], list[tuple[str, str, str, Estimate]]] = {}
    for technique in techniques:
        for line in table.lines:
            number = estimate(line.by_technique[technique], "ratio_to_oracle")
            if number is not None and line.method != "pretrained":
                ours.setdefault((technique, _row_of(line)), []).append((line.label, line.colour, line.shape, number))
    rows = list(dict.fromkeys([*_PAPER_ROWS, *(row for _, row in ours)]))
    values = [1.0]
    values += [
        value
        for technique in techniques
        for row in rows
        for _, _, low, high in paper_ratios(technique, row)
        for value in (low, high)
    ]
    values += [limit for entries in ours.values() for *_, number in entries for limit in _ends(number)]
    return [_comparison_panel(technique, rows, ours, values) for technique in techniques if ours]


def _row_of(line: Line) -> str:
    """The row that a line of ours shares with the paper's of the same method."""
    return f"{method_name(line.method)} fine-tuned" if line.is_tuned else method_name(line.method)


def _comparison_panel(
    technique: str,
    rows: list[str],
    ours: dict[tuple[str, str], list[tuple[str, str, str, Estimate]]],
    values: list[float],
) -> Drawing:
    panel = Panel(360, 30 + _PAPER_ROW * len(rows) + 40, left=112, right=14, top=26)
    x = scale_round(values, *panel.x_range, logarithmic=True)
    for place in range(0, len(rows), 2):
        panel.band(panel.top + _PAPER_ROW * place, _PAPER_ROW)
    panel.x_axis(x, "perplexity over Oracle's", count=5)
    panel.line(x(1.0), panel.y_range[0], x(1.0), panel.y_range[1] - 8, "reference oracle")
    panel.text(x(1.0), 12, "Oracle", "label oracle", "middle")
    said = []
    for place, row in enumerate(rows):
        y = panel.top + _PAPER_ROW * (place + 0.5)
        panel.text(panel.left - 8, y + 4, row, "row", "end")
        for corpus, method, low, high in paper_ratios(technique, row):
            centre = (low * high) ** 0.5
            if high > low:
                panel.line(x(low), y + 5, x(high), y + 5, "interval paper")
            panel.mark(
                x(centre), y + 5, PAPER_SHAPES[corpus], "paper", f"paper, {corpus}, {method}: {centre:.2f} times Oracle"
            )
        for label, colour, shape, number in ours.get((technique, row), []):
            low, high = _ends(number)
            panel.line(x(low), y - 6, x(high), y - 6, f"interval {colour}")
            panel.mark(x(number.value), y - 6, shape, colour, f"here, {label}: {number.value:.2f} times Oracle")
            said.append(f"{label} {number.value:.2f}")
    name = f"Perplexity over Oracle's, {technique_name(technique)}"
    return Drawing(
        technique_name(technique), panel.svg(name, f"Here: {', '.join(said)}. The paper's are in the table.")
    )


def masked_share_plot(table: Table) -> Drawing | None:
    """Perplexity of every method against the share of words that its technique masked; lines join the techniques.

    Oracle is a line; the pretrained model, often many times worse, is left to the table.
    """
    curves = []
    references = []
    for line in table.lines:
        points = []
        for technique in table.techniques:
            number, share = estimate(line.by_technique[technique], "perplexity"), table.masked_fraction(technique)
            if number is not None and share is not None:
                points.append((share, number.value, technique))
        if not points:
            continue
        if line.method in ("oracle", "pretrained"):
            if line.method == "oracle":
                references.append((line.label, line.method, points[0][1]))
        else:
            curves.append((line, sorted(points)))
    if not curves:
        return None
    labels = [line.label for line, _ in curves] + [label for label, *_ in references]
    panel = Panel(560, 360, left=46, right=label_width(labels), top=14)
    x = scale_round([share for _, points in curves for share, *_ in points] + [0.0], *panel.x_range, zero=True)
    values = [value for _, points in curves for _, value, _ in points] + [value for *_, value in references]
    y = scale_round(values, *panel.y_range, logarithmic=True)
    panel.x_axis(x, "share of words masked", percent=True, count=6)
    panel.y_axis(y, count=8)
    for _, method, value in references:
        panel.line(panel.left, y(value), panel.width - panel.right, y(value), f"reference {method}")
    for line, points in curves:
        panel.path([(x(share), y(value)) for share, value, _ in points], f"joined {line.colour}")
        for share, value, technique in points:
            said = f"{line.label}, {technique_name(technique)} ({share:.1%} masked): {value:.1f}"
            panel.mark(x(share), y(value), line.shape, line.colour, said)
    ends = [(line.label, line.colour, y(points[-1][1])) for line, points in curves]
    ends += [(label, method, y(value)) for label, method, value in references]
    for (label, colour, _), at in zip(
        ends, spread([end for *_, end in ends], panel.top, panel.y_range[0]), strict=True
    ):
        panel.text(panel.width - panel.right + 8, at + 4, label, f"label {colour}")
    said = "; ".join(
        f"{line.label}: " + ", ".join(f"{value:.1f} at {share:.1%}" for share, value, _ in points)
        for line, points in curves
    )
    return Drawing("", panel.svg("Perplexity against the share of words masked", said + "."))


def frontier_plots(table: Table) -> list[Drawing]:
    """Perplexity over known words against each figure of the attacks, with both intervals, one mark a condition; what
    no other condition is better than in both (the Pareto set) is joined by a line."""
    return _against_perplexity(attacked(table), leaks(PAGE))


def fluency_plots(table: Table) -> list[Drawing]:
    """The same against each measure of how well fills read: all fills of the table."""
    fills = [
        (technique, line, line.by_technique[technique])
        for technique in table.techniques
        for line in table.lines
        if line.group in ("fill", "control")
    ]
    return _against_perplexity(fills, [each for each in measures_of(PAGE) if each.step == "fluency"])


def _against_perplexity(
    conditions: Sequence[tuple[str | None, Line, Sequence[Row]]], measures: Iterable[Measure]
) -> list[Drawing]:
    quality = measure("perplexity_known")
    found = [
        (technique, line, number, rows)
        for technique, line, rows in conditions
        if rows and (number := quality.estimate(rows)) is not None
    ]
    drawings = []
    for each in measures:
        points = [
            _Point(line, technique_name(technique) if technique else line.label, value, number)
            for technique, line, number, rows in found
            if (value := each.estimate(rows)) is not None
        ]
        if len(points) > 1:
            drawings.append(Drawing(each.title, _frontier(points, each).svg(each.title, _said_points(points, each))))
    return drawings


@dataclass(frozen=True)
class _Point:
    """A condition in the plane of what it gives away and what it costs."""

    line: Line
    label: str
    """The technique; colour and shape tell the method."""
    leak: Estimate
    cost: Estimate

    def is_beaten(self, others: Sequence["_Point"], sign: int) -> bool:
        """Whether another gives away and costs less, or less of one and the same of the other; ``sign``: -1 where more
        of the first is better."""
        mine = sign * self.leak.value, self.cost.value
        theirs = [(sign * other.leak.value, other.cost.value) for other in others]
        return any(a <= mine[0] and b <= mine[1] and (a, b) != mine for a, b in theirs)


def _frontier(points: Sequence[_Point], measure: Measure) -> Panel:
    panel = Panel(420, 300, left=46, right=14, top=14)
    x = scale_round([end for each in points for end in _ends(each.leak)], *panel.x_range)
    y = scale_round([end for each in points for end in _ends(each.cost)], *panel.y_range, logarithmic=True)
    panel.x_axis(x, measure.title, count=5)
    panel.y_axis(y, count=6)
    sign = -1 if measure.better == "higher" else 1
    best = sorted((each for each in points if not each.is_beaten(points, sign)), key=lambda each: each.leak.value)
    if len(best) > 1:
        panel.path([(x(each.leak.value), y(each.cost.value)) for each in best], "joined oracle")
    places = spread([y(each.cost.value) for each in points], panel.top + 6, panel.y_range[0] - 6, gap=14)
    for each, at in zip(points, places, strict=True):
        (left, right), (low, high) = _ends(each.leak), _ends(each.cost)
        panel.line(x(left), y(each.cost.value), x(right), y(each.cost.value), f"interval {each.line.colour}")
        panel.line(x(each.leak.value), y(low), x(each.leak.value), y(high), f"interval {each.line.colour}")
        panel.mark(
            x(each.leak.value), y(each.cost.value), each.line.shape, each.line.colour, _said_points([each], measure)
        )
        is_left = x(each.leak.value) < sum(panel.x_range) / 2
        side, anchor = (9, "start") if is_left else (-9, "end")
        panel.text(x(each.leak.value) + side, at + 4, each.label, f"label {each.line.colour}", anchor)
    return panel


def _ends(number: Estimate) -> tuple[float, float]:
    low, high = (number.value if end is None else end for end in (number.low, number.high))
    return low, high


def _said_points(points: Sequence[_Point], measure: Measure) -> str:
    said = [(each, number_text(each.leak, measure.digits)) for each in points]
    return "; ".join(f"{p.line.label}, {p.label}: {leak}, perplexity {p.cost.value:.1f}" for p, leak in said)


def curve_plots(table: Table, reports: Mapping[str, Mapping[str, Any]], name: str, axis: str) -> list[Drawing]:
    """Panels of the curve ``name`` (``train_loss``, ``valid_loss``) of every method's first seed, Oracle among them."""
    panels = []
    everything: list[tuple[int, float]] = []
    for technique in table.techniques:
        curves = []
        for line in table.lines:
            points = _points(line, technique, reports, name)
            if points and line.method != "pretrained":
                curves.append((line, points))
                everything += points
        panels.append((technique, curves))
    return [_curve_panel(technique, curves, everything, axis) for technique, curves in panels if curves]


def _points(line: Line, technique: str, reports: Mapping[str, Mapping[str, Any]], name: str) -> list[tuple[int, float]]:
    rows = line.by_technique[technique]
    report = reports.get(training_report(summarised_cell(rows[0])).with_suffix("").as_posix()) if rows else None
    return [(step, value) for curve, step, value in curve_points(report) if curve == name] if report else []


def _curve_panel(technique: str, curves: list[Any], everything: list[tuple[int, float]], axis: str) -> Drawing:
    labels = [line.label for line, _ in curves]
    panel = Panel(380, 250, left=40, right=label_width(labels), top=12)
    x = scale_round([float(step) for step, _ in everything] + [0.0], *panel.x_range, zero=True)
    y = scale_round([value for _, value in everything], *panel.y_range)
    panel.x_axis(x, axis, count=4)
    panel.y_axis(y, count=5)
    for line, points in curves:
        panel.path([(x(step), y(value)) for step, value in points], f"joined {line.colour}")
        if len(points) <= 8:
            for step, value in points:
                panel.mark(x(step), y(value), line.shape, line.colour, f"{line.label}: {value:.3f} at step {step}")
    ends = spread([y(points[-1][1]) for _, points in curves], panel.top, panel.y_range[0])
    for (line, _), at in zip(curves, ends, strict=True):
        panel.text(panel.width - panel.right + 7, at + 4, line.label, f"label {line.colour}")
    said = "; ".join(f"{line.label} from {points[0][1]:.2f} to {points[-1][1]:.2f}" for line, points in curves)
    return Drawing(technique_name(technique), panel.svg(f"{axis}, {technique_name(technique)}", f"{said}."))
