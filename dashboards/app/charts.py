"""The app's plots, drawn by the browser from the numbers of the tables, and those tables with their download."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from tasks.results.forgetting import Left
from tasks.results.grid import Grid
from tasks.results.measure import Measure
from tasks.results.tables import Line, Table

if TYPE_CHECKING:
    import altair as alt
    import numpy as np
    import pandas as pd

    Layers = alt.LayerChart | alt.FacetChart

_GROUPS = {"reference": "#77736a", "baseline": "#bb4420", "fill": "#2a76b4", "control": "#8a3a97"}
"""Colours of the report page that stand out on light and on dark ground."""
_ROW, _AROUND = 22, 200
"""Height of a line of a panel, and of its heading, axis and legend together, in pixels."""
_GREY, _BLUE, _RED = "#77736a", "#2a76b4", "#bb4420"


def interval_charts(one: Table, lines: Sequence[Line], measure: Measure) -> "list[tuple[str, Layers]]":
    """The measure of every line with its interval: heading and Altair chart of each technique, all on one scale."""
    found = {
        str(heading): _intervals(lines, technique, measure)
        for technique, heading in zip(one.techniques, one.headings()[1:], strict=True)
    }
    ends = [point[end] for points in found.values() for point in points for end in ("low", "high")]
    if not ends:
        return []
    low, high = min(ends), max(ends)
    logarithmic = measure.logarithmic and low > 0
    room = 0.04 * (high - low) or abs(high) * 0.1 or 1.0
    limits = [low / (high / low) ** 0.04, high * (high / low) ** 0.04] if logarithmic else [low - room, high + room]
    if limits[0] == limits[1]:
        limits = [low - room, high + room]
    kind = "log" if logarithmic else "linear"
    kinds = [kind for kind in _GROUPS if any(point["kind"] == kind for points in found.values() for point in points)]
    return [
        (heading, _interval_panel(heading, points, [line.label for line in lines], measure, kind, limits, kinds))
        for heading, points in found.items()
    ]


def _intervals(lines: Sequence[Line], technique: str, measure: Measure) -> list[dict[str, Any]]:
    points = []
    for line in lines:
        number = measure.estimate(line.by_technique[technique])
        if number is not None:
            points.append(
                {
                    "method": line.label,
                    "kind": line.group,
                    "value": number.value,
                    "low": number.low if number.low is not None else number.value,
                    "high": number.high if number.high is not None else number.value,
                }
            )
    return points


def _interval_panel(
    heading: str,
    points: Sequence[Mapping[str, Any]],
    labels: Sequence[str],
    measure: Measure,
    kind: str,
    limits: Sequence[float],
    kinds: Sequence[str],
) -> "Layers":
    import altair as alt
    import pandas as pd

    scale = alt.Scale(type=kind, domain=list(limits), nice=False)  # type: ignore[arg-type]
    x_axis = alt.Axis(tickCount=4, labelOverlap=True)
    frame = pd.DataFrame(points, columns=["method", "kind", "value", "low", "high"])
    base = alt.Chart(frame).encode(
        y=alt.Y(
            "method:N",
            scale=alt.Scale(domain=list(labels)),
            title=None,
            axis=alt.Axis(labelLimit=150, labelOverlap=False),
        ),
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=list(kinds), range=[_GROUPS[kind] for kind in kinds]),
            legend=alt.Legend(title=None, orient="bottom", columns=2),
        ),
        tooltip=["method", _number("value"), _number("low"), _number("high")],
    )
    layers = alt.layer(
        base.mark_rule(strokeWidth=3, opacity=0.5).encode(x=alt.X("low:Q", scale=scale), x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(
            x=alt.X("value:Q", scale=scale, title=measure.title, axis=x_axis)
        ),
    )
    return layers.properties(height=_ROW * len(labels) + _AROUND, title=alt.Title(heading, fontSize=13, anchor="start"))


def difference_histogram(values: "np.ndarray", title: str, counted: str) -> "alt.Chart":
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


def sentence_scatter(frame: "pd.DataFrame") -> "Layers":
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


def forgetting_scatter(ways: Sequence[Left]) -> "Layers":
    """What is left of secrets against the perplexity by that before, a mark a way (Altair chart)."""
    import altair as alt
    import pandas as pd

    frame = pd.DataFrame([{"way": w.way, "bits": w.bits, "ratio": w.ratio, "end": w.is_end} for w in ways])
    base = alt.Chart(frame).encode(
        x=alt.X("bits:Q", title="bits of exposure"),
        y=alt.Y("ratio:Q", title="perplexity by that before", scale=alt.Scale(zero=False)),
        color=alt.Color(
            "end:N", scale=alt.Scale(domain=[True, False], range=[_GROUPS["reference"], _GROUPS["fill"]]), legend=None
        ),
        tooltip=["way", _number("bits"), _number("ratio")],
    )
    labels = base.mark_text(align="left", dx=8).encode(text="way:N")
    return alt.layer(base.mark_point(filled=True, size=70, opacity=1), labels).properties(height=420)


def curve_chart(curves: Mapping[str, Sequence[tuple[int, float]]], title: str) -> "alt.Chart":
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
                "run:N", sort=list(curves), legend=alt.Legend(title=None, orient="bottom", columns=1, labelLimit=280)
            ),
            tooltip=["run", "step", _number("value")],
        )
        # A line of the legend for each run, below each other: a narrow page has room for no more.
        .properties(height=320 + 20 * len(curves))
    )


def _number(name: str) -> "alt.Tooltip":
    import altair as alt

    return alt.Tooltip(f"{name}:Q", format=",.4~g")


def table(
    frame: "pd.DataFrame", name: str, *, title: str, columns: dict[str, Any] | None = None, height: int | None = None
) -> None:
    """Show a table that can be sorted, with a button that downloads all of it as CSV.

    ``name``: of the file, without ending. ``title``: what the table is, also for those
    who cannot see it. ``columns``: Streamlit's settings of columns by name.
    """
    st.dataframe(
        frame,
        hide_index=True,
        column_config=columns,
        height=height if height is not None else "auto",
        placeholder="–",
        alt=title,
        key=f"table_{name}",
    )
    download(frame, name)


def grid_table(grid: Grid, name: str) -> None:
    """Show a table of texts as it stands in all views, with its download; ``name``: of the file, without ending."""
    import pandas as pd

    first, *headings = map(str, grid.headings)
    cells = zip(headings, zip(*grid.texts(), strict=True), strict=True)
    frame = pd.DataFrame({first: [row.label for row in grid.rows], **dict(cells)})
    st.table(frame.set_index(first), border="horizontal")
    download(frame, name)


def download(frame: "pd.DataFrame", name: str) -> None:
    """The button alone; numbers are written as they were computed, not as they are shown."""
    st.download_button(
        f"Download {name}.csv",
        frame.to_csv(index=False),
        file_name=f"{name}.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
        key=f"download_{name}",
    )
