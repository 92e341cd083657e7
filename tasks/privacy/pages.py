"""The pages of a release, from the templates ``card.md`` and ``dossier.md``.

The card, ``README.md``, informs a recipient in the form of Hugging Face's dataset cards. The dossier is for a privacy
officer before signing. Nothing in either is exact about masked words: shares have two digits, classes of few words are
joined, and no page has the share of substitutes equal to the masked word. If the text has an epsilon, the pages have
none of these figures: other masked words give the same pages, byte by byte. The private copy of the release then has
the complete dossier.
"""

import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tasks.audit.rungs import RUNGS, figure_of
from tasks.corpora.text_lines import read_lines
from tasks.privacy.checks import FEWEST, LEFT_OUT, Check, interval, markers_share, percent
from tasks.privacy.gate import Examined
from tasks.privacy.ledger import Release, epsilon_spent, linked_to
from tasks.privacy.released_cell import FilledCell
from tasks.privacy.settings import ReleaseSettings
from tasks.results.readings import stronger
from tasks.review.agreement import agreements
from tasks.review.record import review_of

_SIZES = ((1e3, "n<1K"), (1e4, "1K<n<10K"), (1e5, "10K<n<100K"), (1e6, "100K<n<1M"), (1e7, "1M<n<10M"))
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


def card(cell: FilledCell, examined: Examined, settings: ReleaseSettings, before: Sequence[Release]) -> str:
    """Markdown with its front matter. ``before``: the ledger without this release."""
    words, classes = cell.mask["measured"]["words"], Counter(cell.mask["measured"]["masked_by_class"])
    shown = {name: count for name, count in classes.items() if count >= FEWEST}
    small = classes.total() - sum(shown.values())
    cells = {release.name: release.cell for release in before}
    others = examined.entry.also if examined.figures_left_out else examined.earlier.lines
    steps = {"masking": cell.mask, "filling": cell.fill}
    stage = cell.fill["dvc_stage"]
    return _page(
        "card.md",
        cell,
        examined,
        front_matter=_front_matter(cell, examined.entry.name, settings),
        fields=", ".join(f"`{field}`" for field in cell.applied.fields) if cell.applied else "",
        steps=steps,
        stage=shlex.quote(stage) if stage and not cell.applied else "",
        parameters=yaml.safe_dump({name: report["parameters"] for name, report in steps.items()}, sort_keys=False),
        unmasked=percent(1 - classes.total() / words),
        classes=[(name, percent(count / words)) for name, count in sorted(shown.items(), key=lambda item: -item[1])],
        small=small and (percent(small / words) if small >= FEWEST else f"fewer than {FEWEST} words"),
        others=", ".join(f"`{name}` (`{cells[name]}`)" for name in others),
        earlier=examined.earlier,
        checks=examined.checks,
        adaptation=json.dumps(cell.adapt["parameters"], ensure_ascii=False) if cell.adapt else "",
    )


def dossier(cell: FilledCell, examined: Examined, settings: ReleaseSettings, before: Sequence[Release]) -> str:
    """Markdown. ``before``: the ledger without this release."""
    by_key = {check.key: check for check in examined.checks}
    threats = [(threat, by_key[key]) for key, threat in _THREATS.items() if key in by_key]
    attackers: dict[str, list[str]] = {}
    for _, check in threats:
        attackers.setdefault(check.attacker or "anybody, by counting", []).append(check.name)
    everything = linked_to([*before, examined.entry], examined.entry.dataset)
    found, left_out = examined.unmasked, examined.figures_left_out
    by_class = {"**direct**": found.direct, "**quasi**": found.quasi, **dict(sorted(found.classes.items()))}
    return _page(
        "dossier.md",
        cell,
        examined,
        quasi=by_key["unmasked_quasi"].figure,
        limited=sum(1 for check in examined.checks if check.limit and check.key != "unmasked_direct"),
        strong=[f"{check.name}: {check.figure}" for check in examined.checks if check.reading == "strong"],
        epsilon=_epsilon(examined.entry.epsilon, examined.entry.unit),
        singled=_listed(by_key, "membership_auc"),
        linked=_listed(by_key, "linked_mentions", "found_by_second_fill"),
        inferred=_listed(by_key, "reidentified", "exposure"),
        threats=threats,
        attackers=attackers,
        identifiers=[
            (name, interval(of.per_thousand), interval(of.recall, percent) if of.found >= FEWEST else "not shown")
            for name, of in by_class.items()
        ],
        review=None if left_out else _review(cell),
        earlier=[_earlier(release, examined) for release in everything if release is not examined.entry],
        spent=_epsilon(epsilon_spent(everything), next((one.unit for one in everything if one.unit), None)),
        budget="none is set" if settings.epsilon_budget is None else f"{settings.epsilon_budget:g}",
    )


def _page(template: str, cell: FilledCell, examined: Examined, **values: Any) -> str:  # noqa: ANN401 - of a template
    """A template with these values, and with those that both pages have."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    mask, left_out = cell.mask["measured"], examined.figures_left_out
    return environment.get_template(template).render(
        cell=cell,
        method=cell.method,
        entry=examined.entry,
        left_out=left_out,
        sample_lines=mask["lines"] if cell.applied else None,
        masked=percent(markers_share(cell.masked) if left_out else mask["masked_words"] / mask["words"]),
        direct=examined.checks[0],
        together=percent(examined.earlier.share) if examined.earlier.lines and not left_out else "",
        stronger=stronger(cell.audit["parameters"] if cell.audit else {}),
        fewest=FEWEST,
        **values,
    )


def _front_matter(cell: FilledCell, name: str, settings: ReleaseSettings) -> str:
    fields = {
        "pretty_name": name,
        "license": settings.license,
        "language": [settings.language],
        "language_creators": ["other"],
        "annotations_creators": ["no-annotation"],
        "size_categories": [next((size for most, size in _SIZES if cell.lines < most), "n>10M")],
        "task_categories": ["text-generation", "fill-mask"],
        "tags": ["privacy", "masked-and-filled", "palimpsest"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "text.txt"}]}],
    }
    return yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)


def _listed(by_key: Mapping[str, Check], *keys: str) -> str:
    return "; ".join(f"{by_key[key].name}: {by_key[key].figure}" for key in keys if key in by_key)


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
    unknown = release.name in examined.earlier.unknown
    shared = "not known" if unknown else f"{examined.earlier.lines.get(release.name, 0):,}"
    return (
        release.name,
        release.when[:10],
        f"`{release.cell}`",
        _epsilon(release.epsilon, release.unit),
        LEFT_OUT if examined.figures_left_out else shared,
        release.withdrawn[:10] if release.withdrawn else "no",
    )


def _epsilon(epsilon: float | None, unit: str | None) -> str:
    return "none is promised" if epsilon is None else f"{epsilon:g}" + (f" per {unit}" if unit else "")
