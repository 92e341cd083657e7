"""One panel of a plot as inline SVG: scales, axes, grid, marks and labels.

Colours come from the page's style sheet (classes ``c0`` to ``c11`` set the colour of a series), so a plot follows the
light, dark and printed look of the page. Sizes are pixels of the panel's own width; a page shows several narrow panels
beside each other, or below each other on a narrow screen, so that text stays readable.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

_STEPS = (1, 2, 2.5, 5, 10)
_LABEL_GAP = 13.0
_LABEL_SPACE = 14.0
_LABEL_CHARACTER = 6.9
"""Width of a character of the bold labels, in pixels; a little more than the mean of common fonts."""


@dataclass(frozen=True)
class Scale:
    """Maps values to pixels, linearly or by their logarithm."""

    low: float
    high: float
    start: float
    """Pixel of ``low``."""
    end: float
    """Pixel of ``high``."""
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; values beyond the ends lie at the ends."""
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(at)
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, count: int) -> list[float]:
        """About ``count`` round values within the scale."""
        if self.logarithmic and self.high / self.low > 3:
            return self._logarithmic_ticks(count)
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        magnitude = 10 ** math.floor(math.log10(span / count))
        step = next(magnitude * step for step in _STEPS if span / (magnitude * step) <= count)
        first = math.ceil(self.low / step - 1e-9)
        return [step * index for index in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def _logarithmic_ticks(self, count: int) -> list[float]:
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors in ((1, 1.5, 2, 3, 4, 5, 7), (1, 2, 3, 5), (1, 2, 5), (1, 3), (1,)):
            ticks = [factor * 10.0**decade for decade in decades for factor in factors]
            ticks = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(ticks) <= count:
                return ticks
        return ticks[:: math.ceil(len(ticks) / count)]


def scale_round(
    values: Sequence[float], start: float, end: float, *, logarithmic: bool = False, zero: bool = False
) -> Scale:
    """A scale that holds all values with a little room at both ends; ``zero``: it begins at 0."""
    low, high = min(values), max(values)
    if logarithmic:
        room = (high / low) ** 0.06 if high > low else 1.1
        return Scale(low / room, high * room, start, end, True)
    room = 0.06 * (high - low) or abs(high) * 0.1 or 1.0
    return Scale(0.0 if zero else low - room, high + room, start, end)


def tick_text(value: float, percent: bool = False) -> str:
    """A tick's label without trailing zeros."""
    if percent:
        return f"{value * 100:.4g}%"
    return f"{value:,.4g}" if value < 10_000 else f"{value:,.0f}"


@dataclass
class Panel:
    """A drawing under construction; ``svg`` gives the whole."""

    width: float
    height: float
    left: float = 46.0
    right: float = 12.0
    top: float = 12.0
    bottom: float = 38.0
    parts: list[str] = field(default_factory=list)

    @property
    def x_range(self) -> tuple[float, float]:
        """Left and right pixel of the plotting area."""
        return self.left, self.width - self.right

    @property
    def y_range(self) -> tuple[float, float]:
        """Bottom and top pixel of the plotting area: values grow upwards."""
        return self.height - self.bottom, self.top

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """A straight line; ``kind`` is the class in the style sheet."""
        self.parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def band(self, y: float, height: float) -> None:
        """A tinted stripe across the panel, from ``y`` downwards."""
        self.parts.append(f'<rect class="band" x="0" y="{y:.1f}" width="{self.width:g}" height="{height:g}"/>')

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """A label whose base line begins, ends or is centred at the point."""
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>')

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """A line through points."""
        steps = " L".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<path class="{kind}" d="M{steps}"/>')

    def mark(self, x: float, y: float, shape: str, kind: str, said: str) -> None:
        """A mark with the words that appear when a pointer rests on it."""
        self.parts.append(f'<g class="mark {kind}"><title>{escape(said)}</title>{_shape(x, y, shape)}</g>')

    def x_axis(self, scale: Scale, title: str, *, count: int = 5, percent: bool = False) -> None:
        """Grid lines, labels and title below."""
        bottom, top = self.y_range
        for tick in scale.ticks(count):
            self.line(scale(tick), bottom, scale(tick), top, "grid")
            self.text(scale(tick), bottom + 15, tick_text(tick, percent), "tick", "middle")
        self.text(sum(self.x_range) / 2, self.height - 5, title, "axis", "middle")

    def y_axis(self, scale: Scale, *, count: int = 5) -> None:
        """Grid lines and labels on the left."""
        left, right = self.x_range
        for tick in scale.ticks(count):
            self.line(left, scale(tick), right, scale(tick), "grid")
            self.text(left - 6, scale(tick) + 4, tick_text(tick), "tick", "end")

    def svg(self, name: str, description: str) -> str:
        """The panel as an ``svg`` element that says what it shows to those who cannot see it."""
        return (
            f'<svg viewBox="0 0 {self.width:g} {self.height:g}" role="img" aria-label="{escape(name)}. '
            f'{escape(description)}" preserveAspectRatio="xMidYMid meet">{"".join(self.parts)}</svg>'
        )


def _shape(x: float, y: float, shape: str) -> str:
    match shape:
        case "square":
            return f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9"/>'
        case "diamond":
            return f'<path d="M{x:.1f},{y - 6.2:.1f} l6.2,6.2 l-6.2,6.2 l-6.2,-6.2 z"/>'
        case "triangle":
            return f'<path d="M{x:.1f},{y - 5.8:.1f} l5.6,10 l-11.2,0 z"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5"/>'


def label_width(labels: Iterable[str]) -> float:
    """Pixels that labels at the right edge of a panel need, with the gap before them."""
    return _LABEL_SPACE + _LABEL_CHARACTER * max(map(len, labels), default=0)


def spread(positions: Sequence[float], low: float, high: float, gap: float = _LABEL_GAP) -> list[float]:
    """Move labels apart until none is nearer than ``gap`` to another, keeping their order and staying within limits.

    Pixels grow downwards: ``low`` is the upper limit of the area.
    """
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    moved = [min(max(positions[index], low), high) for index in order]
    for place in range(1, len(moved)):
        moved[place] = max(moved[place], moved[place - 1] + gap)
    if moved and moved[-1] > high:
        moved[-1] = high
        for place in range(len(moved) - 2, -1, -1):
            moved[place] = min(moved[place], moved[place + 1] - gap)
    result = [0.0] * len(positions)
    for place, index in enumerate(order):
        result[index] = moved[place]
    return result
