"""The figures that decide on a release, each with its limit: unmasked identifiers, and results of attacks.

Nothing here runs a tagger or an attack. Figures have two digits: more would reveal single words.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

from tasks.audit.clear_text import masked_words
from tasks.audit.rungs import PUBLIC, RUNGS, figure_of, rung_of
from tasks.corpora.masked_text import MARKER_PATTERN, count_markers
from tasks.corpora.text_lines import read_lines
from tasks.corpora.words import count_words
from tasks.errors import ParameterError
from tasks.files.clone_key import private_home
from tasks.masking.every_tagger import EVERY_TAGGER
from tasks.privacy.earlier_releases import SharedLines
from tasks.privacy.released_cell import FilledCell
from tasks.records.stage_report import content_hash
from tasks.results.leakage import check_limits, meets, row_of
from tasks.results.measure import Measure, Row
from tasks.results.measures import leaks
from tasks.results.readings import MEMBERSHIP, signal
from tasks.review.estimate import Interval, lines_needed
from tasks.review.record import marks_of, prefix_length, review_of
from tasks.review.unmasked import TechniqueUnmasked, unmasked_by_technique

FEWEST = 20
"""Groups of fewer words are joined when shown: a small group reveals single words."""
LEFT_OUT = "left out"
"""Text on pages instead of a figure that read masked words, if an epsilon is about them."""
_READ = {*map(figure_of, (PUBLIC, *RUNGS)), "exposure", "exposure_unmasked", "extracted", *MEMBERSHIP}
"""Figures that have a reading in words."""
SECONDS_A_LINE = 9.0
"""Seconds that a person takes to read a line, without a review's measurement."""


@dataclass(frozen=True, slots=True)
class Check:
    """One figure of a cell with its limit."""

    name: str
    """Measured quantity, with its unit."""
    key: str
    """Name of the figure in the summary."""
    attacker: str
    """Measuring reader or attacker, and its means."""
    figure: str
    """Rounded figure, with its 95 % interval; no word of the corpus."""
    chance: str
    """Chance level; empty if there is none."""
    limit: str
    """Limit; empty if there is none."""
    passed: bool | None
    """Whether the figure is within the limit; ``None`` without a limit."""
    reading: str = ""
    """Reading: ``no signal``, ``some`` or ``strong``."""
    remedy: str = ""
    """Remedy for a failed check, as a sentence."""


def without_figures(checks: Sequence[Check]) -> list[Check]:
    """Names and limits only, for pages under an epsilon. Even the set of measured figures may be private."""
    shown = (check for check in checks if check.limit or check.key == "unmasked_quasi")
    return [replace(check, figure=LEFT_OUT, chance="", attacker=LEFT_OUT, reading="") for check in shown]


def markers_share(masked: Path) -> float:
    """The share of markers among the words of a masked text; each is one word, or several neighbouring ones."""
    markers = words = 0
    for line in read_lines(masked):
        markers += count_markers(line)
        words += count_words(MARKER_PATTERN.sub(" ", line))
    return markers / max(1, markers + words)


def unmasked(cell: FilledCell, earlier: SharedLines) -> TechniqueUnmasked:
    """Identifiers that are unmasked in this text, or in an earlier release of the same line."""
    corpus, technique = str(cell.cell.dataset), str(cell.cell.technique)
    with TemporaryDirectory(dir=private_home()) as folder:
        shown = Path(folder) / "sidecar.jsonl"
        sidecar = earlier.write_hidden(cell.raw, cell.sidecar, shown) if earlier.lines else cell.sidecar
        return unmasked_by_technique(corpus, cell.raw, {technique: sidecar}, cell.reader)[technique]


def unmasked_checks(cell: FilledCell, found: TechniqueUnmasked, limit: float) -> list[Check]:
    """The check of unmasked direct identifiers, by the upper end of the interval; and quasi-identifiers, without
    a limit."""
    source = ("a person's review: " if found.by == "review" else "") + found.basis
    ends, allowed = found.direct.per_thousand, f"at most {limit:g} (upper end)"
    remedy = "" if ends.high <= limit else _remedy(cell, ends, limit)
    direct, quasi = ("unmasked direct identifiers per 1,000 lines", "unmasked quasi-identifiers per 1,000 lines")
    return [
        Check(direct, "unmasked_direct", source, interval(ends), "", allowed, ends.high <= limit, remedy=remedy),
        Check(quasi, "unmasked_quasi", source, interval(found.quasi.per_thousand), "", "", None),
    ]


def _remedy(cell: FilledCell, ends: Interval, limit: float) -> str:
    """The number of lines to review, if that can narrow the interval to the limit; else advise more masking."""
    corpus, technique = str(cell.cell.dataset), str(cell.cell.technique)
    review = review_of(corpus, cell.raw)
    if ends.low > limit or (review is not None and ends.value > limit):
        return (
            f"Release a cell of the technique '{EVERY_TAGGER}'."
            if technique != EVERY_TAGGER
            else "Mask more: combine every_tagger with a list of the words that the review found."
        )
    # A simple random sample without a find: exact upper end of a two-sided 95 % interval.
    lines, seconds = ceil(3.69 / max(limit, 1) * 1000), []
    if review is not None:
        read, marks = prefix_length(review), marks_of(review)
        masked = {number: words for number, words in enumerate(masked_words(cell.sidecar)) if number in marks}
        lines = lines_needed(review.plan, read, limit, marks=marks, masked=masked) or review.plan.lines - read
        seconds = [line.seconds for line in review.lines if line.seconds > 0]
    minutes = max(1, round(lines * (fmean(seconds) if seconds else SECONDS_A_LINE) / 60))
    more = "more " if review is not None else ""
    return f"Review {lines} {more}lines: palimpsest review {corpus}/{technique} (some {minutes} minutes)."


def attacks_on(cell: FilledCell) -> Row:
    """The results of attacks, by the names of the figures. ``ParameterError`` if this text was not attacked, or
    is no fill."""
    name = repr(cell.cell.path)
    if cell.method.rewrites_lines:
        raise ParameterError(
            f"{name} is not released: method {cell.method.kind!r} rewrites whole lines, so private words may be "
            "anywhere in them. Release a fill."
        )
    if cell.audit is None:
        raise ParameterError(
            f"{name} is not released: it was not attacked. Add {str(cell.cell.method)!r} to 'audited' in its entry of "
            "compare.fills in params.yaml, and run: palimpsest run"
        )
    if cell.audit["inputs"].get(str(cell.text)) != content_hash(cell.text):
        raise ParameterError(
            f"{name} is not released: {str(cell.text)!r} has changed since it was attacked. Run: palimpsest run"
        )
    return row_of(cell.audit["measured"])


def attack_checks(cell: FilledCell, row: Row, at_most: Mapping[str, float]) -> Iterator[Check]:
    """All figures of attacks on the released files: those on the model only if it is released."""
    check_limits(at_most, "release.at_most")
    for each in leaks():
        if each.of_model and cell.model is None:
            continue
        value, limit, chance = row[each.name], at_most.get(each.name), row.get(each.blind)
        if value is None and limit is None:
            continue
        rung = rung_of(each.name)
        of_rung = f", rung {rung!r}" if rung else ""
        yield Check(
            each.title.removesuffix(", %"),
            each.name,
            row["attackers"].get(each.field or each.name, ""),
            "not measured" if value is None else _shown(each, value, row.get(f"{each.name}_ci")),
            "" if chance is None else _shown(each, chance),
            "" if limit is None else f"at most {_shown(each, limit)} (upper end{of_rung})",
            None if limit is None else meets([row], {each.name: limit}),
            signal([row], each.name) if each.name in _READ and value is not None else "",
            "Run: palimpsest run, with this figure in the audit."
            if value is None
            else "Release another cell: results/summary.md compares them.",
        )


def _shown(found: Measure, value: float, ends: Sequence[float] | None = None) -> str:
    shown = percent(value) if found.share else f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}"
    return shown + (f" [{_shown(found, ends[0])}, {_shown(found, ends[1])}]" if ends else "")


def interval(ends: Interval | None, show: Callable[[float], str] = lambda value: f"{float(f'{value:.2g}'):g}") -> str:
    """``12 [7.1, 19]``, with two significant digits."""
    return "not known" if ends is None else f"{show(ends.value)} [{show(ends.low)}, {show(ends.high)}]"


def percent(share: float) -> str:
    """A share with two significant digits."""
    if share >= 0.995:
        return "100 %" if share == 1 else "over 99 %"
    return f"{float(f'{100 * share:.2g}'):g} %"
