"""What is checked of a cell before it may leave: a list of checks, each of which the card prints.

Every check names its attacker. What the attacks of 'palimpsest audit' found is among them, and a cell that was not
attacked does not leave.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from tasks.audit.clear_text import Words, masked_words, tagged_words
from tasks.audit.figure import Figure
from tasks.corpora.masked_text import CLASSES
from tasks.corpora.text_lines import read_lines
from tasks.errors import ParameterError
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.privacy.released_cell import FilledCell
from tasks.records.stage_report import content_hash
from tasks.results.leakage import check_limits, meets, row_of
from tasks.results.measure import Measure, Row
from tasks.results.measures import leaks, measure

FEWEST = 20
"""Groups of fewer words are joined where they are shown: a small group tells of single words."""

NOT_CHECKED = (
    "Whether somebody with many lines is among these: attacks on the model were about single lines.",
    "What somebody finds out who knows more than public models and word lists do: about the people, or other texts.",
    "Which words are substitutes: nothing hides that. A word that the list of kept words would have masked is one, and "
    "a second fill of the same lines differs at the substitutes. What is left over is known to be real.",
    "What a stronger language model than the attacker's guesses of the masked words.",
    "What a model that is trained on this text remembers of the words that stand in clear: count on all of them.",
    "Lines of earlier releases that were edited since: only equal lines are compared.",
)
"""For the card, in words: each names what it does not promise."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried."""

    name: str
    attacker: str
    """Who tries it, with what."""
    figure: str
    """What came of it, rounded, without a word of the corpus."""
    passed: bool | None
    """``None`` where it is a figure without a limit."""


@dataclass(frozen=True, slots=True)
class ClearWords:
    """What one tagger calls private, and how much of it the technique leaves in clear."""

    tagger: str
    tagged: Mapping[str, int]
    """Words by class."""
    clear: Mapping[str, int]
    """Those that stand in clear."""
    by_line: Sequence[Words] = ()
    """All of them, line by line."""

    def above(self, limit: float, classes: Iterable[str]) -> list[str]:
        """Classes whose share of clear words is above a limit."""
        return [name for name in sorted(set(classes) & set(self.clear)) if self.share(name) > limit]

    def share(self, name: str) -> float:
        """Clear words of a class among all that are tagged so."""
        return self.clear.get(name, 0) / self.tagged[name]


def claimed_classes(mask: Mapping[str, Any]) -> frozenset[str]:
    """The classes that a technique claims to mask, by its report: those of its taggers, or all where it has a list."""
    parts = mask["measured"].get("parts") or [mask["measured"]]
    if any("entity_types" not in part for part in parts):
        return frozenset(CLASSES)
    return frozenset(name for part in parts for name in part["entity_types"].values() if name is not None)


def clear_words(cell: FilledCell, taggers: Iterable[EntityTagger], threads: int) -> list[ClearWords]:
    """Let each tagger read the private text, and hold what it finds against what was masked."""

    found = []
    for settings in taggers:
        technique = settings.build(None, threads)
        tagged: Counter[str] = Counter()
        clear: Counter[str] = Counter()
        by_line = []
        for private, shown in tagged_words(read_lines(cell.raw), masked_words(cell.sidecar), technique):
            tagged.update(finding.label for finding in private)
            clear.update(finding.label for finding in shown)
            by_line.append(frozenset((finding.start, finding.end) for finding in private))
        found.append(ClearWords(technique.name, tagged, clear, by_line))
    return found


def refuse_clear_words(cell: FilledCell, found: Iterable[ClearWords], limit: float) -> None:
    """``ParameterError`` where a class that the technique claims to mask has a larger share of clear words."""
    claimed = claimed_classes(cell.mask)
    found = [words for words in found if words.above(limit, claimed)]
    if not found:
        return
    listed = "; ".join(
        f"{words.tagger}: "
        + ", ".join(f"{name} {words.clear[name]:,} of {words.tagged[name]:,}" for name in words.above(limit, claimed))
        for words in found
    )
    largest = max(words.share(name) for words in found for name in words.above(limit, claimed))
    lowest = ceil(largest * 100) / 100
    raise ParameterError(
        f"{cell.cell.path!r} is not released: words that taggers call private stand in clear, and release.clear_share "
        f"allows {limit:.0%} of a class ({listed}); mask by the union of these taggers (a technique of kind "
        f"'combination'), or, if you have read what stands there, set release.clear_share to {lowest}"
    )


def attacks_on(cell: FilledCell) -> Row:
    """What attacks found, by the names of the figures. ``ParameterError`` where this very text was not attacked, or is
    no fill."""
    if cell.method.rewrites_lines:
        raise ParameterError(
            f"{cell.cell.path!r} is not released: method {cell.method.kind!r} writes lines anew, with private words "
            "anywhere, and no card could say which; release a fill"
        )
    if cell.audit is None:
        raise ParameterError(
            f"{cell.cell.path!r} is not released: nobody has attacked it; name {str(cell.cell.method)!r} under "
            "'audited' in its entry of compare.fills in params.yaml, and run 'palimpsest run'"
        )
    if cell.audit["inputs"].get(str(cell.text)) != content_hash(cell.text):
        raise ParameterError(
            f"{cell.cell.path!r} is not released: another text was attacked than {str(cell.text)!r} is now; run "
            "'palimpsest run' again"
        )
    return row_of(cell.audit["measured"])


def with_clear_share(row: Row, union: Figure) -> Row:
    """The figures, with what this text and earlier releases leave in clear together in the place of what it does."""
    attackers = {**row["attackers"], "clear_share": union.attacker}
    return {**row, "clear_share": union.value, "attackers": attackers}


def refuse_beyond(cell: FilledCell, row: Row, at_most: Mapping[str, float]) -> None:
    """``ParameterError`` where attacks found more than the limits allow; those about the language model hold where that
    is released."""
    check_limits(at_most, "release.at_most")
    limits = {each.name: at_most[each.name] for each in _attacked(cell) if each.name in at_most}
    beyond = [
        f"{name} is {_figure(measure(name), row)}, at most {limit:g}"
        for name, limit in limits.items()
        if meets([row], {name: limit}) != "yes"
    ]
    if beyond:
        raise ParameterError(
            f"{cell.cell.path!r} is not released: attacks found more than release.at_most allows "
            f"({'; '.join(beyond)}); release another cell ('palimpsest advise' names one), or, if that may be known, "
            "raise the limit"
        )


def _attacked(cell: FilledCell) -> list[Measure]:
    """The figures that are about what leaves."""
    return [each for each in leaks() if not each.of_model or cell.model is not None]


def _figure(found: Measure, row: Row) -> str:
    """With two digits that count, as all shares of a card."""

    def shown(value: float) -> str:
        return percent(value) if found.share else f"{value:.1f}" if abs(value) >= 1 else f"{value:.2f}"

    value, interval, blind = (row.get(name) for name in (found.name, f"{found.name}_ci", found.blind))
    if value is None:
        return "not known"
    ends = f" [{shown(interval[0])}, {shown(interval[1])}]" if interval else ""
    return f"{shown(value)}{ends}" + (f"; {shown(blind)} blind" if blind is not None else "")


def checks_of(
    cell: FilledCell, found: Iterable[ClearWords], limit: float, row: Row, at_most: Mapping[str, float]
) -> list[Check]:
    """All checks of a cell that may leave; ``row``: what attacks found."""
    claimed = claimed_classes(cell.mask)
    return [*(_of_tagger(words, limit, claimed) for words in found), *_of_attacks(cell, row, at_most)]


def _of_attacks(cell: FilledCell, row: Row, at_most: Mapping[str, float]) -> Iterator[Check]:
    for each in _attacked(cell):
        if row[each.name] is not None:
            attacker = row["attackers"].get(each.field or each.name, "")
            limit = f"; at most {at_most[each.name]:g}" if each.name in at_most else ""
            name = each.title.removesuffix(", %")
            yield Check(name[0].lower() + name[1:], attacker + limit, _figure(each, row), True if limit else None)


def _of_tagger(words: ClearWords, limit: float, claimed: frozenset[str]) -> Check:
    small = {name for name, count in words.tagged.items() if count < FEWEST}
    shares = {name: (words.clear.get(name, 0), count) for name, count in words.tagged.items() if name not in small}
    shares["others"] = sum(words.clear.get(name, 0) for name in small), sum(words.tagged[name] for name in small)
    figure = ", ".join(
        f"{name} {percent(clear / count)}{'' if name in claimed or name == 'others' else ' (not claimed)'}"
        for name, (clear, count) in sorted(shares.items())
        if count >= FEWEST
    )
    return Check(
        "words that a tagger calls private, in clear",
        f"the tagger {words.tagger} reads the private text; at most {percent(limit)} of a claimed class",
        figure or f"fewer than {FEWEST} words tagged",
        True,
    )


def percent(share: float) -> str:
    """A share with two digits that count: more would tell of single words."""
    if share >= 0.995:
        return "100 %" if share == 1 else "over 99 %"
    return f"{float(f'{100 * share:.2g}'):g} %"
