"""Training curves: loss over optimiser steps, one panel per technique."""

from collections.abc import Mapping
from typing import Any

from dashboards.interval_plot import Drawing
from dashboards.plot_panel import Panel, label_width, scale_round, spread
from dashboards.series import series_of
from tasks.records.cells import training_report
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.summary.summary_table import Line, Table, technique_name
from tasks.results.tracking.curve import curve_points


def curve_plots(table: Table, reports: Mapping[str, Mapping[str, Any]], name: str, axis: str) -> list[Drawing]:
    """Panels of the curve ``name`` (``train_loss``, ``valid_loss``) of every method's first seed, Oracle among them."""
    looks = series_of(table.lines)
    panels = []
    everything: list[tuple[int, float]] = []
    for technique in table.techniques:
        curves = []
        for line in table.lines:
            points = _points(line, technique, reports, name)
            if points and line.method != "pretrained":
                curves.append((looks[line.filler, line.method], points))
                everything += points
        panels.append((technique, curves))
    return [_panel(technique, curves, everything, axis) for technique, curves in panels if curves]


def _points(line: Line, technique: str, reports: Mapping[str, Mapping[str, Any]], name: str) -> list[tuple[int, float]]:
    rows = line.by_technique[technique]
    report = reports.get(training_report(summarised_cell(rows[0])).with_suffix("").as_posix()) if rows else None
    return [(step, value) for curve, step, value in curve_points(report) if curve == name] if report else []


def _panel(technique: str, curves: list[Any], everything: list[tuple[int, float]], axis: str) -> Drawing:
    labels = [look.label for look, _ in curves]
    panel = Panel(380, 250, left=40, right=label_width(labels), top=12)
    x = scale_round([float(step) for step, _ in everything] + [0.0], *panel.x_range, zero=True)
    y = scale_round([value for _, value in everything], *panel.y_range)
    panel.x_axis(x, axis, count=4)
    panel.y_axis(y, count=5)
    for look, points in curves:
        panel.path([(x(step), y(value)) for step, value in points], f"joined {look.colour}")
        if len(points) <= 8:
            for step, value in points:
                panel.mark(x(step), y(value), look.shape, look.colour, f"{look.label}: {value:.3f} at step {step}")
    ends = spread([y(points[-1][1]) for _, points in curves], panel.top, panel.y_range[0])
    for (look, _), at in zip(curves, ends, strict=True):
        panel.text(panel.width - panel.right + 7, at + 4, look.label, f"label {look.colour}")
    said = "; ".join(f"{look.label} from {points[0][1]:.2f} to {points[-1][1]:.2f}" for look, points in curves)
    return Drawing(technique_name(technique), panel.svg(f"{axis}, {technique_name(technique)}", f"{said}."))
