"""Detectors compared, from the reports of ``palimpsest evaluate-masking``: tables, a plot, and masking rates."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboards.plots import Axis, Point, figure, standalone
from tasks.errors import CorpusError
from tasks.masking.every_tagger import EVERY_TAGGER
from tasks.results.grid import ABSENT, Grid, markdown, plain_grid
from tasks.results.summary.estimate import Estimate
from tasks.results.titles import technique_name

STAGE = "evaluate_masking"
_TECHNIQUES = ("allow_list", "vocabulary_threshold", "entity_tagger")
_PAPER = {"Fisher": ("12.5", "1.3", "1.7"), "Reddit": ("22.7", "11.9", "4.2"), "WSJ": ("30.4", "11.2", "9.1")}
"""Share of tokens masked, in per cent: Table 2 of Vats et al. (2023)."""

_LEGEND = (
    "Token F2 counts words, with its {level} interval in brackets; *in scope* leaves out masked words of classes that "
    "the gold set does not annotate. Span F2: a span is found if all of its words are masked. Document recall: share "
    "of the documents (a line each, if the file names none) with private words in which all of them are masked. "
    "Over-masking: share of words masked in lines that hold nothing private. Speed is finding the words to mask, with "
    "the model loaded (`palimpsest mask` is faster with a list). Memory is the whole process. The best F2 of "
    "each gold set is bold."
)


@dataclass(frozen=True)
class DetectorResult:
    """One technique on one gold set."""

    technique: str
    """Name for people; with the model if several results have one name."""
    machine: str
    """Processor and threads."""
    measured: Mapping[str, Any]
    """Measurements of the report; null is undefined."""

    @property
    def gold_set(self) -> str:
        """The labelled text of the evaluation."""
        return str(self.measured["gold_set"])

    @property
    def f2(self) -> Estimate | None:
        """F2 over words, with its interval if there is one."""
        token = self.measured["token"]
        low, high = token["f2_ci"] or (None, None)
        return None if token["f2"] is None else Estimate(token["f2"], low, high, None, 1)


def _rate(value: float) -> str:
    return f"{value:.3f}"


def _share(value: float) -> str:
    return f"{value:.1%}"


def _rounded(value: float) -> str:
    """A speed with three digits."""
    return f"{float(f'{value:.3g}'):,.0f}"


def _size(size: float) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 1_000_000 else f"{size / 1e3:,.0f} kB"


_COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "token F2": ("token.f2", _rate),
    "in scope": ("token_in_scope.f2", _rate),
    "recall": ("token.recall", _rate),
    "precision": ("token.precision", _rate),
    "span F2": ("span.f2", _rate),
    "document recall": ("document.recall", _rate),
    "over-masking": ("lines_without_private_words.masked_share", _share),
    "words/s": ("words_per_second", _rounded),
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
    signatures = {report["measured"]["signature"] for report in found}
    if len(signatures) > 1:
        raise CorpusError(
            f"the evaluations of masking follow different protocols ({', '.join(sorted(signatures))}); run them again"
        )
    names = Counter((_name(report), report["measured"]["gold_set"]) for report in found)
    shared = {name for (name, _), count in names.items() if count > 1}
    results = [_result(report, with_model=_name(report) in shared) for report in found]
    for (name, gold_set), count in Counter((result.technique, result.gold_set) for result in results).items():
        if count > 1:
            raise CorpusError(f"the reports hold {count} evaluations of {name!r} on {gold_set!r}; keep one of them")
    return sorted(results, key=_order)


def _order(result: DetectorResult) -> tuple[str, float, str]:
    return result.gold_set, -(result.f2.value if result.f2 else 0.0), result.technique


def _name(report: Mapping[str, Any]) -> str:
    return technique_name(report["measured"]["technique"])


def _model(settings: Mapping[str, Any]) -> str:
    """Model, list or parts of a technique, to distinguish two of one name."""
    tagger = settings.get("tagger")
    if tagger:
        return _base(tagger["model"])
    if "parts" in settings:
        parts = [part.get("tagger", part)["kind"] for part in settings["parts"]]
        return f"{settings['rule']} of {', '.join(parts)}"
    if settings["kind"] == EVERY_TAGGER:
        return "all that ship"
    if settings.get("path"):
        return _base(settings["path"])
    return str(settings.get("allowed_words", "shipped list"))


def _base(model: str) -> str:
    """A hub name unchanged, of a longer path its last part: the folder on a machine stays private."""
    return model if model.count("/") < 2 and not model.startswith((".", "/", "~")) else Path(model).name


def _result(report: Mapping[str, Any], *, with_model: bool) -> DetectorResult:
    measured, settings = report["measured"], report["parameters"]["technique"]
    threads = measured["threads"]
    return DetectorResult(
        technique=_name(report) + (f" ({_model(settings)})" if with_model else ""),
        machine=f"{report['environment']['processor']}, {threads} thread{'s' if threads > 1 else ''}",
        measured=measured,
    )


def detector_grids(results: Sequence[DetectorResult], *, bold: bool = False) -> list[Grid]:
    """One table per gold set, with its name and size as caption; results are sorted, the best of each first."""
    grids = []
    for gold_set in dict.fromkeys(result.gold_set for result in results):
        mine = [result for result in results if result.gold_set == gold_set]
        first = mine[0].measured
        size = f"{first['lines']:,} lines, {first['words']:,} words, {first['private_words']:,} of them private"
        rows = [_row(result, bold=bold and result.f2 == mine[0].f2) for result in mine]
        grids.append(plain_grid(f"{gold_set}: {size}", ["technique", *_COLUMNS], rows))
    return grids


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
    parts += [_legend(results), f"Protocol: `{results[0].measured['signature']}`. Machine: {machines}."]
    return "\n\n".join(parts)


def _legend(results: Sequence[DetectorResult]) -> str:
    return _LEGEND.format(
        level=" or ".join(dict.fromkeys(f"{100 * result.measured['confidence']:g} %" for result in results))
    )


def detector_legend(results: Sequence[DetectorResult]) -> str:
    """The legend of the columns, without markup."""
    said = _legend(results).replace("*", "").replace("`", "")
    return said.replace("; the best F2 of each gold set is bold", "")


def _row(result: DetectorResult, *, bold: bool) -> list[str]:
    texts = [result.technique]
    for field, written in _COLUMNS.values():
        value: Any = result.measured
        for part in field.split("."):
            value = value[part]
        texts.append(ABSENT if value is None else written(value))
    if bold and result.f2 is not None:
        texts[1] = f"**{texts[1]}**"
    if result.measured["token"]["f2_ci"]:
        texts[1] += " [{:.3f}, {:.3f}]".format(*result.measured["token"]["f2_ci"])
    return texts


def detector_plot(results: Sequence[DetectorResult]) -> str:
    """An SVG file with F2 against speed, a panel for each gold set, of all results that have both."""
    panels: dict[str, list[Point]] = {}
    for result in results:
        speed = result.measured["words_per_second"]
        if result.f2 is not None and speed:
            point = Point(result.technique, Estimate(speed, None, None, None, 1), result.f2)
            panels.setdefault(result.gold_set, []).append(point)
    axes = Axis("words per second", 0, logarithmic=True), Axis("token F2", 3)
    return standalone(figure(panels, "Token F2 against speed of masking, by gold set", *axes))


def masked_share_table(reports: Iterable[Mapping[str, Any]]) -> str | None:
    """The masked share of words per technique and corpus, after the paper's Table 2; ``None`` without any.

    ``reports`` may include those of other stages; only those of ``mask`` with a dataset are read.
    """
    shares: dict[str, dict[str, float | None]] = {}
    for report in reports:
        cell = report["cell"]
        if report["stage"] == "mask" and cell.get("dataset") and cell.get("technique"):
            shares.setdefault(cell["dataset"], {})[cell["technique"]] = report["measured"]["masked_fraction"]
    if not shares:
        return None
    further = sorted({technique for row in shares.values() for technique in row} - set(_TECHNIQUES))
    techniques = [*_TECHNIQUES, *further]
    rows = [
        [f"{corpus} (paper)", *(f"{share} %" for share in printed), *[ABSENT] * len(further)]
        for corpus, printed in _PAPER.items()
    ]
    for corpus in sorted(shares):
        row = [shares[corpus].get(technique) for technique in techniques]
        rows.append([corpus, *(ABSENT if share is None else f"{100 * share:.1f} %" for share in row)])
    return markdown(plain_grid("", ["corpus", *map(technique_name, techniques)], rows))
