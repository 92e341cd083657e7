"""The figures that decide on a release, each with its limit: unmasked identifiers, and what attacks found.

Nothing here runs a tagger or an attack. Figures have two digits: more would tell of single words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tasks.audit.clear_text import masked_words
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
from tasks.review.record import Review, marks_of, prefix_length, review_of
from tasks.review.unmasked import TechniqueUnmasked, unmasked_by_technique

FEWEST = 20
"""Groups of fewer words are joined where they are shown: a small group tells of single words."""
LEFT_OUT = "left out"
"""What pages say in the place of a figure that read masked words, where an epsilon is about them."""
_READ = {"reidentified", "exposure", "exposure_kept", "extracted", *MEMBERSHIP}
"""Figures that have a reading in words."""
SECONDS_A_LINE = 9.0
"""How long a person reads a line, where no review has measured it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One figure of a cell with its limit."""

    name: str
    """What was measured, with its unit."""
    key: str
    """The figure's name in the summary."""
    attacker: str
    """Who measures or attacks, with what."""
    figure: str
    """Rounded, with its 95 % interval; no word of the corpus."""
    chance: str
    """The same where there is nothing to find; empty where there is no such figure."""
    limit: str
    """Empty without one."""
    passed: bool | None
    """``None`` without a limit."""
    reading: str = ""
    """``no signal``, ``some`` or ``strong``."""
    remedy: str = ""
    """What to do where it did not pass, as a sentence."""


def without_figures(checks: Sequence[Check]) -> list[Check]:
    """What pages under an epsilon may say of them: names and limits. Whether others were measured may be private."""
    shown = (check for check in checks if check.limit or check.key == "unmasked_quasi")
    return [replace(check, figure=LEFT_OUT, chance="", attacker=LEFT_OUT, reading="") for check in shown]


def markers_share(masked: Path) -> float:
    """How many of the words of a masked text are markers; each is one word, or several neighbouring ones."""
    markers = words = 0
    for line in read_lines(masked):
        markers += count_markers(line)
        words += count_words(MARKER_PATTERN.sub(" ", line))
    return markers / max(1, markers + words)


def unmasked(cell: FilledCell, earlier: SharedLines) -> TechniqueUnmasked:
    """Identifiers that are not masked in this text, or not in an earlier release of the same line."""
    corpus = str(cell.cell.dataset)
    technique = str(cell.cell.technique)
    with TemporaryDirectory(dir=private_home()) as folder:
        shown = Path(folder) / "sidecar.jsonl"
        sidecar = earlier.write_hidden(cell.raw, cell.sidecar, shown) if earlier.lines else cell.sidecar
        return unmasked_by_technique(corpus, cell.raw, {technique: sidecar}, cell.reader)[technique]


def unmasked_checks(cell: FilledCell, found: TechniqueUnmasked, limit: float) -> list[Check]:
    """Whether few enough direct identifiers are unmasked, by the upper end of the interval; and quasi-identifiers,
    without a limit."""
    source = ("a person's review: " if found.by == "review" else "") + found.basis
    ends, allowed = found.direct.per_thousand, f"at most {limit:g} (upper end)"
    remedy = "" if ends.high <= limit else _remedy(cell, ends, limit)
    direct, quasi = ("unmasked direct identifiers per 1,000 lines", "unmasked quasi-identifiers per 1,000 lines")
    return [
        Check(direct, "unmasked_direct", source, interval(ends), "", allowed, ends.high <= limit, remedy=remedy),
        Check(quasi, "unmasked_quasi", source, interval(found.quasi.per_thousand), "", "", None),
    ]


def _remedy(cell: FilledCell, ends: Interval, limit: float) -> str:
    """Lines to review, where that can narrow the interval to the limit; else to mask more."""
    corpus, technique = str(cell.cell.dataset), str(cell.cell.technique)
    review = review_of(corpus, cell.raw)
    if ends.low > limit or (review is not None and ends.value > limit):
        return (
            f"Release a cell of the technique '{EVERY_TAGGER}'."
            if technique != EVERY_TAGGER
            else "Mask more: combine every_tagger with a list of the words that the review found."
        )
    lines, seconds = further_lines(review, cell.sidecar, limit), seconds_a_line(review)
    minutes = max(1, round(lines * seconds / 60))
    more = "more " if review is not None else ""
    return f"Review {lines} {more}lines: palimpsest review {corpus}/{technique} (some {minutes} minutes)."


def further_lines(review: Review | None, sidecar: Path, limit: float) -> int:
    """Lines that a reviewer still has to read, if no further unmasked identifier is found."""
    if review is not None:
        read, marks = prefix_length(review), marks_of(review)
        masked = {number: words for number, words in enumerate(masked_words(sidecar)) if number in marks}
        return lines_needed(review.plan, read, limit, marks=marks, masked=masked) or review.plan.lines - read
    # A simple random sample without a find: exact upper end of a two-sided 95 % interval.
    return ceil(3.69 / max(limit, 1) * 1000)


def seconds_a_line(review: Review | None) -> float:
    """As the review has recorded it."""
    seconds = [line.seconds for line in review.lines if line.seconds > 0] if review is not None else []
    return sum(seconds) / len(seconds) if seconds else SECONDS_A_LINE


def attacks_on(cell: FilledCell) -> Row:
    """What attacks found, by the names of the figures. ``ParameterError`` where this very text was not attacked, or is
    no fill."""
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
    """All figures of attacks on what leaves: those on the model only where it is released."""
    check_limits(at_most, "release.at_most")
    for each in leaks():
        limit = None if each.of_model and cell.model is None else at_most.get(each.name)
        if (each.of_model and cell.model is None) or (row[each.name] is None and limit is None):
            continue
        chance = row.get(each.blind)
        yield Check(
            each.title.removesuffix(", %"),
            each.name,
            row["attackers"].get(each.field or each.name, ""),
            _figure(each, row),
            "" if chance is None else _shown(each, chance),
            "" if limit is None else f"at most {_shown(each, limit)} (upper end)",
            None if limit is None else meets([row], {each.name: limit}) == "yes",
            signal([row], each.name) if each.name in _READ and row[each.name] is not None else "",
            "Release another cell: palimpsest advise names one."
            if row[each.name] is not None
            else "Run: palimpsest run, with this figure in the audit.",
        )


def _figure(found: Measure, row: Row) -> str:
    value, ends = row.get(found.name), row.get(f"{found.name}_ci")
    if value is None:
        return "not measured"
    return _shown(found, value) + (f" [{_shown(found, ends[0])}, {_shown(found, ends[1])}]" if ends else "")


def _shown(found: Measure, value: float) -> str:
    return percent(value) if found.share else f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}"


def interval(ends: Interval | None, show: Any = None) -> str:  # noqa: ANN401 - a function of a number
    """``12 [7.1, 19]``, with two digits that count."""
    if ends is None:
        return "not known"
    show = show or (lambda value: f"{float(f'{value:.2g}'):g}")
    return f"{show(ends.value)} [{show(ends.low)}, {show(ends.high)}]"


def percent(share: float) -> str:
    """A share with two digits that count."""
    if share >= 0.995:
        return "100 %" if share == 1 else "over 99 %"
    return f"{float(f'{100 * share:.2g}'):g} %"
