"""The app's plots, drawn by the browser from the numbers of the tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.app.measures import Measure
from dashboards.result_tables import group_of
from tasks.reports.summary_table import Line, Table, headings

_GROUPS = {"reference": "#77736a", "baseline": "#bb4420", "filler": "#2a76b4", "control": "#8a3a97"}
"""Colours of the report page that stand out on light and on dark ground."""
_WIDTH = 630
_GREY, _BLUE, _RED = "#77736a", "#2a76b4", "#bb4420"


def interval_chart(one: Table, lines: Sequence[Line], measure: Measure) -> Any:
    """The measure of every line with its interval, a panel for each technique (Altair chart)."""
    import altair as alt
    import pandas as pd

    found: list[dict[str, Any]] = []
    for technique, heading in zip(one.techniques, headings(one), strict=True):
        for line in lines:
            number = measure.estimate(line.by_technique[technique])
            if number is not None:
                found.append(
                    {
                        "technique": heading,
                        "method": line.label,
                        "kind": group_of(line),
                        "value": number.value,
                        "low": number.low if number.low is not None else number.value,
                        "high": number.high if number.high is not None else number.value,
                    }
                )
    logarithmic = measure.logarithmic and all(line["low"] > 0 for line in found)
    scale = alt.Scale(type="log", nice=False) if logarithmic else alt.Scale(zero=False)
    kinds = [kind for kind in _GROUPS if any(line["kind"] == kind for line in found)]
    base = alt.Chart(pd.DataFrame(found)).encode(
        y=alt.Y("method:N", sort=[line.label for line in lines], title=None, axis=alt.Axis(labelLimit=220)),
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=kinds, range=[_GROUPS[kind] for kind in kinds]),
            legend=alt.Legend(title=None, orient="bottom"),
        ),
        tooltip=["technique", "method", _number("value"), _number("low"), _number("high")],
    )
    layers = alt.layer(
        base.mark_rule(strokeWidth=3, opacity=0.5).encode(x=alt.X("low:Q", scale=scale, title=None), x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=alt.X("value:Q", scale=scale, title=None)),
    )
    # As wide as the page on a laptop beside the choices, all panels together.
    width = max(160, _WIDTH // max(1, len(one.techniques)))
    return layers.properties(width=width, height=alt.Step(22)).facet(
        column=alt.Column("technique:N", sort=headings(one), title=measure.title)
    )


def difference_histogram(values: Any, title: str, counted: str) -> Any:
    """How often a difference of a size (N,) occurs; left of 0 run B is better (Altair chart).

    ``counted``: what is counted, ``sentences`` or ``utterances``. The outermost bars hold what lies beyond them too.
    """
    import altair as alt
    import numpy as np
    import pandas as pd

    limit = float(np.quantile(np.abs(values), 0.99)) or 1.0
    axis = alt.Axis()
    if np.issubdtype(values.dtype, np.integer):
        # Counts: a bar for each, and no labels between them.
        axis = alt.Axis(tickMinStep=1, format="d")
        edges = np.arange(-np.ceil(limit) - 0.5, np.ceil(limit) + 1.0)
    else:
        edges = np.linspace(-limit, limit, 41)
    counts, edges = np.histogram(np.clip(values, edges[0], edges[-1]), bins=edges)
    middle = (edges[:-1] + edges[1:]) / 2
    better = np.select([middle < -1e-9, middle > 1e-9], ["B better", "A better"], "alike")
    frame = pd.DataFrame({"from": edges[:-1], "to": edges[1:], "count": counts, "better": better})
    colours = {"B better": _BLUE, "A better": _RED, "alike": _GREY}
    kinds = [kind for kind in colours if (better == kind).any()]
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X("from:Q", bin="binned", title=title, axis=axis),
            x2="to:Q",
            y=alt.Y("count:Q", title=counted),
            color=alt.Color(
                "better:N",
                scale=alt.Scale(domain=kinds, range=[colours[kind] for kind in kinds]),
                legend=alt.Legend(title=None, orient="bottom"),
            ),
            tooltip=[_number("from"), _number("to"), "count"],
        )
        .properties(height=260)
    )


def sentence_scatter(frame: Any) -> Any:
    """Perplexity of every sentence under run A and under run B; below the line B is better (Altair chart)."""
    import altair as alt
    import pandas as pd

    scale = alt.Scale(type="log", nice=False)
    low = min(frame["perplexity_a"].min(), frame["perplexity_b"].min())
    high = max(frame["perplexity_a"].max(), frame["perplexity_b"].max())
    ends = pd.DataFrame({"perplexity_a": [low, high], "perplexity_b": [low, high]})
    line = (
        alt.Chart(ends)
        .mark_line(color=_GREY, strokeDash=[5, 4])
        .encode(
            x=alt.X("perplexity_a:Q", scale=scale, title="perplexity of the sentence, A"),
            y=alt.Y("perplexity_b:Q", scale=scale, title="perplexity of the sentence, B"),
        )
    )
    points = (
        alt.Chart(frame)
        .mark_circle(size=14, opacity=0.4, color=_BLUE)
        .encode(
            x=alt.X("perplexity_a:Q", scale=scale),
            y=alt.Y("perplexity_b:Q", scale=scale),
            tooltip=["line", "targets", _number("perplexity_a"), _number("perplexity_b")],
        )
    )
    return alt.layer(line, points).properties(height=260)


def curve_chart(curves: Mapping[str, Sequence[tuple[int, float]]], title: str) -> Any:
    """Training curves over optimiser steps, one line for each run (Altair chart)."""
    import altair as alt
    import pandas as pd

    points = [{"run": label, "step": step, "value": value} for label, curve in curves.items() for step, value in curve]
    return (
        alt.Chart(pd.DataFrame(points, columns=["run", "step", "value"]))
        .mark_line(point=alt.OverlayMarkDef(size=16), interpolate="linear")
        .encode(
            x=alt.X("step:Q", title="optimiser step"),
            y=alt.Y("value:Q", title=title, scale=alt.Scale(zero=False)),
            color=alt.Color(
                "run:N", sort=list(curves), legend=alt.Legend(title=None, orient="bottom", columns=2, labelLimit=420)
            ),
            tooltip=["run", "step", _number("value")],
        )
        .properties(height=380)
    )


def _number(name: str) -> Any:
    import altair as alt

    return alt.Tooltip(f"{name}:Q", format=",.4~g")
