"""Two runs side by side, down to the sentences of the test text and the utterances of the test speech."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboards.app.charts import difference_histogram, sentence_scatter, table
from dashboards.app.differences import (
    Comparison,
    groups_of,
    has_scores,
    has_word_errors,
    sentence_differences,
    utterance_differences,
)
from dashboards.app.experiment import all_runs, parameters
from dashboards.app.result_rows import in_table_order, summary_by_key
from dashboards.app.tracked_runs import TrackedRun, run_page
from tasks.errors import PalimpsestError
from tasks.records.cells import is_filled
from tasks.results.measure import APP
from tasks.results.measures import measures_of

_STATE_TAGS = {"commit": "commit", "dirty": "uncommitted changes", "dvc_stage": "DVC stage", "protocol": "protocol"}


def show() -> None:
    """Draw the page."""
    st.title("Compare two runs", anchor=False)
    runs = [run for run in in_table_order(all_runs(), parameters().compare) if run.measured]
    # Those of an earlier state behind those of this one.
    runs.sort(key=lambda run: not run.current)
    by_key = {run.key: run for run in runs}
    if len(by_key) < 2:
        st.info("MLflow holds fewer than two measured runs: 'palimpsest run' makes them.")
        return
    first, second = _choose(by_key)
    if first.run_id == second.run_id:
        st.info("A and B are the same run: choose another.")
        return
    _side_by_side(first, second)
    _sentences(first, second)
    _utterances(first, second)
    _settings(first, second)


def _choose(runs: Mapping[str, TrackedRun]) -> tuple[TrackedRun, TrackedRun]:
    keys = list(runs)
    baseline = next((key for key, run in runs.items() if run.cell.method == "baseline1"), keys[0])
    cell = runs[baseline].cell
    filled = [
        key
        for key, run in runs.items()
        if is_filled(run.cell) and (run.cell.dataset, run.cell.technique) == (cell.dataset, cell.technique)
    ]

    def rank(key: str) -> tuple[bool, float]:
        """Of this state of the experiment first, and the lowest perplexity among those."""
        return not runs[key].current, runs[key].metrics.get("perplexity", 0.0)

    proposed = [baseline, min(filled, key=rank) if filled else keys[1]]
    chosen = []
    for column, end, key in zip(st.columns(2), "AB", proposed, strict=True):
        with column:
            picked = st.selectbox(
                f"Run {end}",
                keys,
                index=keys.index(key),
                format_func=lambda key: runs[key].label,
                key=end.lower(),
                bind="query-params",
                persist_state="session",
            )
            chosen.append(runs[picked or key])
    return chosen[0], chosen[1]


def _side_by_side(first: TrackedRun, second: TrackedRun) -> None:
    import pandas as pd

    st.subheader("Numbers", anchor=False)
    lines = []
    for measure in measures_of(APP):
        factor = 100 if measure.share else 1
        values = [run.metrics.get(measure.name) for run in (first, second)]
        if values == [None, None]:
            continue
        line: dict[str, Any] = {"measure": measure.title}
        for end, run in (("A", first), ("B", second)):
            for column, name in ((end, ""), (f"{end} low", "_low"), (f"{end} high", "_high")):
                value = run.metrics.get(f"{measure.name}{name}")
                line[column] = None if value is None else value * factor
        both = None not in values
        line["B - A"] = line["B"] - line["A"] if both else None
        line["B / A"] = line["B"] / line["A"] if both and line["A"] else None
        lines.append(line)
    number = st.column_config.NumberColumn(format="localized")
    table(
        pd.DataFrame(lines),
        "side_by_side",
        title="All numbers of run A and run B with the ends of their intervals",
        columns={name: number for name in lines[0] if name != "measure"} if lines else None,
        height=285,
    )


def _sentences(first: TrackedRun, second: TrackedRun) -> None:
    st.subheader("Sentences of the test text", anchor=False)
    if not _on_this_machine(first, second, [has_scores(run.cell) for run in (first, second)], "scores of sentences"):
        return
    try:
        groups = groups_of(first.cell, second.cell)
        group = st.segmented_control(
            "Words",
            list(groups),
            format_func=groups.__getitem__,
            default="all",
            key="words",
            bind="query-params",
            persist_state="session",
        )
        found = sentence_differences(first.cell, second.cell, group or "all", parameters().evaluation)
    except PalimpsestError as error:
        st.warning(str(error))
        return
    text = "Perplexity of B by that of A" + _value(found, "{:.3f}") + _verdict(found, 1.0, "perplexity")
    better = int((found.frame["difference"] < 0).sum())
    st.markdown(f"{text} B is better on {better:,} of {len(found.frame):,} sentences.")
    left, right = st.columns(2)
    with left:
        st.altair_chart(
            difference_histogram(found.frame["difference"].to_numpy(), "nats a target, B - A", "sentences"),
            alt="How often the two differ by how much, in nats a target",
        )
    with right:
        st.altair_chart(sentence_scatter(found.frame), alt="Perplexity of each sentence under A and under B")
    table(
        found.frame,
        "sentences",
        title="Perplexities of every sentence, the largest difference first",
        columns={
            "line": st.column_config.NumberColumn("line of the test text", format="%d"),
            "targets": st.column_config.NumberColumn("targets", help="words and the sentence end"),
            "perplexity_a": st.column_config.NumberColumn("perplexity, A", format="%.1f"),
            "perplexity_b": st.column_config.NumberColumn("perplexity, B", format="%.1f"),
            "difference": st.column_config.NumberColumn("nats a target, B - A", format="%.3f"),
            "weight": st.column_config.NumberColumn("nats, B - A", format="%.2f"),
        },
        height=390,
    )


def _utterances(first: TrackedRun, second: TrackedRun) -> None:
    here = [has_word_errors(run.cell) for run in (first, second)]
    if not any("wer" in run.metrics for run in (first, second)):
        return
    st.subheader("Utterances of the test speech", anchor=False)
    if not _on_this_machine(first, second, here, "errors of utterances"):
        return
    try:
        found = utterance_differences(first.cell, second.cell, parameters().evaluation)
    except PalimpsestError as error:
        st.warning(str(error))
        return
    text = "Word error rate of B less that of A, in points" + _value(found, "{:+.2f}")
    fewer, more = int((found.frame["difference"] < 0).sum()), int((found.frame["difference"] > 0).sum())
    st.markdown(
        f"{text}{_verdict(found, 0.0, 'word error rate')} Of {len(found.frame):,} utterances B has fewer errors in "
        f"{fewer:,} and more in {more:,}."
    )
    st.altair_chart(
        difference_histogram(found.frame["difference"].to_numpy(), "errors in an utterance, B - A", "utterances"),
        alt="How often the two differ by how many errors",
    )
    table(found.frame, "utterances", title="Errors of every utterance, the largest difference first", height=390)


def _on_this_machine(first: TrackedRun, second: TrackedRun, here: Sequence[bool], what: str) -> bool:
    """Whether the files beside the reports are there and of these runs; says why where they are not."""
    if first.cell.dataset != second.cell.dataset:
        st.info("A and B were measured on different corpora: only their sums stand beside each other.")
        return False
    known = summary_by_key()
    for run, found in zip((first, second), here, strict=True):
        if run.key not in known:
            st.info(
                f"The {what} of {run.label!r} are of another state than the run: run 'palimpsest run' or restore it."
            )
            return False
        if not found:
            st.info(f"There are no {what} of {run.label!r} in results/scores.")
            return False
    return True


def _value(found: Comparison, form: str) -> str:
    if found.value is None:
        return " is not defined. "
    interval = ""
    if found.low is not None and found.high is not None:
        interval = f" [{form.format(found.low)}, {form.format(found.high)}]"
    return f": **{form.format(found.value)}**{interval}. "


def _verdict(found: Comparison, neutral: float, what: str) -> str:
    if found.low is None:
        return ""
    return {
        -1: f"B has the lower {what}: the paired interval excludes {neutral:g}.",
        0: f"The paired interval holds {neutral:g}: the two are not told apart.",
        1: f"A has the lower {what}: the paired interval excludes {neutral:g}.",
    }[found.apart(neutral)]


def _settings(first: TrackedRun, second: TrackedRun) -> None:
    import pandas as pd

    st.subheader("Settings and origin", anchor=False)
    names = list(dict.fromkeys([*first.parameters, *second.parameters]))
    lines = [
        {"setting": name, "A": first.parameters.get(name), "B": second.parameters.get(name)}
        for name in names
        if first.parameters.get(name) != second.parameters.get(name)
    ]
    lines += [
        {"setting": written, "A": first.tags.get(name), "B": second.tags.get(name)}
        for name, written in _STATE_TAGS.items()
    ]
    lines.append({"setting": "key", "A": first.key, "B": second.key})
    lines.append({"setting": "MLflow run", "A": first.run_id, "B": second.run_id})
    same = sum(first.parameters.get(name) == second.parameters.get(name) for name in names)
    st.markdown(f"{same} of {len(names)} settings are the same; those that differ, and where the numbers come from:")
    table(pd.DataFrame(lines), "settings", title="Settings that differ, and the origin of both runs")
    pages = [(end, run_page(parameters().tracking, run)) for end, run in (("A", first), ("B", second))]
    links = [f"[run {end} in MLflow]({page})" for end, page in pages if page]
    if links:
        st.markdown(", ".join(links))
