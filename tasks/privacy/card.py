"""``README.md`` of a release: information for its recipient, in the form of Hugging Face's dataset cards.

The fields are those of ``huggingface_hub.DatasetCardData``. Nothing here is exact about masked words: shares have two
digits, classes of few words are joined, and no card has the share of substitutes equal to the masked word. If the text
has an epsilon, the card has none of these figures: other masked words give the same card, byte by byte.
"""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from tasks.privacy.checks import FEWEST, LEFT_OUT, markers_share, percent
from tasks.privacy.gate import DOSSIER, Examined
from tasks.privacy.ledger import Release
from tasks.privacy.released_cell import FilledCell
from tasks.privacy.settings import ReleaseSettings
from tasks.results.readings import stronger

WHY_LEFT_OUT = (
    "Figures that read the masked words, or how many there are, are left out: epsilon is about this page too, and they "
    "have no noise. That the limits were met is said all the same. The sender's own dossier has the figures."
)
MEMBERSHIP_BY_TEXT = (
    "**That a line is in the text is not protected.** Who has a private line finds it here by its unmasked words, "
    "nearly always. Figures on membership are of the language model alone."
)
MEASURED_ON_SAMPLE = (
    "figures: measured on a sample of {:,} lines, to which the limits apply; the same masking and filling were then "
    "applied to this text"
)
_CHOICE = (
    " Which of several maskings and fills was released may have been chosen by figures of the private text. The choice "
    "is in no epsilon."
)
_SIZES = ((1e3, "n<1K"), (1e4, "1K<n<10K"), (1e5, "10K<n<100K"), (1e6, "100K<n<1M"), (1e7, "1M<n<10M"))


def card(cell: FilledCell, examined: Examined, settings: ReleaseSettings, before: Sequence[Release]) -> str:
    """Markdown with its front matter. ``before``: the ledger without this release."""
    name = examined.entry.name
    parts = [
        _front_matter(cell, name, settings),
        f"# {name}",
        "## Summary\n\n" + _summary(cell),
        "## How it was made\n\n" + _how(cell),
        "## What was masked\n\n" + "\n".join(_masked(cell, examined)),
        "## What was not masked\n\n" + _unmasked(cell, examined),
        "## Differential privacy\n\n" + _promise(cell, examined.entry.epsilon) + _CHOICE,
        "## Other releases of the same lines\n\n" + _others(examined, before),
        "## Checks\n\n" + "\n".join(_checks(cell, examined)),
    ]
    if cell.adapt is not None:
        parts.append("## The language model\n\n" + _model(cell.adapt))
    return "\n\n".join(parts) + "\n"


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
    return f"---\n{yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)}---"


def _summary(cell: FilledCell) -> str:
    copies, filler = cell.method.copies, cell.cell.filler
    several = f", {copies} copies of the corpus in a row, each with other substitutes" if copies > 1 else ""
    return (
        f"`text.txt`: {cell.lines:,} lines of UTF-8 text, one sentence a line{several}. It comes "
        f"from the private corpus `{cell.cell.dataset}`. The masking technique `{cell.cell.technique}` found private "
        f"words, and the infilling method `{cell.cell.method}`{f' ({filler})' if filler else ''} replaced them."
        f"{_files(cell)}\n\n"
        "**This text is not anonymised.** It is pseudonymised personal data. Do not try to identify anybody in it. "
        f"`{DOSSIER}` has the threat model, all attacks and who approved the release."
    )


def _files(cell: FilledCell) -> str:
    """Sentences on files that were written back."""
    if not (cell.applied and cell.applied.files):
        return ""
    fields = ", ".join(f"`{field}`" for field in cell.applied.fields)
    stay = f" The fields {fields} are those of the private files." if fields else ""
    return f" `files` has these lines in copies of the private files, at the places of their texts.{stay}"


def _how(cell: FilledCell) -> str:
    steps = {"masking": cell.mask, "filling": cell.fill}
    facts = [f"- cell: `{cell.cell.path}` of palimpsest, seed {cell.fill['seed']}"]
    facts += [f"- {name}: commit {_commit(report['code'])}" for name, report in steps.items()]
    if cell.applied:
        facts.append(f"- {MEASURED_ON_SAMPLE.format(cell.mask['measured']['lines'])}")
    stage = cell.fill["dvc_stage"]
    if stage and not cell.applied:
        facts.append(f"- command, for the owner of the private corpus: `dvc repro {shlex.quote(stage)}`")
    if cell.method.follows_originals or cell.method.counts_masked_words:
        facts.append("- the substitutes depend on a secret: without it the text cannot be made again")
    else:
        facts.append("- the substitutes depend on no secret: the same masked text and seed give the same text")
    settings = yaml.safe_dump({name: report["parameters"] for name, report in steps.items()}, sort_keys=False)
    return "\n".join(facts) + f"\n\n```yaml\n{settings}```"


def _commit(code: Mapping[str, Any]) -> str:
    if code["commit"] is None:
        return "not recorded (made outside a git checkout)"
    return f"`{code['commit']}`" + (" **with uncommitted changes**" if code["dirty"] else "")


def _masked(cell: FilledCell, examined: Examined) -> Iterator[str]:
    if examined.figures_left_out:
        yield f"{percent(markers_share(cell.masked))} of the words of the masked text are markers. {WHY_LEFT_OUT}"
        return
    words, classes = cell.mask["measured"]["words"], Counter(cell.mask["measured"]["masked_by_class"])
    yield f"Masking rate: {percent(classes.total() / words)} of the words, by the class that the technique gave them:"
    yield ""
    yield "| class | share of all words |"
    yield "|---|---:|"
    shown = {name: count for name, count in classes.items() if count >= FEWEST}
    small = classes.total() - sum(shown.values())
    for name, count in sorted(shown.items(), key=lambda item: -item[1]):
        yield f"| {name} | {percent(count / words)} |"
    if small >= FEWEST:
        yield f"| classes of fewer than {FEWEST} words | {percent(small / words)} |"
    elif small:
        yield f"| classes of fewer than {FEWEST} words | fewer than {FEWEST} words |"


def _unmasked(cell: FilledCell, examined: Examined) -> str:
    words, masked = cell.mask["measured"]["words"], sum(cell.mask["measured"]["masked_by_class"].values())
    direct = examined.checks[0]
    share = "All other words" if examined.figures_left_out else f"{percent(1 - masked / words)} of the words"
    source = "" if examined.figures_left_out else f" ({direct.attacker})"
    return (
        f"{share} are those of the private text, with punctuation, white space, and the number and order of the lines. "
        f"Unmasked direct identifiers per 1,000 lines: {direct.figure}{source}. A phrase of harmless words may say who "
        "is meant. Substitutes are at the places of masked words, in their case; one may replace several neighbouring "
        f"words.\n\n{MEMBERSHIP_BY_TEXT}"
    )


def _promise(cell: FilledCell, epsilon: float | None) -> str:
    if epsilon is None:
        return (
            "None. The infilling method reads the masked words (surrogates, or `classes: match`). A substitute then "
            "says a little about the word that it replaces, and several fills say more."
        )
    if not epsilon:
        return (
            "The substitutes are a function of the masked text, public data and a public seed. They say nothing about "
            "the masked words beyond what the masked text says: epsilon 0, given the masked text. Words that were not "
            "masked have no promise, nor have place, number and class of what was masked."
        )
    unit = cell.method.counts.unit
    return (
        f"epsilon = {epsilon:g} for the masked words of a {unit}, given the masked text: other masked words in one "
        f"{unit} change the probability of this text by at most a factor of exp({epsilon:g}). Words that were not "
        f"masked have no promise, nor have place, number and class of what was masked, or whether a {unit} is in the "
        "corpus. Epsilons of other releases of the same lines with other counts add up."
    )


def _others(examined: Examined, before: Sequence[Release]) -> str:
    earlier, cells = examined.earlier, {release.name: release.cell for release in before}
    if examined.figures_left_out:
        listed = ", ".join(f"`{name}` (`{cells[name]}`)" for name in examined.entry.also)
        return f"{listed}: {LEFT_OUT} what they show together." if listed else "The sender has named none."
    unknown = "".join(f" What `{name}` shares with it is not known." for name in earlier.unknown)
    if not earlier.lines:
        return f"None by this clone of the experiment. Its ledger does not see those of other clones.{unknown}"
    listed = ", ".join(f"`{name}` (`{cells[name]}`)" for name in earlier.lines)
    return (
        f"{listed}. A reader of all of them sees {percent(earlier.share)} of the words that any of them masks, and "
        f"finds substitutes where they differ.{unknown}"
    )


def _checks(cell: FilledCell, examined: Examined) -> Iterator[str]:
    yield "| check | result [interval] | limit |"
    yield "|---|---|---|"
    for check in examined.checks:
        if check.limit:
            yield f"| {check.name[0].lower()}{check.name[1:]} | {check.figure} | {check.limit} |"
    yield ""
    for sentence in stronger(cell.audit["parameters"] if cell.audit else {}):
        yield f"{sentence}\n"
    if examined.figures_left_out:
        yield WHY_LEFT_OUT
        return
    yield f"Figures without a limit, and who attacked with what: `{DOSSIER}`."


def _model(adapt: Mapping[str, Any]) -> str:
    settings = json.dumps(adapt["parameters"], ensure_ascii=False)
    return (
        "`model/` is a language model that was adapted on `text.txt`. It can repeat every word that was not masked, "
        "and knows nothing of a masked word beyond the text. Its validation text is private: early stopping, or the "
        "learned weight of an n-gram model, depends on it.\n\n"
        f"- commit {_commit(adapt['code'])}, seed {adapt['seed']}\n- parameters: `{settings}`"
    )
