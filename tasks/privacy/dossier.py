"""``DOSSIER.md`` of a release: the document for a privacy officer before signing, with the figures of the run.

The words are those of the template ``dossier.md``. Like the card it has nothing exact about masked words. If the text
has an epsilon, it has no figure that read them; the private copy of the release then has the complete dossier.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tasks.audit.rungs import RUNGS, figure_of
from tasks.corpora.text_lines import read_lines
from tasks.privacy.card import MEASURED_ON_SAMPLE, MEMBERSHIP_BY_TEXT, WHY_LEFT_OUT
from tasks.privacy.checks import FEWEST, LEFT_OUT, Check, interval, markers_share, percent
from tasks.privacy.gate import Examined
from tasks.privacy.ledger import Release, epsilon_spent, linked_to
from tasks.privacy.released_cell import FilledCell
from tasks.privacy.settings import ReleaseSettings
from tasks.results.readings import stronger
from tasks.review.agreement import agreements
from tasks.review.estimate import Unmasked
from tasks.review.record import review_of

_TEXT, _MODEL, _BOTH = "recipient of the text", "recipient of the model", "the model, and the one before"
_THREATS = {
    "unmasked_direct": (_TEXT, "the text", "a named person"),
    "unmasked_quasi": (_TEXT, "the text, public records", "a person, by combining facts"),
    "verbatim_lines": (_TEXT, "the text", "private lines"),
    "reidentified": (_TEXT, "the text, public language models", "masked words"),
    "reidentified_10": (_TEXT, "the text, public language models", "masked words"),
    **{figure_of(rung): (_TEXT, source, "masked words") for rung, source in RUNGS.items()},
    "linked_mentions": (_TEXT, "the text", "mentions of one person"),
    "found_by_second_fill": ("recipient of two fills", "both fills", "which words are real"),
    "exposure": (_MODEL, _BOTH, "masked names"),
    "exposure_unmasked": (_MODEL, _BOTH, "unmasked words"),
    "membership_auc": (_MODEL, _BOTH, "whose lines it saw"),
    "membership_tpr_1": (_MODEL, _BOTH, "whose lines it saw"),
    "membership_lira_auc": (_MODEL, "the same, shadow models", "whose lines it saw"),
    "membership_lira_tpr_1": (_MODEL, "the same, shadow models", "whose lines it saw"),
    "extracted": (_MODEL, "the model", "private text"),
    "extracted_planted_unmasked": (_MODEL, "the model", "unmasked words"),
}
"""Adversary, its means and its goal, by figure."""
_LINKING = "linked_mentions", "found_by_second_fill"
NOT_TRIED = (
    "Whether a person with many lines is in the text: attacks were on single lines.",
    "What a reader finds out who knows the people, or has other texts about them.",
    "What a language model stronger than the attacker's recovers of the masked words.",
    "Who wrote a line, by style.",
    "Lines of earlier releases that were edited since in more than half of their words.",
)
"""Sentences for the dossier: each names a risk that no figure covers."""


def dossier(cell: FilledCell, examined: Examined, settings: ReleaseSettings, before: Sequence[Release]) -> str:
    """Markdown. ``before``: the ledger without this release."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    by_key = {check.key: check for check in examined.checks}
    attackers: dict[str, list[str]] = {}
    threats = [(threat, by_key[key]) for key, threat in _THREATS.items() if key in by_key]
    for _, check in threats:
        attackers.setdefault(check.attacker or "anybody, by counting", []).append(check.name)
    mask, entry = cell.mask["measured"], examined.entry
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    everything = linked_to([*before, entry], entry.dataset)
    left_out = examined.figures_left_out
    return environment.get_template("dossier.md").render(
        name=entry.name,
        entry=entry,
        lines=cell.lines,
        sample=MEASURED_ON_SAMPLE.format(mask["lines"]) if cell.applied else "",
        model=cell.model is not None,
        masked=percent(markers_share(cell.masked) if left_out else mask["masked_words"] / mask["words"]),
        method=f"{cell.cell.method}" + (f" with {cell.cell.filler}" if cell.cell.filler else ""),
        direct=by_key["unmasked_direct"],
        quasi=by_key["unmasked_quasi"].figure,
        limited=sum(1 for check in examined.checks if check.limit and check.key != "unmasked_direct"),
        left_out=WHY_LEFT_OUT if left_out else "",
        membership_by_text=MEMBERSHIP_BY_TEXT,
        strong=[LEFT_OUT]
        if left_out
        else [f"{check.name}: {check.figure}" for check in examined.checks if check.reading == "strong"],
        epsilon=_epsilon(entry.epsilon, entry.unit),
        singled=_listed(by_key, ["membership_auc"], "; "),
        linked=_listed(by_key, _LINKING) or "not measured",
        inferred=_listed(by_key, ["reidentified", "exposure"]) or "not measured",
        threats=threats,
        attackers=attackers,
        identifiers=[] if left_out else list(_identifiers(examined)),
        fewest=FEWEST,
        review=None if left_out else _review(cell),
        earlier=[_earlier(release, examined) for release in everything if release is not entry],
        together=percent(examined.earlier.share) if examined.earlier.lines and not left_out else "",
        spent=_epsilon(epsilon_spent(everything), next((one.unit for one in everything if one.unit), None)),
        budget="none is set" if settings.epsilon_budget is None else f"{settings.epsilon_budget:g}",
        not_tried=(*NOT_TRIED, *stronger(cell.audit["parameters"] if cell.audit else {})),
    )


def _listed(by_key: Mapping[str, Check], keys: Sequence[str], first: str = "") -> str:
    found = [f"{by_key[key].name}: {by_key[key].figure}" for key in keys if key in by_key]
    return first + "; ".join(found) if found else ""


def _identifiers(examined: Examined) -> Iterator[tuple[str, str, str]]:
    def row(name: str, found: Unmasked) -> tuple[str, str, str]:
        recall = interval(found.recall, percent) if found.found >= FEWEST else "not shown"
        return name, interval(found.per_thousand), recall

    yield row("**direct**", examined.unmasked.direct)
    yield row("**quasi**", examined.unmasked.quasi)
    for name, found in sorted(examined.unmasked.classes.items()):
        yield row(name, found)


def _review(cell: FilledCell) -> tuple[str, ...] | None:
    """The review's record: numbers, names and dates, no text."""
    review = review_of(str(cell.cell.dataset), cell.raw)
    if review is None or not review.lines:
        return None
    kappas = [each.kappa_class for each in agreements(review, list(read_lines(cell.raw)))]
    kappa = min((kappa for kappa in kappas if kappa is not None), default=None)
    days = sorted(line.when[:10] for line in review.lines)
    seconds = sum(line.seconds for line in review.lines)
    return (
        f"{len({line.line for line in review.lines}):,} of {review.plan.lines:,}",
        ", ".join(sorted({line.reviewer for line in review.lines})),
        days[0],
        days[-1],
        f"{seconds / 60:.0f}" if seconds else "not timed",
        "one reviewer" if kappa is None else f"{kappa:.2f}",
    )


def _earlier(release: Release, examined: Examined) -> tuple[str, ...]:
    shared = f"{examined.earlier.lines.get(release.name, 0):,}"
    if examined.figures_left_out:
        shared = LEFT_OUT
    elif release.name in examined.earlier.unknown:
        shared = "not known"
    return (
        release.name,
        release.when[:10],
        f"`{release.cell}`",
        _epsilon(release.epsilon, release.unit),
        shared,
        release.withdrawn[:10] if release.withdrawn else "no",
    )


def _epsilon(epsilon: float | None, unit: str | None) -> str:
    return "none is promised" if epsilon is None else f"{epsilon:g}" + (f" per {unit}" if unit else "")
