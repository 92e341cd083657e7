"""Detectors compared, from the reports of ``palimpsest evaluate-masking``: tables, a plot, and masking rates."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from dashboards.plots import Axis, Point, figure, standalone
from tasks.errors import CorpusError
from tasks.masking.every_tagger import EVERY_TAGGER
from tasks.results.grid import ABSENT, Grid, markdown, plain_grid
from tasks.results.measure import at_path
from tasks.results.summary.estimate import Estimate, estimate
from tasks.results.titles import technique_name

STAGE = "evaluate_masking"
_TECHNIQUES = ("allow_list", "vocabulary_threshold", "entity_tagger")
_PAPER = {
    "Fisher": ("12.5 %", "1.3 %", "1.7 %"),
    "Reddit": ("22.7 %", "11.9 %", "4.2 %"),
    "WSJ": ("30.4 %", "11.2 %", "9.1 %"),
}
"""Share of tokens masked: Table 2 of Vats et al. (2023)."""

_LEGEND = (
    "Token F2 counts words, with its {level} interval in brackets; *in scope* leaves out masked words of classes that "
    "the gold set does not annotate. Span F2: a span is found if all of its words are masked. Document recall: share "
    "of the documents (a line each, if the file names none) with private words in which all of them are masked. "
    "Over-masking: share of words masked in lines that hold nothing private. Speed is finding the words to mask, with "
    "the model loaded (`palimpsest mask` is faster with a list). Memory is the whole process. The best F2 of "
    "each gold set is bold."
)


class DetectorResult(NamedTuple):
    """One technique on one gold set."""

    technique: str
    """Name for people; with the model if several results have one name."""
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


def detector_results(reports: Iterable[Mapping[str, Any]]) -> list[DetectorResult]:
    """The results in the reports of the evaluation, by gold set and then by F2, the best first.

    Raises ``CorpusError`` if there is none, if two follow different protocols, or if a technique has two results on one
    gold set that its model does not distinguish.
    """
    found = [report for report in reports if report["stage"] == STAGE]
    if not found:
        raise CorpusError(
            "the reports hold no evaluation of masking; write some with 'palimpsest evaluate-masking --report FILE'"
        )
    signatures = sorted({report["measured"]["signature"] for report in found})
    if len(signatures) > 1:
        raise CorpusError(
            f"the evaluations of masking follow different protocols ({', '.join(signatures)}); run them again"
        )
    named = Counter((report["measured"]["technique"], report["measured"]["gold_set"]) for report in found)
    several = {technique for (technique, _), count in named.items() if count > 1}
    results = []
    for report in found:
        measured, technique = report["measured"], report["measured"]["technique"]
        model = f" ({_model(report['parameters']['technique'])})" if technique in several else ""
        machine = f"{report['environment']['processor']}, {measured['threads']} thread{'s' * (measured['threads'] > 1)}"
        name, f2 = technique_name(technique) + model, estimate([measured["token"]], "f2")
        results.append(DetectorResult(name, str(measured["gold_set"]), f2, machine, measured))
    for (name, gold_set), count in Counter((result.technique, result.gold_set) for result in results).items():
        if count > 1:
            raise CorpusError(f"the reports hold {count} evaluations of {name!r} on {gold_set!r}; keep one of them")
    return sorted(results, key=lambda each: (each.gold_set, -(each.f2.value if each.f2 else 0.0), each.technique))


def _model(settings: Mapping[str, Any]) -> str:
    """Model, list or parts of a technique, to distinguish two of one name."""
    if "parts" in settings:
        parts = [part.get("tagger", part)["kind"] for part in settings["parts"]]
        return f"{settings['rule']} of {', '.join(parts)}"
    if settings["kind"] == EVERY_TAGGER:
        return "all that ship"
    model = at_path(settings, ["tagger", "model"]) or settings.get("path")
    if not model:
        return str(settings.get("allowed_words", "shipped list"))
    # A hub name unchanged, of a longer path its last part: the folder on a machine stays private.
    return model if model.count("/") < 2 and not model.startswith((".", "/", "~")) else Path(model).name


def detector_grids(results: Sequence[DetectorResult], *, bold: bool = False) -> list[Grid]:
    """One table per gold set, with its name and size as caption; results are sorted, the best of each first."""
    grids = []
    for gold_set, found in groupby(results, key=lambda result: result.gold_set):
        mine = list(found)
        first = mine[0].measured
        size = f"{first['lines']:,} lines, {first['words']:,} words, {first['private_words']:,} of them private"
        rows = [_row(result, bold=bold and result.f2 == mine[0].f2) for result in mine]
        grids.append(plain_grid(f"{gold_set}: {size}", ["technique", *_COLUMNS], rows))
    return grids


def _row(result: DetectorResult, *, bold: bool) -> list[str]:
    values = {title: at_path(result.measured, field.split(".")) for title, (field, _) in _COLUMNS.items()}
    texts = [ABSENT if value is None else _COLUMNS[title][1](value) for title, value in values.items()]
    if bold and result.f2 is not None:
        texts[0] = f"**{texts[0]}**"
    if result.measured["token"]["f2_ci"]:
        texts[0] += " [{:.3f}, {:.3f}]".format(*result.measured["token"]["f2_ci"])
    return [result.technique, *texts]


def detector_table(results: Sequence[DetectorResult]) -> str:
    """All of them in Markdown, the best F2 of each gold set in bold."""
    parts = []
    for grid in detector_grids(results, bold=True):
        gold_set, _, size = grid.caption.rpartition(": ")
        files = next(result.measured["files"] for result in results if result.gold_set == gold_set)
        splits = dict.fromkeys(file["split"] for file in files if file["split"])
        of_splits = f" (split: {', '.join(splits)})" if splits else ""
        parts.append(f"### {gold_set}\n\n{size}{of_splits}.\n\n{markdown(grid)}")
    machines = "; ".join(dict.fromkeys(result.machine for result in results))
    protocol = f"Protocol: `{results[0].measured['signature']}`. Machine: {machines}."
    return "\n\n".join([*parts, _legend(results), protocol])


def _legend(results: Sequence[DetectorResult]) -> str:
    levels = dict.fromkeys(f"{100 * result.measured['confidence']:g} %" for result in results)
    return _LEGEND.format(level=" or ".join(levels))


def detector_legend(results: Sequence[DetectorResult]) -> str:
    """The legend of the columns, without markup."""
    return _legend(results).replace("*", "").replace("`", "")


def detector_plot(results: Sequence[DetectorResult]) -> str:
    """An SVG file with F2 against speed, a panel for each gold set, of all results that have both."""
    panels: dict[str, list[Point]] = {}
    for result in results:
        speed = estimate([result.measured], "words_per_second")
        if result.f2 is not None and speed is not None and speed.value:
            panels.setdefault(result.gold_set, []).append(Point(result.technique, speed, result.f2))
    axes = Axis("words per second", 0, logarithmic=True), Axis("token F2", 3)
    return standalone(figure(panels, "Token F2 against speed of masking, by gold set", *axes))


def masked_share_table(reports: Iterable[Mapping[str, Any]]) -> str | None:
    """The masked share of words per technique and corpus, after the paper's Table 2; ``None`` without any.

    ``reports`` may include those of other stages; only those of ``mask`` with a dataset are read.
    """
    shares: dict[str, dict[str, str]] = {}
    for report in reports:
        dataset, technique = (report["cell"].get(name) for name in ("dataset", "technique"))
        if report["stage"] == "mask" and dataset and technique:
            share = report["measured"]["masked_fraction"]
            shares.setdefault(dataset, {})[technique] = ABSENT if share is None else f"{100 * share:.1f} %"
    if not shares:
        return None
    techniques = list(dict.fromkeys([*_TECHNIQUES, *sorted(name for row in shares.values() for name in row)]))
    printed = {f"{name} (paper)": dict(zip(_TECHNIQUES, row, strict=True)) for name, row in _PAPER.items()}
    lines = (printed | dict(sorted(shares.items()))).items()
    rows = [[corpus, *(row.get(technique, ABSENT) for technique in techniques)] for corpus, row in lines]
    return markdown(plain_grid("", ["corpus", *map(technique_name, techniques)], rows))
