"""The card of a release: what whoever gets the text should know of it, in the form of Hugging Face's dataset cards.

The fields are those of ``huggingface_hub.DatasetCardData``. Nothing here is exact about masked words: shares have two
digits, classes of few words are joined, and how often a substitute was the masked word stands in no card.
"""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from tasks.privacy.earlier_releases import SharedLines
from tasks.privacy.gate import FEWEST, NOT_CHECKED, Check, percent
from tasks.privacy.ledger import epsilon_of
from tasks.privacy.released_cell import FilledCell

_SIZES = ((1e3, "n<1K"), (1e4, "1K<n<10K"), (1e5, "10K<n<100K"), (1e6, "100K<n<1M"), (1e7, "1M<n<10M"))


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card says besides what the reports say."""

    name: str
    """Of the release."""
    license: str
    language: str
    checks: Sequence[Check]
    earlier: SharedLines
    cells: Mapping[str, str]
    """Cells of the earlier releases, by name."""


def card(cell: FilledCell, facts: CardFacts) -> str:
    """Markdown with its front matter."""
    parts = [
        _front_matter(cell, facts),
        f"# {facts.name}",
        "## What this is\n\n" + _what(cell),
        "## How it was made, and can be made again\n\n" + _how(cell),
        "## What was masked\n\n" + "\n".join(_masked(cell)),
        "## What stands in clear\n\n" + _in_clear(cell),
        "## What is promised of the masked words\n\n" + _promise(cell),
        "## Other releases of the same lines\n\n" + _others(facts),
        "## What was checked\n\n" + "\n".join(_checked(facts.checks)),
        "## What was not checked\n\n" + "\n".join(f"- {line}" for line in NOT_CHECKED),
    ]
    if cell.adapt is not None:
        parts.append("## The language model\n\n" + _model(cell.adapt))
    return "\n\n".join(parts) + "\n"


def _front_matter(cell: FilledCell, facts: CardFacts) -> str:
    lines = cell.fill["measured"]["lines"]
    fields = {
        "pretty_name": facts.name,
        "license": facts.license,
        "language": [facts.language],
        "language_creators": ["other"],
        "annotations_creators": ["no-annotation"],
        "size_categories": [next((size for most, size in _SIZES if lines < most), "n>10M")],
        "task_categories": ["text-generation", "fill-mask"],
        "tags": ["privacy", "masked-and-filled", "palimpsest"],
        "configs": [{"config_name": "default", "data_files": [{"split": "train", "path": "text.txt"}]}],
    }
    return f"---\n{yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)}---"


def _what(cell: FilledCell) -> str:
    copies = cell.method.copies
    return (
        f"`text.txt`: {cell.fill['measured']['lines']:,} lines of UTF-8 text, one sentence a line"
        + (f", {copies} copies of the corpus one behind the other, each with other substitutes" if copies > 1 else "")
        + f". It is the private corpus `{cell.cell.dataset}`, in which words that the technique "
        f"`{cell.cell.technique}` calls private were masked and replaced by substitutes (method `{cell.cell.method}`"
        + (f", filler `{cell.cell.filler}`" if cell.cell.filler else "")
        + "). It is not anonymous by construction: read what stands in clear, and what was not checked."
    )


def _how(cell: FilledCell) -> str:
    steps = {"masking": cell.mask, "filling": cell.fill}
    facts = [f"- cell: `{cell.cell.path}` of palimpsest, seed {cell.fill['seed']}"]
    facts += [f"- {name}: commit {_commit(report['code'])}" for name, report in steps.items()]
    stage = cell.fill["dvc_stage"]
    if stage:
        facts.append(f"- by whoever has the private corpus: `dvc repro {shlex.quote(stage)}`")
    if cell.method.follows_originals or cell.method.counts_masked_words:
        facts.append("- the substitutes are drawn from a secret: without it another text comes out")
    else:
        facts.append("- nothing is drawn from a secret: the same masked text and seed give the same substitutes")
    settings = yaml.safe_dump({name: report["parameters"] for name, report in steps.items()}, sort_keys=False)
    return "\n".join(facts) + f"\n\n```yaml\n{settings}```"


def _commit(code: Mapping[str, Any]) -> str:
    if code["commit"] is None:
        return "not recorded (made outside a git checkout)"
    return f"`{code['commit']}`" + (" **with uncommitted changes: nobody else has this code**" if code["dirty"] else "")


def _masked(cell: FilledCell) -> Iterator[str]:
    words, classes = cell.mask["measured"]["words"], Counter(cell.mask["measured"]["masked_by_class"])
    yield f"{percent(classes.total() / words)} of the words, by the class that the technique gave them:"
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


def _in_clear(cell: FilledCell) -> str:
    words, masked = cell.mask["measured"]["words"], sum(cell.mask["measured"]["masked_by_class"].values())
    return (
        f"{percent(1 - masked / words)} of the words stand as they stood in the private text, with punctuation, white "
        "space, and the number and order of the lines. Whatever the technique missed is here, and so is a phrase of "
        "harmless words that tells who is spoken of. Substitutes stand at the places of masked words, in their case; "
        "one may stand for several words side by side."
    )


def _promise(cell: FilledCell) -> str:
    epsilon, settings = epsilon_of(cell.method), cell.method
    if epsilon is None:
        return (
            "No differential privacy of a line or document. The fill reads the masked words (surrogates, `metric`, "
            "`forbid_original` or `classes: match`): a substitute then says a little of the word that it stands for, "
            "and what several fills say adds up. The epsilon of `metric` is of one word, for each unit of distance."
        )
    if not epsilon:
        return (
            "The substitutes are a function of the masked text, public data and a public seed: they say nothing of the "
            "masked words beyond what the masked text says (epsilon 0, given the masked text). Words that were not "
            "masked have no promise, and neither has the place, number and class of what was masked."
        )
    unit = settings.counts.unit
    return (
        f"epsilon = {epsilon:g} for the masked words of a {unit}, given the masked text: other words behind the "
        f"markers of one {unit} change the probability of this text by no more than a factor of exp({epsilon:g}). "
        "Words that were not masked have no promise, and neither has the place, number and class of what was masked, "
        f"or whether a {unit} is among these at all. Epsilons of other releases of the same lines with other "
        "counts add up."
    )


def _others(facts: CardFacts) -> str:
    unknown = "".join(f" What `{name}` shares with it is not known." for name in facts.earlier.unknown)
    if not facts.earlier.lines:
        return f"None by this clone of the experiment. Its ledger knows of no release of another one.{unknown}"
    listed = ", ".join(f"`{name}` (`{facts.cells[name]}`)" for name in facts.earlier.lines)
    return (
        f"{listed}. Whoever has all of them sees {percent(facts.earlier.share)} of the words that any of them masks, "
        f"and finds substitutes where they differ.{unknown}"
    )


def _checked(checks: Sequence[Check]) -> Iterator[str]:
    yield "| check | by | what came of it | passed |"
    yield "|---|---|---|---|"
    for check in checks:
        passed = "no limit is set" if check.passed is None else "yes" if check.passed else "no"
        yield f"| {check.name} | {check.attacker} | {check.figure} | {passed} |"


def _model(adapt: Mapping[str, Any]) -> str:
    settings = json.dumps(adapt["parameters"], ensure_ascii=False)
    return (
        "`model/` is a language model that was adapted on `text.txt`: it can repeat whatever stands in clear there, "
        "and knows nothing of a masked word beyond the text. Its validation text is private: where training stops "
        "early, or the weight of an n-gram model is learned, that choice follows it.\n\n"
        f"- commit {_commit(adapt['code'])}, seed {adapt['seed']}\n- parameters: `{settings}`"
    )
