"""The findings as a Markdown document: numbers only, never text of a corpus."""

from collections.abc import Iterator, Mapping, Sequence

from tasks.results.findings.findings_claims import CLAIMS, Finding
from tasks.results.findings.findings_comparison import Paired
from tasks.results.findings.findings_forgetting import forgetting_parts
from tasks.results.forgetting import Report
from tasks.results.grid import ABSENT, markdown, plain_grid, words
from tasks.results.titles import technique_name

_OUTCOMES = {"for": "for", "against": "**against**", "open": "undecided"}
_COLUMNS = ("dataset", "technique", "first", "second", "seeds", "ratio", "claim", "ratio, known words", "claim")


def findings_page(
    claims: Sequence[Finding],
    known: Sequence[Finding],
    forgotten: Mapping[str, Sequence[Report]],
    *,
    cells: int,
    seeds: int,
    confidence: float,
) -> str:
    """The document; ``claims`` count all words, ``known`` in-vocabulary words only."""
    by_number = {finding.number: finding for finding in known}
    verdicts = {number: finding.verdict for number, finding in by_number.items()}
    rows = [(f"{each.number}", each.claim, f"**{each.verdict}**", verdicts.get(each.number, ABSENT)) for each in claims]
    parts = [
        "# Findings",
        f"Made by `palimpsest findings` from {cells} cells with {seeds} {'seed' if seeds == 1 else 'seeds'}. "
        f"A comparison counts if its {confidence:.0%} interval excludes the limit. The interval is a paired bootstrap "
        "over the test sentences. Several seeds widen it by their spread. *Confirmed*: every comparison is for the "
        "claim. *Contradicted*: more are against it than for it; for a claim on every method, any is. *Not confirmed*: "
        "anything between, or a comparison of the claim cannot be made.",
        "## The paper's claims",
        f"This experiment tests {len(claims)} of {len(CLAIMS)} claims; the others are left out.",
        markdown(plain_grid("", words("", "claim", "all words", "known words"), rows)) if rows else "",
    ]
    for finding in claims:
        other = by_number.get(finding.number)
        parts += [f"### {finding.number}. {finding.claim}", f"All words: **{finding.verdict}**. {finding.evidence}"]
        if other is not None and other.evidence != finding.evidence:
            parts.append(f"Known words: **{other.verdict}**. {other.evidence}")
        lines = list(_comparisons(finding.comparisons, other.comparisons if other is not None else ()))
        parts.append(markdown(plain_grid("", words(*_COLUMNS), lines)))
    return "\n\n".join(part for part in (*parts, *forgetting_parts(forgotten)) if part) + "\n"


def _comparisons(over_all: Sequence[Paired], over_known: Sequence[Paired]) -> Iterator[list[str]]:
    """A row each; the best fill over known words may be another, so some have numbers on one side only."""
    sides = [{each.place: each for each in side} for side in (over_all, over_known)]
    for place in dict.fromkeys([*sides[0], *sides[1]]):
        dataset, technique, first, second = place
        both = [side.get(place) for side in sides]
        row = [dataset, technique_name(technique), first, second, str(next(each.seeds for each in both if each))]
        for each in both:
            row += [_ratio(each), _OUTCOMES[each.outcome]] if each else [ABSENT, ABSENT]
        yield row


def _ratio(paired: Paired) -> str:
    """``0.934 [0.921, 0.948]``."""
    return f"{paired.ratio:.3f}" + ("" if paired.low is None else f" [{paired.low:.3f}, {paired.high:.3f}]")
