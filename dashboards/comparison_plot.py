"""How far from Oracle each method stays: the paper's corpora and ours on one scale.

Perplexities of different corpora and vocabularies do not compare; their ratios to Oracle of the same corpus do better.
"""

from dashboards.interval_plot import Drawing
from dashboards.paper_results import RESULTS, TECHNIQUES, printed, readable_range
from dashboards.plot_panel import Panel, scale_round
from dashboards.series import series_of
from tasks.results.fine_tuned_names import pretrained_counterpart
from tasks.results.summary.estimate import Estimate, estimate
from tasks.results.summary.summary_table import Line, Table, method_name, technique_name

_ROW = 30.0
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
    looks = series_of(table.lines)
    ours: dict[tuple[str, str], list[tuple[str, str, str, Estimate]]] = {}
    for technique in techniques:
        for line in table.lines:
            number = estimate(line.by_technique[technique], "ratio_to_oracle")
            if number is not None and line.method != "pretrained":
                look = looks[line.filler, line.method]
                ours.setdefault((technique, _row_of(line)), []).append((line.label, look.colour, look.shape, number))
    rows = list(dict.fromkeys([*_PAPER_ROWS, *(row for _, row in ours)]))
    values = [1.0]
    values += [
        value
        for technique in techniques
        for row in rows
        for _, _, low, high in paper_ratios(technique, row)
        for value in (low, high)
    ]
    values += [limit for entries in ours.values() for *_, number in entries for limit in _limits(number)]
    return [_panel(technique, rows, ours, values) for technique in techniques if ours]


def _row_of(line: Line) -> str:
    """The row that a line of ours shares with the paper's of the same method."""
    fine_tuned = line.filler is not None and pretrained_counterpart(line.filler) != line.filler
    return f"{method_name(line.method)} fine-tuned" if fine_tuned else method_name(line.method)


def _limits(number: Estimate) -> tuple[float, float]:
    return number.low or number.value, number.high or number.value


def _panel(
    technique: str,
    rows: list[str],
    ours: dict[tuple[str, str], list[tuple[str, str, str, Estimate]]],
    values: list[float],
) -> Drawing:
    panel = Panel(360, 30 + _ROW * len(rows) + 40, left=112, right=14, top=26)
    x = scale_round(values, *panel.x_range, logarithmic=True)
    for place in range(0, len(rows), 2):
        panel.band(panel.top + _ROW * place, _ROW)
    panel.x_axis(x, "perplexity over Oracle's", count=5)
    panel.line(x(1.0), panel.y_range[0], x(1.0), panel.y_range[1] - 8, "reference oracle")
    panel.text(x(1.0), 12, "Oracle", "label oracle", "middle")
    said = []
    for place, row in enumerate(rows):
        y = panel.top + _ROW * (place + 0.5)
        panel.text(panel.left - 8, y + 4, row, "row", "end")
        for corpus, method, low, high in paper_ratios(technique, row):
            centre = (low * high) ** 0.5
            if high > low:
                panel.line(x(low), y + 5, x(high), y + 5, "interval paper")
            panel.mark(
                x(centre), y + 5, PAPER_SHAPES[corpus], "paper", f"paper, {corpus}, {method}: {centre:.2f} times Oracle"
            )
        for label, colour, shape, number in ours.get((technique, row), []):
            low, high = _limits(number)
            panel.line(x(low), y - 6, x(high), y - 6, f"interval {colour}")
            panel.mark(x(number.value), y - 6, shape, colour, f"here, {label}: {number.value:.2f} times Oracle")
            said.append(f"{label} {number.value:.2f}")
    name = f"Perplexity over Oracle's, {technique_name(technique)}"
    return Drawing(
        technique_name(technique), panel.svg(name, f"Here: {', '.join(said)}. The paper's are in the table.")
    )
