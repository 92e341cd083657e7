"""Plots that stand beside a run in MLflow: its training curve, and its perplexity among those of other methods. SVG,
numbers and names of cells only."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tasks.records.cell import Cell
from tasks.records.cells import PRETRAINED
from tasks.results.summary.summary_file import summarised_cell

_WIDTH, _LEFT, _RIGHT, _TOP = 720, 64, 24, 34
_OWN, _OTHER, _VALID, _GRID = "#0b5cad", "#8a8f98", "#b3430c", "#e3e5e8"


def curve_plot(cell: Cell, curve: Mapping[tuple[str, int], float]) -> str | None:
    """Loss of training and validation in nats a target over optimiser steps; ``None`` without two points."""
    lines = {
        name: sorted((step, value) for (each, step), value in curve.items() if each == name)
        for name in ("train_loss", "valid_loss")
    }
    points = [point for line in lines.values() for point in line]
    if len(points) < 2:
        return None
    height, bottom = 320, 320 - 44
    last = max(step for step, _ in points) or 1
    low, high = min(value for _, value in points), max(value for _, value in points)
    span = (high - low) or 1.0

    def at(step: float, value: float) -> str:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / last
        y = bottom - (bottom - _TOP) * (value - low) / span
        return f"{x:.1f},{y:.1f}"

    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        value, step = low + share * span, share * last
        parts.append(_grid_line(*at(0, value).split(","), *at(last, value).split(",")))
        parts.append(_text(_LEFT - 6, float(at(0, value).split(",")[1]) + 4, f"{value:.2f}", "end"))
        parts.append(_text(float(at(step, low).split(",")[0]), bottom + 16, f"{step:,.0f}", "middle"))
    parts.append(_text((_LEFT + _WIDTH) / 2, bottom + 34, "optimiser steps", "middle"))
    for (name, line), colour in zip(lines.items(), (_OWN, _VALID), strict=True):
        path = " ".join(at(*point) for point in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>')
        if name == "valid_loss":
            for point in line:
                x, y = at(*point).split(",")
                parts.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>')
    parts.append(_text(_WIDTH - _RIGHT, _TOP + 4, "training", "end", _OWN))
    parts.append(_text(_WIDTH - _RIGHT, _TOP + 20, "validation", "end", _VALID))
    return _page(height, f"{cell.path}: loss, nats a target", parts)


def perplexity_plot(cell: Cell, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Perplexity with its interval of a cell and of the cells that it compares with: those of the same data set,
    technique (of all techniques, for a reference) and seed. On a logarithmic scale; ``None`` without a number.

    The pretrained model is so much worse that it would press all others together: it stands in its own plot only.
    """
    shown = [
        (other, row["perplexity"], row.get("perplexity_ci") or [row["perplexity"]] * 2)
        for row in rows
        if _compares(cell, other := summarised_cell(row)) and row.get("perplexity")
    ]
    if not shown:
        return None
    shown.sort(key=lambda entry: entry[1])
    left, step = 250, 22
    height = _TOP + 20 + step * len(shown) + 30
    low = math.log(min(interval[0] for _, _, interval in shown))
    span = (math.log(max(interval[1] for _, _, interval in shown)) - low) or 1.0

    def x(value: float) -> float:
        return left + (_WIDTH - left - 70) * (math.log(value) - low) / span

    parts = []
    for index, (other, perplexity, (least, most)) in enumerate(shown):
        y = _TOP + 20 + step * index
        colour = _OWN if other == cell else _OTHER
        name = other.path.removeprefix(f"{other.dataset}/")
        parts.append(_grid_line(left, y, _WIDTH - 70, y))
        parts.append(_text(left - 10, y + 4, name, "end", colour if other == cell else "#333"))
        parts.append(
            f'<line x1="{x(least):.1f}" y1="{y}" x2="{x(most):.1f}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(f'<circle cx="{x(perplexity):.1f}" cy="{y}" r="4" fill="{colour}"/>')
        parts.append(_text(_WIDTH - 62, y + 4, f"{perplexity:.1f}", "start", colour if other == cell else "#333"))
    return _page(height, f"{cell.dataset}: perplexity over all words, with its interval (logarithmic)", parts)


def _compares(cell: Cell, other: Cell) -> bool:
    same_seed = None in (cell.seed, other.seed) or cell.seed == other.seed
    same_technique = None in (cell.technique, other.technique) or cell.technique == other.technique
    pressing = other.method == PRETRAINED and cell.method != PRETRAINED
    return cell.dataset == other.dataset and same_technique and same_seed and not pressing


def _grid_line(x1: Any, y1: Any, x2: Any, y2: Any) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{_GRID}"/>'


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _page(height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>'
        f'<rect width="100%" height="100%" fill="#fff"/>{_text(12, 18, title, "start", "#111")}'
        f"{''.join(parts)}</svg>\n"
    )
