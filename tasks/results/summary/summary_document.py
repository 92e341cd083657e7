"""The tables of the summary as a Markdown document, with notes for the reader."""

from collections.abc import Sequence

from tasks.results.grid import markdown
from tasks.results.leakage import leakage_grid
from tasks.results.measure import ABOVE, BELOW, DOCUMENT, OTHER_PROTOCOL, Row
from tasks.results.measures import LEAKAGE, measures_of
from tasks.results.tables import Table, measure_grid, tables

SHOWN_TABLES = 2
"""Tables of each data set that a terminal shows: perplexity over all words, and over known ones."""
_LEGEND = (
    f"{BELOW} below, {ABOVE} above Baseline1 of the same technique: the interval of the paired ratio excludes 1. "
    "Several seeds: mean ± standard deviation; of ratios the interval over sentences and seeds."
)
_SPEECH_LEGEND = f" Word error rates: {BELOW} below, {ABOVE} above that of the pretrained model."


def document(rows: Sequence[Row]) -> str:
    """The tables of all datasets as a Markdown document."""
    parts = ["# Results"]
    for table in tables(rows):
        parts.append(f"## {table.dataset}")
        shown = [measure_grid(table, measure) for measure in measures_of(DOCUMENT) if measure.step not in LEAKAGE]
        for grid in (*shown, leakage_grid(table)):
            parts += [] if grid.is_empty else [f"### {grid.caption}", markdown(grid)]
        signatures = dict.fromkeys(row["signature"] for row in table.rows)
        parts += [notes(table), "\n".join(f"`{signature}`" for signature in signatures)]
    return "\n\n".join(parts) + "\n"


def main_tables(document: str) -> list[str]:
    """The lines of a Markdown document with the first tables of each data set, and the text next to tables."""
    kept: list[str] = []
    sections = 0
    for line in document.splitlines():
        if line.startswith("## "):
            sections = 0
        if line.startswith("### "):
            sections += 1
        beyond = sections > SHOWN_TABLES
        # A removed table leaves two empty lines, of which one is enough.
        if (beyond and line.startswith(("### ", "|"))) or (not line and kept and not kept[-1]):
            continue
        kept.append(line)
    return kept


def notes(table: Table) -> str:
    """Notes on the numbers of a dataset."""
    of_speech = _SPEECH_LEGEND + lists_note(table) if table.recogniser_alone is not None else ""
    return f"{_share_of_unknown_words(table)}{_LEGEND}{of_speech}{_other_protocols(table)}"


def _share_of_unknown_words(table: Table) -> str:
    known = [row["oov_rate"] for row in table.rows if row["oov_rate"] is not None]
    return f"{max(known):.1%} of the test words are outside the vocabulary. " if known else ""


def _other_protocols(table: Table) -> str:
    """A sentence on the numbers of other protocols, which do not compare; empty if all compare."""
    fields = list(dict.fromkeys(name for row in table.rows for name in row.get("protocol_differs", [])))
    if not fields:
        return ""
    return f" {OTHER_PROTOCOL} measured by another protocol than Oracle's ({', '.join(fields)}): does not compare."


def lists_note(table: Table) -> str:
    """A sentence on the gain from choosing among n-best lists; empty if rates come from no lists."""
    lines = [table.recogniser_alone] if table.recogniser_alone is not None else []
    row = next((row for line in lines for rows in line.by_technique.values() for row in rows), {})
    if row.get("wer_best_of_lists") is None:
        return ""
    return (
        " The rates come from choosing among n-best lists: an insertion bonus alone gives "
        f"{row['wer_insertion_bonus_alone']:.1%}, the best hypothesis of every list {row['wer_best_of_lists']:.1%}; "
        f"{row['best_first_share']:.1%} of the lists begin with theirs."
    )
