"""Scatter plots as SVG, by matplotlib, for the report page and the documentation.

Text stays text, ink is ``currentColor``, so that a plot follows the light or dark look of its page, and the text
alternative has every number.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from itertools import cycle
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
_INCHES = (8.0, 3.8)
_MARKS = "os^vD<>PX*hp"


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
    from matplotlib.figure import Figure

    with mpl.rc_context({**_SETTINGS, "svg.hashsalt": title}):
        size = _INCHES[0], _INCHES[1] * len(panels)
        drawing = Figure(figsize=size, layout="constrained", dpi=72)
        grid = drawing.subplots(len(panels), squeeze=False, sharex=True, sharey=True)
        for axes, (heading, points) in zip(grid.flat, panels.items(), strict=True):
            axes.set_title(heading, loc="left", fontweight="bold")
            axes.set(xlabel=x.title, ylabel=y.title)
            axes.tick_params(labelbottom=True)
            _draw(axes, points, x)
        return _svg(drawing, f"{title}. {_said(panels, x, y)}")


def standalone(svg: str) -> str:
    """The plot as a file of its own, with colours for light and dark surroundings."""
    start, end, rest = svg.partition(">")
    return f"{start}{end}{_STYLE}{rest}\n"


def _draw(axes: "Axes", points: Sequence[Point], x: Axis) -> None:
    """Draw marks with bars, and a legend next to them, the highest first."""
    from matplotlib.ticker import FuncFormatter

    axes.margins(0.12, 0.1)
    for mark, point in zip(cycle(_MARKS), sorted(points, key=lambda point: -point.y.value), strict=False):
        colour = _ACCENT if point.marked else _INK
        axes.hlines(point.y.value, *_ends(point.x), color=colour, alpha=0.4)
        axes.vlines(point.x.value, *_ends(point.y), color=colour, alpha=0.4)
        axes.plot(point.x.value, point.y.value, mark, color=colour, linestyle="", label=point.label)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, labelcolor="linecolor")
    if x.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    if x.chance is not None:
        axes.axvline(x.chance, color=_INK, linestyle=":", linewidth=1)
        axes.annotate("chance", (x.chance, 1), (4, -8), xycoords=("data", "axes fraction"), textcoords="offset points")


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
