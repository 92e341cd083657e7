"""The threat model of docs/privacy.md: adversary, attack, the figure that measures it, and its limit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.stored_run import figure, full_audit
from tasks.privacy.settings import ReleaseSettings
from tasks.results.grid import markdown, plain_grid, words
from tasks.results.measures import measures
from tasks.results.summary.summary_file import summarised_cell

THREATS: Sequence[Sequence[str]] = yaml.safe_load(Path(__file__).with_name("threats.yaml").read_text("utf-8"))
"""Adversary, its means and goal, its attack, and the column of the figure; empty without a measurement."""


def threat_table(rows: Sequence[Mapping[str, Any]], cell: str | None) -> str:
    """Markdown, with the default limits and the figures of one cell."""
    found = [row for row in rows if summarised_cell(row).path == cell]
    release = ReleaseSettings()
    limits = {name: f"`release.at_most.{name}`: {limit:g}" for name, limit in release.at_most.items()}
    limits["unmasked_direct"] = f"`release.unmasked_direct`: {release.unmasked_direct:g}"
    shares = {each.name for each in measures() if each.share}
    lines = []
    for *threat, name in THREATS:
        column = f"`{name}`" + (", %" if name in shares else "") if name else "none"
        shown = figure(full_audit(found) if name.startswith("membership_lira") else found, name)
        lines.append([*threat, column, limits.get(name, "none"), shown])
    headings = [*words("adversary", "holds", "wants", "attack", "figure: column", "limit"), "default run"]
    return (
        markdown(plain_grid("", headings, lines))
        + f"\n\nThe recommended cell is `{cell}`. In brackets: the same attack where there is nothing to find."
    )
