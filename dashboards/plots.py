"""Scatter plots as SVG, by matplotlib, for the report page and the documentation.

Text stays text, ink is ``currentColor``, so that a plot follows the light or dark look of its page, and the text
alternative has every number.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from tasks.results.summary.estimate import Estimate
from tasks.results.tables import number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _ACCENT = "#010203", "#040506"
"""Placeholders for the colours of the page, which matplotlib does not know."""
_COLOURS = {_INK: "currentColor", _ACCENT: "var(--accent, #a3480f)"}
_STYLE = (
    "<style>svg{color:#1d1c1a;background:#fff}"
    "@media (prefers-color-scheme:dark){svg{color:#ece9e2;background:#16171a;--accent:#e7a977}}</style>"
)
_SETTINGS: dict[Any, Any] = {
    **{"svg.fonttype": "none", "font.size": 9, "axes.linewidth": 0.6, "axes.grid": True, "grid.alpha": 0.15},
    **{f"{name}.color": _INK for name in ("text", "xtick", "ytick", "grid")},
    **{f"axes.{name}": _INK for name in ("edgecolor", "labelcolor")},
    **{f"axes.spines.{side}": False for side in ("top", "right")},
}
_COLUMNS, _INCHES = 2, (6.4, 3.8)
_ON_A_BAR, _ON_A_NAME, _OUTSIDE = 3, 50, 100
"""Costs of a position for a name, in steps away from its mark."""


@dataclass(frozen=True, slots=True)
class Point:
    """A mark with its name and its intervals."""

    label: str
    x: Estimate
    y: Estimate
    marked: bool = False
    """Whether the plot highlights it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis with its title."""

    title: str
    digits: int = 1
    logarithmic: bool = False
    chance: float | None = None
    """A value with a line of its own."""


def figure(panels: Mapping[str, Sequence[Point]], title: str, x: Axis, y: Axis) -> str:
    """An SVG element with a panel for each heading; all panels have the same axes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": title}):
        drawing = Figure(figsize=(_INCHES[0] * columns, _INCHES[1] * lines), layout="constrained", dpi=72)
        canvas = FigureCanvasAgg(drawing)
        grid = drawing.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
        for place, (heading, axes) in enumerate(zip(panels, grid.flat, strict=False)):
            axes.set_title(heading, loc="left", fontweight="bold")
            axes.set_xlabel(x.title)
            axes.set_ylabel(y.title if place % columns == 0 else "")
            axes.tick_params(labelbottom=True)
            _draw(axes, panels[heading], x)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        drawing.draw_without_rendering()
        # Positions of names are in pixels, so nothing may move from here on.
        drawing.set_layout_engine("none")
        for axes, points in zip(grid.flat, panels.values(), strict=False):
            _write_names(axes, points, canvas.get_renderer())
        return _svg(drawing, f"{title}. {_said(panels, x, y)}")


def standalone(svg: str) -> str:
    """The plot as a file of its own, with colours for light and dark surroundings."""
    start, end, rest = svg.partition(">")
    return f"{start}{end}{_STYLE}{rest}\n"


def _draw(axes: "Axes", points: Sequence[Point], x: Axis) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.margins(0.12, 0.1)
    for point in points:
        colour, mark, size = (_ACCENT, "D", 7) if point.marked else (_INK, "o", 5)
        axes.hlines(point.y.value, *_ends(point.x), color=colour, alpha=0.4)
        axes.vlines(point.x.value, *_ends(point.y), color=colour, alpha=0.4)
        axes.plot(point.x.value, point.y.value, mark, markersize=size, color=colour)
    if x.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if x.chance is not None:
        axes.axvline(x.chance, color=_INK, linestyle=":", linewidth=1)
        axes.annotate("chance", (x.chance, 1), (4, -8), xycoords=("data", "axes fraction"), textcoords="offset points")


def _write_names(axes: "Axes", points: Sequence[Point], renderer: Any) -> None:  # noqa: ANN401 - matplotlib's, untyped
    """Write each name next to its mark, where it covers no mark and no other name, and few bars."""
    from matplotlib.transforms import Bbox

    def pixels(x: float, y: float) -> tuple[float, float]:
        found = axes.transData.transform((x, y))
        return float(found[0]), float(found[1])

    taken: list[tuple[Bbox, float]] = []
    for point in points:
        (left, right), (low, high) = (_ends(number) for number in (point.x, point.y))
        x, y = pixels(point.x.value, point.y.value)
        taken.append((Bbox.from_extents(x - 6, y - 6, x + 6, y + 6), _ON_A_NAME))
        taken.append((Bbox.from_extents(*pixels(left, point.y.value), *pixels(right, point.y.value)), _ON_A_BAR))
        taken.append((Bbox.from_extents(*pixels(point.x.value, low), *pixels(point.x.value, high)), _ON_A_BAR))
    for point in sorted(points, key=lambda point: -point.y.value):
        weight = "bold" if point.marked else "normal"
        text = axes.text(0, 0, point.label, transform=None, color=_ACCENT if point.marked else _INK, fontweight=weight)
        size, (x, y) = text.get_window_extent(renderer), pixels(point.x.value, point.y.value)
        found: list[tuple[float, int, Bbox]] = []
        for step in range(24):
            for bottom in (y + 5 + 5 * step, y - 5 - size.height - 5 * step):
                for left in (x + 7, x - 7 - size.width):
                    box = Bbox.from_bounds(left, bottom, size.width, size.height)
                    outside = box.x0 < axes.bbox.x0 or box.x1 > axes.bbox.x1
                    outside = outside or box.y0 < axes.bbox.y0 or box.y1 > axes.bbox.y1
                    cost = step + _OUTSIDE * outside + sum(cost for other, cost in taken if box.overlaps(other))
                    found.append((cost, len(found), box))
        box = min(found)[2]
        text.set_position((box.x0, box.y0 - size.y0))
        taken.append((box, _ON_A_NAME))


def _ends(number: Estimate) -> tuple[float, float]:
    low, high = (number.value if end is None else end for end in (number.low, number.high))
    return low, high


def _svg(drawing: "Figure", said: str) -> str:
    stream = StringIO()
    drawing.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    body = stream.getvalue().partition("<svg")[2].partition(">")[2]
    body = re.sub(r"\s*<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style.*?</defs>", "", body, flags=re.DOTALL)
    # Names of groups repeat in each plot; the salt makes the digits of those that are referenced.
    body = re.sub(r' id="[\w.]*_\w*"|font-family: [^;"]*;? ?', "", body).replace("xlink:href", "href")
    for stand_in, colour in _COLOURS.items():
        body = body.replace(stand_in, colour)
    body = re.sub(r"\n\s*", "\n", body).strip()
    width, height = (72 * inches for inches in drawing.get_size_inches())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'font-family="system-ui, sans-serif" aria-label="{escape(said)}">{body}'
    )


def _said(panels: Mapping[str, Sequence[Point]], x: Axis, y: Axis) -> str:
    """All numbers in words."""
    found = []
    for heading, points in panels.items():
        numbers = ((each.label, number_text(each.x, x.digits), number_text(each.y, y.digits)) for each in points)
        said = "; ".join(f"{label} {of_x}, {of_y}" for label, of_x, of_y in numbers)
        found.append(f"{heading}: {said}." if heading else f"{said}.")
    return f"{x.title}, {y.title}: {' '.join(found)}"
