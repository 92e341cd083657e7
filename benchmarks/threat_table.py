"""The threat model of docs/privacy.md: adversary, attack, the figure that measures it, and its limit."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.stored_run import figure
from tasks.privacy.settings import ReleaseSettings
from tasks.results.default_run import full_audit
from tasks.results.grid import markdown, plain_grid, words
from tasks.results.measures import measures
from tasks.results.summary.summary_file import summarised_cell

TEXT, MODEL = "recipient of the text", "recipient of the model"
THREATS: Sequence[tuple[str, str, str, str, str]] = (
    (TEXT, "the text", "a named person", "reads it (per 1,000 lines)", "unmasked_direct"),
    (
        TEXT,
        "the text, background knowledge",
        "a person without a name",
        "combines (per 1,000 lines)",
        "unmasked_quasi",
    ),
    (TEXT, "the text, public language models", "masked words", "guesses each at once (top-1)", "reidentified"),
    (TEXT, "the text", "whole private lines", "reads unchanged lines", "verbatim_lines"),
    (TEXT, "the text", "all mentions of one person", "follows equal substitutes", "linked_mentions"),
    (
        "recipient of two fills",
        "two fills of one text",
        "which words are real",
        "compares them",
        "found_by_second_fill",
    ),
    (MODEL, "weights or API", "masked names", "ranks planted names (canary exposure, bits)", "exposure"),
    (
        MODEL,
        "weights or API",
        "unmasked words",
        "ranks planted common words (canary exposure, bits)",
        "exposure_unmasked",
    ),
    (MODEL, "model before and after", "whether it saw a line", "membership inference by loss, AUC", "membership_auc"),
    (MODEL, "model before and after", "whether it saw a line", "the same, TPR at 1 % FPR", "membership_tpr_1"),
    (MODEL, "model, like lines", "whether it saw a line", "membership inference by LiRA, AUC", "membership_lira_auc"),
    (MODEL, "model, like lines", "whether it saw a line", "the same, TPR at 1 % FPR", "membership_lira_tpr_1"),
    (MODEL, "weights or API", "private text", "lets it write: 5-grams of one private line", "extracted"),
    ("MLflow reader", "metrics of many runs", "single lines", "differences of near-equal runs", ""),
    ("repository reader", "`dvc.lock`, git history", "a private file", "tries words against MD5s", ""),
    (
        "other local user",
        "a shell on the machine",
        "files, services",
        "reads them (closed modes, tests in `tests/privacy`)",
        "",
    ),
    ("colleague, relative", "style, background knowledge", "who wrote a line", "stylometry", ""),
    ("operator, backup, thief", "the disk", "everything", "reads raw text, sidecar, key", ""),
)
"""Adversary, its means and goal, its attack, and the column of the figure; empty without a measurement."""


def threat_table(rows: Sequence[Mapping[str, Any]], cell: str | None) -> str:
    """Markdown, with the default limits and the figures of one cell."""
    found = [row for row in rows if summarised_cell(row).path == cell]
    release = ReleaseSettings()
    limits = {name: f"`release.at_most.{name}`: {limit:g}" for name, limit in release.at_most.items()}
    limits["unmasked_direct"] = f"`release.unmasked_direct`: {release.unmasked_direct:g}"
    shares = {each.name for each in measures() if each.share}
    lines = []
    for adversary, holds, wants, attack, name in THREATS:
        column = f"`{name}`" + (", %" if name in shares else "") if name else "none"
        shown = figure(full_audit(found) if name.startswith("membership_lira") else found, name)
        lines.append([adversary, holds, wants, attack, column, limits.get(name, "none"), shown])
    headings = [*words("adversary", "holds", "wants", "attack", "figure: column", "limit"), "default run"]
    return (
        markdown(plain_grid("", headings, lines))
        + f"\n\nThe recommended cell is `{cell}`. In brackets: the same attack where there is nothing to find."
    )
