"""The choices of the results page; each stands in the page's address, so that a bookmark brings them back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from tasks.results.titles import method_name, technique_name

DIMENSIONS: dict[str, tuple[str, Callable[[str], str]]] = {
    "dataset": ("Corpora", str),
    "technique": ("Techniques", technique_name),
    "method": ("Methods", method_name),
    "filler": ("Fillers", str),
    "seed": ("Seeds", str),
}
"""Dimension of a cell, the heading of its choice, and how a value is written."""


def choose(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Let the reader choose values of every dimension that has more than one; all are chosen at first.

    The address holds values as they are written: ``?technique=allow+list&method=Top-K&seed=1``.
    """
    chosen: dict[str, list[Any]] = {}
    for name, (heading, written) in DIMENSIONS.items():
        values = {str(row[name]): row[name] for row in rows if row[name] is not None}
        if len(values) < 2:
            continue
        picked = st.multiselect(
            heading,
            list(values),
            default=list(values),
            format_func=written,
            key=name,
            bind="query-params",
            persist_state="session",
            placeholder="none",
        )
        chosen[name] = [values[text] for text in picked]
    return chosen
