"""Which detector to pick: F2 against speed, one panel per gold set, as an SVG file that stands by itself.

The file carries its own colours, for light and dark surroundings, and says all of its numbers in words.
"""

from collections.abc import Sequence
from html import escape

from dashboards.detectors import DetectorResult
from tasks.results.plot_panel import Panel, scale_round

_WIDTH, _HEIGHT = 430.0, 320.0
_MARGIN, _HEADING = 12.0, 24.0
_COLUMNS = 2
_COLOURS = 10
_SHAPES = {"list": "square", "tagger": "circle", "combination": "diamond"}
_LETTER, _LINE = 6.8, 13.0
"""About how wide a letter and how high a line of a label is."""

_STYLE = """
:root { --paper: #fff; --ink: #1d1c1a; --soft: #5c5952; --rule: #e2ded4;
  --c0: #9a6700; --c1: #bb4420; --c2: #2a76b4; --c3: #087a54; --c4: #8a3a97; --c5: #6a6a00; --c6: #a82b5c;
  --c7: #33706f; --c8: #7a5233; --c9: #5b55c0; }
@media (prefers-color-scheme: dark) { :root { --paper: #16171a; --ink: #ece9e2; --soft: #a9a59b; --rule: #32343a;
  --c0: #dcab3f; --c1: #f2855f; --c2: #7dbdf2; --c3: #45c795; --c4: #d292de; --c5: #c6c64a; --c6: #f083ab;
  --c7: #74bdbb; --c8: #cda27f; --c9: #a9a4f5; } }
text { font: 12px system-ui, "Segoe UI", Roboto, sans-serif; fill: var(--ink); }
.paper { fill: var(--paper); }
.heading { font-size: 14px; font-weight: 600; }
.tick, .axis { fill: var(--soft); font-size: 11px; }
.grid { stroke: var(--rule); stroke-width: 1; }
.label { fill: var(--c); font-size: 11.5px; font-weight: 600; paint-order: stroke; stroke: var(--paper);
  stroke-width: 3px; }
.interval { stroke: var(--c); stroke-width: 3; stroke-linecap: round; opacity: .45; }
.mark { fill: var(--c); stroke: var(--paper); stroke-width: 1; }
"""

_ON_AN_INTERVAL, _ON_A_MARK, _ON_A_LABEL, _OUTSIDE = 4.0, 10.0, 60.0, 100.0
"""What a place for a label costs, in half lines away from its mark."""
_STEPS = 40

_Box = tuple[float, float, float, float]
"""Left, upper, right and lower edge in pixels."""


def detector_plot(results: Sequence[DetectorResult]) -> str:
    """The SVG document; results without F2 or speed have no place in it and are named at the end."""
    shown = [result for result in results if result.f2 is not None and result.words_per_second]
    gold_sets = list(dict.fromkeys(result.gold_set for result in shown))
    techniques = sorted({result.technique for result in shown})
    colours = {technique: f"c{place % _COLOURS}" for place, technique in enumerate(techniques)}
    columns = min(_COLUMNS, max(len(gold_sets), 1))
    rows = -(-len(gold_sets) // columns)
    width = 2 * _MARGIN + columns * _WIDTH
    height = 2 * _MARGIN + rows * (_HEADING + _HEIGHT)
    parts = []
    for place, gold_set in enumerate(gold_sets):
        x = _MARGIN + place % columns * _WIDTH
        y = _MARGIN + place // columns * (_HEADING + _HEIGHT)
        panel = _panel([result for result in shown if result.gold_set == gold_set], shown, colours)
        heading = f'<text class="heading" x="8" y="16">{escape(gold_set)}</text>'
        parts.append(
            f'<g transform="translate({x:g} {y:g})">{heading}'
            f'<g transform="translate(0 {_HEADING:g})">{"".join(panel.parts)}</g></g>'
        )
    left_out = sorted({f"{result.technique} on {result.gold_set}" for result in results if result not in shown})
    said = " ".join(_said(gold_set, shown) for gold_set in gold_sets)
    if left_out:
        said += f" Without a number: {', '.join(left_out)}."
    rules = "".join(f".c{place} {{ --c: var(--c{place}); }}\n" for place in range(_COLOURS))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-labelledby="title description">'
        f'<title id="title">Token F2 against speed of masking, by gold set</title>'
        f'<desc id="description">{escape(said)}</desc><style>{_STYLE}{rules}</style>'
        f'<rect class="paper" width="{width:g}" height="{height:g}"/>{"".join(parts)}</svg>\n'
    )


def _panel(mine: Sequence[DetectorResult], shown: Sequence[DetectorResult], colours: dict[str, str]) -> Panel:
    """One gold set; all panels have the same axes."""
    panel = Panel(_WIDTH, _HEIGHT, left=44, right=32, top=10)
    x = scale_round([float(result.words_per_second or 0) for result in shown], *panel.x_range, logarithmic=True)
    limits = [limit for result in shown for limit in (result.f2 or 0.0, *(result.f2_interval or ()))]
    y = scale_round([*limits, 1.0], *panel.y_range)
    panel.x_axis(x, "words per second", count=5)
    panel.y_axis(y, count=6)
    panel.text(panel.left + 4, panel.top + 10, "token F2", "axis")
    taken: list[tuple[_Box, float]] = []
    for result in mine:
        at_x, at_y = x(float(result.words_per_second or 0)), y(result.f2 or 0.0)
        low, high = (y(limit) for limit in result.f2_interval or (result.f2 or 0.0, result.f2 or 0.0))
        taken.append(((at_x - 7, at_y - 7, at_x + 7, at_y + 7), _ON_A_MARK))
        taken.append(((at_x - 2, min(low, high), at_x + 2, max(low, high)), _ON_AN_INTERVAL))
    for result in mine:
        colour = colours[result.technique]
        at_x, at_y = x(float(result.words_per_second or 0)), y(result.f2 or 0.0)
        if result.f2_interval:
            panel.line(at_x, y(result.f2_interval[0]), at_x, y(result.f2_interval[1]), f"interval {colour}")
        panel.mark(at_x, at_y, _SHAPES[result.kind], colour, _numbers(result))
        left, base, anchor = _place_of_label(panel, result.technique, at_x, at_y, taken)
        panel.text(left, base, result.technique, f"label {colour}", anchor)
    return panel


def _place_of_label(
    panel: Panel, label: str, x: float, y: float, taken: list[tuple[_Box, float]]
) -> tuple[float, float, str]:
    """Where a label hides no mark and no other label: as near to its mark as can be."""
    width = _LETTER * len(label)
    candidates: list[tuple[float, tuple[float, float, str], _Box]] = []
    for step in range(_STEPS):
        for base in (y + 4 + step * _LINE / 2, y + 4 - step * _LINE / 2):
            for at, anchor, left in ((x + 10, "start", x + 10), (x - 10, "end", x - 10 - width)):
                box = (left, base - 10, left + width, base + 3)
                outside = box[0] < panel.left or box[2] > panel.width - 2
                outside = outside or box[1] < panel.top or box[3] > panel.y_range[0]
                cost = step + _OUTSIDE * outside + sum(cost for other, cost in taken if _overlap(box, other))
                candidates.append((cost, (at, base, anchor), box))
    # Of equal costs the first: right of the mark, and below before above.
    _, place, box = min(candidates, key=lambda candidate: candidate[0])
    taken.append((box, _ON_A_LABEL))
    return place


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _numbers(result: DetectorResult) -> str:
    interval = f" [{result.f2_interval[0]:.3f}, {result.f2_interval[1]:.3f}]" if result.f2_interval else ""
    return f"{result.technique}: F2 {result.f2:.3f}{interval}, {result.words_per_second:,.0f} words per second"


def _said(gold_set: str, shown: Sequence[DetectorResult]) -> str:
    return f"{gold_set}: " + "; ".join(_numbers(result) for result in shown if result.gold_set == gold_set) + "."
