"""Detectors side by side, and how much each technique masks beside the paper's Table 2, as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.detector_results import DetectorResult
from dashboards.paper_results import MASKED_SHARES, TECHNIQUES
from tasks.results.summary.summary_table import ABSENT, technique_name

_HEADINGS = (
    "technique",
    "token F2",
    "in scope",
    "recall",
    "precision",
    "span F2",
    "document recall",
    "over-masking",
    "words/s",
    "peak memory",
    "model",
)
_LEGEND = (
    "Token F2 counts words, with its {level} interval in brackets; *in scope* leaves out masked words of classes that "
    "the gold set does not annotate. Span F2: a span is found if all of its words are masked. Document recall: share "
    "of the documents (a line each, where the file names none) with private words in which all of them are masked. "
    "Over-masking: share of words masked in lines that hold nothing private. Speed is finding the words to mask, with "
    "the model loaded (`palimpsest mask` is faster with a list); memory is the whole process; the best F2 of each gold "
    "set is bold."
)


def detector_table(results: Sequence[DetectorResult]) -> str:
    """One table per gold set; results come sorted, the best of each gold set first."""
    sections = []
    for gold_set in dict.fromkeys(result.gold_set for result in results):
        mine = [result for result in results if result.gold_set == gold_set]
        first = mine[0]
        split = f" (split: {', '.join(first.splits)})" if first.splits else ""
        sections.append(
            f"### {gold_set}\n\n{first.lines:,} lines, {first.words:,} words, "
            f"{first.private_words:,} of them private{split}.\n\n"
            + _markdown(_HEADINGS, [_row(result, bold=result.f2 == first.f2) for result in mine])
        )
    levels = " or ".join(dict.fromkeys(f"{100 * result.confidence:g} %" for result in results))
    machines = "; ".join(dict.fromkeys(result.machine for result in results))
    return "\n\n".join(
        [*sections, _LEGEND.format(level=levels), f"Protocol: `{results[0].signature}`. Machine: {machines}."]
    )


@dataclass(frozen=True)
class DetectorSection:
    """The table of one gold set as the report page shows it."""

    gold_set: str
    size: str
    headings: tuple[str, ...]
    rows: list[list[str]]
    """Cells as text; the best result comes first."""


def detector_sections(results: Sequence[DetectorResult]) -> list[DetectorSection]:
    """One section per gold set."""
    sections = []
    for gold_set in dict.fromkeys(result.gold_set for result in results):
        mine = [result for result in results if result.gold_set == gold_set]
        size = f"{mine[0].lines:,} lines, {mine[0].words:,} words, {mine[0].private_words:,} of them private"
        sections.append(DetectorSection(gold_set, size, _HEADINGS, [_row(result, bold=False) for result in mine]))
    return sections


def detector_legend(results: Sequence[DetectorResult]) -> str:
    """What the columns mean, without markup."""
    levels = " or ".join(dict.fromkeys(f"{100 * result.confidence:g} %" for result in results))
    return (
        _LEGEND.format(level=levels)
        .replace("*", "")
        .replace("`", "")
        .replace("; the best F2 of each gold set is bold", "")
    )


def _row(result: DetectorResult, *, bold: bool) -> list[str]:
    f2 = _rate(result.f2)
    if bold and result.f2 is not None:
        f2 = f"**{f2}**"
    if result.f2_interval:
        f2 += f" [{result.f2_interval[0]:.3f}, {result.f2_interval[1]:.3f}]"
    return [
        result.technique,
        f2,
        _rate(result.f2_in_scope),
        _rate(result.recall),
        _rate(result.precision),
        _rate(result.span_f2),
        _rate(result.document_recall),
        ABSENT if result.over_masking is None else f"{result.over_masking:.1%}",
        ABSENT if result.words_per_second is None else _rounded(result.words_per_second),
        f"{result.peak_memory_bytes / 1e6:,.0f} MB",
        _size(result.model_bytes),
    ]


def masked_share_table(reports: Iterable[Mapping[str, Any]]) -> str | None:
    """Share of words that each technique masked in each corpus, below the paper's Table 2; ``None`` without any.

    ``reports`` may hold those of other stages; only those of ``mask`` with a dataset are read.
    """
    shares: dict[str, dict[str, float | None]] = {}
    for report in reports:
        cell = report["cell"]
        if report["stage"] == "mask" and cell.get("dataset") and cell.get("technique"):
            shares.setdefault(cell["dataset"], {})[cell["technique"]] = report["measured"]["masked_fraction"]
    if not shares:
        return None
    further = sorted({technique for row in shares.values() for technique in row} - set(TECHNIQUES))
    techniques = [*TECHNIQUES, *further]
    rows = [
        [f"{corpus} (paper)", *(f"{share} %" for share in printed), *[ABSENT] * len(further)]
        for corpus, printed in MASKED_SHARES.items()
    ]
    for corpus in sorted(shares):
        row = [shares[corpus].get(technique) for technique in techniques]
        rows.append([corpus, *(ABSENT if share is None else f"{100 * share:.1f} %" for share in row)])
    return _markdown(("corpus", *map(technique_name, techniques)), rows)


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _rate(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"


def _rounded(value: float) -> str:
    """Three digits say enough of a speed."""
    return f"{float(f'{value:.3g}'):,.0f}"


def _size(size: int | None) -> str:
    if size is None:
        return ABSENT
    return f"{size / 1e6:,.0f} MB" if size >= 1_000_000 else f"{size / 1e3:,.0f} kB"
