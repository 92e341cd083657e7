"""Plots that stand beside a run in MLflow: its training curve, and its perplexity among those of other methods. SVG,
numbers and names of cells only."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from tasks.records.cell import Cell
from tasks.records.cells import PRETRAINED
from tasks.results.plot_panel import Panel, scale_round
from tasks.results.summary.summary_file import summarised_cell

_WIDTH = 720
_STYLE = (
    ".own{--c:#0b5cad}.other{--c:#8a8f98}.valid{--c:#b3430c}text{font:12px sans-serif;fill:var(--c,#333)}"
    ".mark{fill:var(--c)}.grid{stroke:#e3e5e8}.joined,.interval{stroke:var(--c);stroke-width:2;fill:none}"
)


def curve_plot(cell: Cell, curve: Mapping[tuple[str, int], float]) -> str | None:
    """Loss of training and validation in nats a target over optimiser steps; ``None`` without two points."""
    lines = {
        name: sorted((step, value) for (each, step), value in curve.items() if each == name)
        for name in ("train_loss", "valid_loss")
    }
    points = [point for line in lines.values() for point in line]
    if len(points) < 2:
        return None
    panel = Panel(_WIDTH, 320, left=64, right=24, top=34)
    x = scale_round([0.0, *(float(step) for step, _ in points)], *panel.x_range, zero=True)
    y = scale_round([value for _, value in points], *panel.y_range)
    panel.x_axis(x, "optimiser steps")
    panel.y_axis(y)
    for line, kind in zip(lines.values(), ("own", "valid"), strict=True):
        if line:
            panel.path([(x(step), y(value)) for step, value in line], f"joined {kind}")
    for step, value in lines["valid_loss"]:
        panel.mark(x(step), y(value), "circle", "valid", f"{value:.2f} at step {step:,}")
    panel.text(_WIDTH - 24, 38, "training", "own", "end")
    panel.text(_WIDTH - 24, 54, "validation", "valid", "end")
    return _document(panel, f"{cell.path}: loss, nats a target")


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
    panel = Panel(_WIDTH, 54 + 22 * len(shown) + 38, left=250, right=70, top=34)
    x = scale_round([end for *_, ends in shown for end in ends], *panel.x_range, logarithmic=True)
    panel.x_axis(x, "perplexity")
    for place, (other, perplexity, (least, most)) in enumerate(shown):
        y, kind = panel.top + 20 + 22 * place, "own" if other == cell else "other"
        panel.text(panel.left - 10, y + 4, other.path.removeprefix(f"{other.dataset}/"), kind, "end")
        panel.line(x(least), y, x(most), y, f"interval {kind}")
        panel.mark(x(perplexity), y, "circle", kind, other.path)
        panel.text(_WIDTH - 62, y + 4, f"{perplexity:.1f}", kind)
    return _document(panel, f"{cell.dataset}: perplexity over all words, with its interval (logarithmic)")


def _compares(cell: Cell, other: Cell) -> bool:
    same_seed = None in (cell.seed, other.seed) or cell.seed == other.seed
    same_technique = None in (cell.technique, other.technique) or cell.technique == other.technique
    pressing = other.method == PRETRAINED and cell.method != PRETRAINED
    return cell.dataset == other.dataset and same_technique and same_seed and not pressing


def _document(panel: Panel, title: str) -> str:
    """The panel as a file that stands by itself."""
    size = f'width="{panel.width:g}" height="{panel.height:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {panel.width:g} {panel.height:g}">'
        f'<title>{escape(title)}</title><style>{_STYLE}</style><rect width="100%" height="100%" fill="#fff"/>'
        f'<text class="heading" x="12" y="18">{escape(title)}</text>{"".join(panel.parts)}</svg>\n'
    )
