"""The plot of what is left of secrets against what forgetting them costs."""

from collections.abc import Sequence

from dashboards.plots import Drawing
from tasks.results.forgetting import RETRAINED, Left, Report, left_of_secrets
from tasks.results.plot_panel import Panel, scale_round, spread


def forgetting_plots(reports: Sequence[Report]) -> list[Drawing]:
    """A panel a kind of secrets, one mark a way, means over seeds; ways that no other is better than in both are joined
    by a line."""
    return [_panel(heading, ways) for heading, ways in left_of_secrets(reports).items()]


def _panel(heading: str, ways: Sequence[Left]) -> Drawing:
    panel = Panel(420, 340, left=46, right=14, top=14)
    x = scale_round([0.0, *(way.bits for way in ways)], *panel.x_range, zero=True)
    y = scale_round([way.ratio for way in ways], *panel.y_range)
    panel.x_axis(x, "bits of exposure; up: perplexity to that before", count=6)
    panel.y_axis(y, count=6)
    # Among ways from the model that had read the text; retraining is where they would like to be.
    points = [(way.bits, way.ratio) for way in ways if way.way != RETRAINED]
    best = sorted(way for way in points if not any(a <= way[0] and b <= way[1] and (a, b) != way for a, b in points))
    if len(best) > 1:
        panel.path([(x(bits), y(ratio)) for bits, ratio in best], "joined oracle")
    places = spread([y(way.ratio) for way in ways], panel.top + 6, panel.y_range[0] - 6, gap=13)
    said = []
    for way, at in zip(ways, places, strict=True):
        said.append(f"{way.way}: {way.bits:.1f} bits, {way.ratio:.3f} times the perplexity before")
        shape, colour = ("square", "oracle") if way.is_end else ("circle", "c0")
        panel.mark(x(way.bits), y(way.ratio), shape, colour, said[-1])
        # Towards the middle, where the room is.
        side, anchor = (9, "start") if x(way.bits) < sum(panel.x_range) / 2 else (-9, "end")
        panel.text(x(way.bits) + side, at + 4, way.way, f"label {colour}", anchor)
    return Drawing(heading, panel.svg(f"Left of secrets against perplexity, {heading}", "; ".join(said)))
