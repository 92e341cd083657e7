"""What masking costs and what it protects: perplexity against the share masked, and against coincidence."""

from dashboards.interval_plot import Drawing
from dashboards.plot_panel import Panel, label_width, scale_round, spread
from dashboards.series import series_of
from tasks.results.summary.estimate import estimate
from tasks.results.summary.summary_table import Table, technique_name


def masked_share_plot(table: Table) -> Drawing | None:
    """Perplexity of every method against the share of words that its technique masked; lines join the techniques.

    Oracle is a line; the pretrained model, often many times worse, is left to the table.
    """
    looks = series_of(table.lines)
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
            curves.append((looks[line.filler, line.method], sorted(points)))
    if not curves:
        return None
    labels = [look.label for look, _ in curves] + [label for label, *_ in references]
    panel = Panel(560, 360, left=46, right=label_width(labels), top=14)
    x = scale_round([share for _, points in curves for share, *_ in points] + [0.0], *panel.x_range, zero=True)
    values = [value for _, points in curves for _, value, _ in points] + [value for *_, value in references]
    y = scale_round(values, *panel.y_range, logarithmic=True)
    panel.x_axis(x, "share of words masked", percent=True, count=6)
    panel.y_axis(y, count=8)
    for _, method, value in references:
        panel.line(panel.left, y(value), panel.width - panel.right, y(value), f"reference {method}")
    for look, points in curves:
        panel.path([(x(share), y(value)) for share, value, _ in points], f"joined {look.colour}")
        for share, value, technique in points:
            said = f"{look.label}, {technique_name(technique)} ({share:.1%} masked): {value:.1f}"
            panel.mark(x(share), y(value), look.shape, look.colour, said)
    ends = [(look.label, look.colour, y(points[-1][1])) for look, points in curves]
    ends += [(label, method, y(value)) for label, method, value in references]
    for (label, colour, _), at in zip(
        ends, spread([end for *_, end in ends], panel.top, panel.y_range[0]), strict=True
    ):
        panel.text(panel.width - panel.right + 8, at + 4, label, f"label {colour}")
    said = "; ".join(
        f"{look.label}: " + ", ".join(f"{value:.1f} at {share:.1%}" for share, value, _ in points)
        for look, points in curves
    )
    return Drawing("", panel.svg("Perplexity against the share of words masked", said + "."))


def leakage_plots(table: Table) -> list[Drawing]:
    """Perplexity against the share of masked places where the fill happens to be the masked word, by technique."""
    looks = series_of(table.lines)
    drawings = []
    points = [
        (technique, line, estimate(line.by_technique[technique], "perplexity"), restored.value)
        for technique in table.techniques
        for line in table.lines
        if (restored := estimate(line.by_technique[technique], "restoration_rate")) is not None
    ]
    shown = [point for point in points if point[2] is not None]
    if not shown:
        return []
    for technique in table.techniques:
        mine = [(line, number.value, rate) for place, line, number, rate in shown if place == technique and number]
        if not mine:
            continue
        panel = Panel(360, 270, left=46, right=14, top=14)
        x = scale_round([rate for *_, rate in shown], *panel.x_range, zero=True)
        y = scale_round([number.value for _, _, number, _ in shown if number], *panel.y_range, logarithmic=True)
        panel.x_axis(x, "masked words that the fill happens to write", percent=True, count=4)
        panel.y_axis(y, count=6)
        guesses = [
            row["restoration_by_frequency"]
            for line, *_ in mine
            for row in line.by_technique[technique]
            if row["restoration_by_frequency"] is not None
        ]
        if guesses:
            panel.line(x(max(guesses)), panel.y_range[0], x(max(guesses)), panel.y_range[1], "reference pretrained")
        places = spread([y(value) for _, value, _ in mine], panel.top + 6, panel.y_range[0] - 6, gap=14)
        for (line, value, rate), at in zip(mine, places, strict=True):
            look = looks[line.filler, line.method]
            right = x(rate) < sum(panel.x_range) / 2
            panel.mark(
                x(rate), y(value), look.shape, look.colour, f"{line.label}: {value:.1f}, {rate:.2%} by coincidence"
            )
            panel.text(
                x(rate) + (9 if right else -9), at + 4, line.label, f"label {look.colour}", "start" if right else "end"
            )
        said = "; ".join(f"{line.label} {value:.1f} with {rate:.2%} by coincidence" for line, value, rate in mine)
        name = f"Perplexity against masked words written by coincidence, {technique_name(technique)}"
        drawings.append(Drawing(technique_name(technique), panel.svg(name, f"{said}.")))
    return drawings
