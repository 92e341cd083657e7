"""What models were made to forget, from the reports of ``palimpsest compare-unlearning``."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from dashboards.plots import Drawing
from tasks.results.grid import ABSENT, Entry, Grid, GridRow, Heading
from tasks.results.plot_panel import Panel, scale_round, spread
from tasks.unlearning.compare_unlearning import STAGE
from tasks.unlearning.settings import MOST_BITS

_LEGEND = (
    "Exposure, in bits, is how far up a secret of three words stands among sentences of its form that nobody was "
    "trained on: 1 where nothing is known, {most:g} at most. Shown are medians of secrets that stood {times} times in"
    " the text, of a template's form and behind the beginning of an ordinary line. Relearned: of secrets that an "
    "attacker does not know, after {steps} steps on {share:.0%} of them that he does. Told apart: the area under the "
    "curve by which ordinary lines that were to be forgotten are told from lines that nobody was trained on; PrivLeak"
    " is 0 where that is as after retraining. Cost: processor time by that of retraining. Of each way the last "
    "strength that costs at most {budget:.0%} of the perplexity on valid text; ! where none does."
)
_AS_FAR = 1.1
"""Times the perplexity before: what costs more is out of the picture, and in the table."""
_ENDS = {"retrained": "Retrained without it", "start": "Before"}
_KINDS = {"template": "template", "ordinary": "ordinary beginning"}


def forgetting_reports(reports: Iterable[Mapping[str, Any]], dataset: str) -> list[Mapping[str, Any]]:
    """Those of a dataset, one a seed."""
    return [each for each in reports if each["stage"] == STAGE and each["cell"]["dataset"] == dataset]


def forgetting_grid(reports: Sequence[Mapping[str, Any]]) -> Grid:
    """One row a way to forget, means over seeds."""
    found = [each["measured"]["by_method"] for each in reports]
    times = reports[0]["parameters"]["repetitions"]
    seen = "/".join(map(str, times))
    headings = [
        Heading("Way to forget", words=True),
        Heading("perplexity", "to that before"),
        *(Heading(name, f"bits, {seen} times") for name in _KINDS.values()),
        *(Heading(f"{name}, relearned", "bits") for name in _KINDS.values()),
        Heading("told apart", "PrivLeak"),
        Heading("cost"),
    ]
    rows = [
        _row(name, [rows[name] for rows in found], times) for name in found[0] if all(name in rows for rows in found)
    ]
    seeds = f", means over {len(found)} seeds" if len(found) > 1 else ""
    return Grid(f"What a model still knows of what it was made to forget{seeds}", headings, rows)


def forgetting_legend(report: Mapping[str, Any]) -> str:
    """What the columns mean."""
    given = report["parameters"]
    return _LEGEND.format(
        most=MOST_BITS,
        times=", ".join(map(str, given["repetitions"])),
        steps=given["relearning_steps"],
        share=given["relearned_share"],
        budget=given["budget"],
    )


def forgetting_plots(reports: Sequence[Mapping[str, Any]]) -> list[Drawing]:
    """What is left of the secrets that stood most often in the text against what forgetting costs, a panel a kind: one
    mark a way, means over seeds; ways that no other is better than in both are joined by a line."""
    times = reports[0]["parameters"]["repetitions"][-1]
    found = [each["measured"]["by_method"] for each in reports]
    drawings = []
    for kind, title in _KINDS.items():
        points = {
            _name(name): (_mean(rows, f"exposure_{kind}_{times}"), _mean(rows, "ratio_to_start"), name in _ENDS)
            for name in found[0]
            if all(name in each for each in found) and (rows := [each[name] for each in found])
        }
        near = {
            name: (bits, ratio, is_end)
            for name, (bits, ratio, is_end) in points.items()
            if bits is not None and ratio is not None and ratio <= _AS_FAR
        }
        if len(near) > 1:
            drawings.append(_panel(f"{title}, {times} times", near))
    return drawings


def _panel(heading: str, points: Mapping[str, tuple[float, float, bool]]) -> Drawing:
    panel = Panel(560, 380, left=52, right=150, top=14)
    x = scale_round([0.0, *(bits for bits, *_ in points.values())], *panel.x_range, zero=True)
    y = scale_round([ratio for _, ratio, _ in points.values()], *panel.y_range)
    panel.x_axis(x, "bits of exposure", count=6)
    panel.y_axis(y, count=6)
    # Among ways from the model that had read the text; retraining is where they would like to be.
    ways = [(bits, ratio) for name, (bits, ratio, _) in points.items() if name != _ENDS["retrained"]]
    best = sorted(way for way in ways if not any(a <= way[0] and b <= way[1] and (a, b) != way for a, b in ways))
    if len(best) > 1:
        panel.path([(x(bits), y(ratio)) for bits, ratio in best], "joined oracle")
    places = spread([y(ratio) for _, ratio, _ in points.values()], panel.top + 6, panel.y_range[0] - 6, gap=13)
    said = []
    for (name, (bits, ratio, is_end)), at in zip(points.items(), places, strict=True):
        said.append(f"{name}: {bits:.1f} bits, {ratio:.3f} times the perplexity before")
        panel.mark(x(bits), y(ratio), "square" if is_end else "circle", "oracle" if is_end else "c0", said[-1])
        panel.text(x(bits) + 9, at + 4, name, "label oracle" if is_end else "label c0")
    return Drawing(heading, panel.svg(f"Left of secrets against perplexity, {heading}", "; ".join(said)))


def _name(name: str) -> str:
    return _ENDS.get(name, name.replace("_", " "))


def _mean(rows: Sequence[Mapping[str, Any]], key: str) -> float | None:
    values = [row[key] for row in rows if row.get(key) is not None]
    return fmean(values) if values else None


def _row(name: str, rows: Sequence[Mapping[str, Any]], times: Sequence[int]) -> GridRow:
    def mean(key: str) -> float | None:
        return _mean(rows, key)

    def bits(prefix: str) -> Entry:
        return Entry("/".join(_shown(mean(f"{prefix}_{count}"), ".1f") for count in times))

    interval = rows[0]["ratio_to_start_ci"] if len(rows) == 1 else None
    ends = "[{:.3f}, {:.3f}]".format(*interval) if interval else ""
    over = "" if all(row.get("within_budget", True) for row in rows) else "!"
    told, leakage = mean("membership"), mean("privacy_leakage")
    entries = [
        Entry(_shown(mean("ratio_to_start"), ".3f"), ends, over),
        *(bits(f"exposure_{kind}") for kind in _KINDS),
        *(bits(f"relearned.exposure_{kind}") for kind in _KINDS),
        Entry(f"{_shown(told, '.3f')} ({_shown(leakage, '+.0%')})"),
        Entry(_shown(mean("share_of_retraining"), ".0%")),
    ]
    return GridRow(_name(name), entries, group="reference" if name in _ENDS else "fill")


def _shown(value: float | None, written: str) -> str:
    return ABSENT if value is None else format(value, written)
