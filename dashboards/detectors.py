"""Detectors compared, from the reports of ``palimpsest evaluate-masking``: tables and a plot."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from dashboards.plots import Axis, Point, figure, standalone
from tasks.errors import CorpusError
from tasks.results.grid import ABSENT, Grid, markdown, plain_grid
from tasks.results.measure import at_path
from tasks.results.summary.estimate import Estimate, estimate
from tasks.results.titles import technique_name

STAGE = "evaluate_masking"
_LEGEND = (
    "Token F2 counts words, with its {level} interval in brackets; in scope leaves out masked words of classes that "
    "the gold set does not annotate. Span F2: a span is found if all of its words are masked. Document recall: share "
    "of the documents (a line each, if the file names none) with private words in which all of them are masked. "
    "Over-masking: share of words masked in lines that hold nothing private. Speed is finding the words to mask, with "
    "the model loaded. Memory is the whole process."
)


class DetectorResult(NamedTuple):
    """One technique on one gold set."""

    technique: str
    """Name for people; with that of the report if several results have one name."""
    gold_set: str
    """The labelled text of the evaluation."""
    f2: Estimate | None
    """F2 over words, with its interval if there is one."""
    machine: str
    """Processor and threads."""
    measured: Mapping[str, Any]
    """Measurements of the report; null is undefined."""


def _size(size: float) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 1_000_000 else f"{size / 1e3:,.0f} kB"


_COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "token F2": ("token.f2", "{:.3f}".format),
    "in scope": ("token_in_scope.f2", "{:.3f}".format),
    "recall": ("token.recall", "{:.3f}".format),
    "precision": ("token.precision", "{:.3f}".format),
    "span F2": ("span.f2", "{:.3f}".format),
    "document recall": ("document.recall", "{:.3f}".format),
    "over-masking": ("lines_without_private_words.masked_share", "{:.1%}".format),
    "words/s": ("words_per_second", lambda speed: f"{float(f'{speed:.3g}'):,.0f}"),
    "peak memory": ("peak_memory_bytes", _size),
    "model": ("model_bytes", _size),
}
"""Columns of the table: field in the measurements, and format."""


def detector_results(reports: Mapping[str, Mapping[str, Any]]) -> list[DetectorResult]:
    """The results in the reports of the evaluation, by gold set and then by F2, the best first; empty without any.

    ``reports``: reports of all stages, by their name. Raises ``CorpusError`` if two follow different protocols.
    """
    found = {name: report for name, report in reports.items() if report["stage"] == STAGE}
    signatures = sorted({report["measured"]["signature"] for report in found.values()})
    if len(signatures) > 1:
        raise CorpusError(
            f"the evaluations of masking follow different protocols ({', '.join(signatures)}); run them again"
        )
    named = [(report["measured"]["technique"], report["measured"]["gold_set"]) for report in found.values()]
    several = {technique for (technique, _), count in Counter(named).items() if count > 1}
    results = []
    for (name, report), (technique, gold_set) in zip(found.items(), named, strict=True):
        measured, which = report["measured"], f" ({name.rpartition('/')[2]})" if technique in several else ""
        machine = f"{report['environment']['processor']}, {measured['threads']} thread{'s' * (measured['threads'] > 1)}"
        f2 = estimate([measured["token"]], "f2")
        results.append(DetectorResult(technique_name(technique) + which, str(gold_set), f2, machine, measured))
    return sorted(results, key=lambda each: (each.gold_set, -(each.f2.value if each.f2 else 0.0), each.technique))


def detector_grids(results: Sequence[DetectorResult]) -> list[Grid]:
    """One table per gold set, with its name and size as caption; results are sorted, the best of each first."""
    grids = []
    for gold_set, found in groupby(results, key=lambda result: result.gold_set):
        mine = list(found)
        first = mine[0].measured
        size = f"{first['lines']:,} lines, {first['words']:,} words, {first['private_words']:,} of them private"
        grids.append(plain_grid(f"{gold_set}: {size}", ["technique", *_COLUMNS], map(_row, mine)))
    return grids


def _row(result: DetectorResult) -> list[str]:
    values = [(at_path(result.measured, field.split(".")), shown) for field, shown in _COLUMNS.values()]
    texts = [ABSENT if value is None else shown(value) for value, shown in values]
    if result.measured["token"]["f2_ci"]:
        texts[0] += " [{:.3f}, {:.3f}]".format(*result.measured["token"]["f2_ci"])
    return [result.technique, *texts]


def detector_table(results: Sequence[DetectorResult]) -> str:
    """All of them in Markdown."""
    parts = []
    for grid in detector_grids(results):
        gold_set, _, size = grid.caption.rpartition(": ")
        files = next(result.measured["files"] for result in results if result.gold_set == gold_set)
        splits = dict.fromkeys(file["split"] for file in files if file["split"])
        of_splits = f" (split: {', '.join(splits)})" if splits else ""
        parts.append(f"### {gold_set}\n\n{size}{of_splits}.\n\n{markdown(grid)}")
    machines = "; ".join(dict.fromkeys(result.machine for result in results))
    protocol = f"Protocol: `{results[0].measured['signature']}`. Machine: {machines}."
    return "\n\n".join([*parts, detector_legend(results), protocol])


def detector_legend(results: Sequence[DetectorResult]) -> str:
    """The legend of the columns."""
    levels = dict.fromkeys(f"{100 * result.measured['confidence']:g} %" for result in results)
    return _LEGEND.format(level=" or ".join(levels))


def detector_plot(results: Sequence[DetectorResult]) -> str:
    """An SVG file with F2 against speed, a panel for each gold set, of all results that have both."""
    panels: dict[str, list[Point]] = {}
    for result in results:
        speed = estimate([result.measured], "words_per_second")
        if result.f2 is not None and speed is not None and speed.value:
            panels.setdefault(result.gold_set, []).append(Point(result.technique, speed, result.f2))
    axes = Axis("words per second", 0, logarithmic=True), Axis("token F2", 3)
    return standalone(figure(panels, "Token F2 against speed of masking, by gold set", *axes))
