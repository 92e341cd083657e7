"""Training of a spaCy named-entity recogniser on labelled text, from an existing pipeline or from scratch.

An existing pipeline retains its types and learns new ones. Labels with the meaning of an existing type (a city is a
``GPE``) are trained under the pipeline's own name. Without examples it forgets its types, so it also rehearses: it
labels generic sentences before the training, and is trained on both these and the new sentences.
"""

import json
import random
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.errors import CorpusError, ModelError
from tasks.files.atomic_file import PUBLIC_FOLDER_MODE, PUBLIC_MODE, atomic_folder
from tasks.labelled_text.labelled_lines import LabelledLine
from tasks.masking.taggers.spacy_tagger import load_pipeline, set_up_spacy
from tasks.masking.taggers.tagger_folder import check_tagger_folder
from tasks.tagger_training.settings import SpacyTraining

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.pipeline import EntityRecognizer
    from spacy.tokens import Doc, Span
    from spacy.training import Example

ONTONOTES_TYPES = {
    "PERSON": "PERSON",
    "CITY": "GPE",
    "COUNTRY": "GPE",
    "STATE": "GPE",
    "REGION": "LOC",
    "FACILITY": "FAC",
    "ORGANISATION": "ORG",
    "TEAM": "ORG",
    "BAND": "ORG",
    "DATE": "DATE",
    "TIME": "TIME",
    "MONEY": "MONEY",
    "NATIONALITY": "NORP",
    "BELIEF": "NORP",
    "WORK": "WORK_OF_ART",
    "PRODUCT": "PRODUCT",
    "EVENT": "EVENT",
}
"""Types of OntoNotes 5, as in spaCy's pipelines, by labels of generated text; other labels get their class."""


def spacy_type(label: str, class_of: Callable[[str], str | None]) -> str | None:
    """The entity type for a label in training; ``None`` if the label is not trained."""
    name = class_of(label)
    return None if name is None else ONTONOTES_TYPES.get(label, name)


def train_spacy(
    lines: Iterable[LabelledLine],
    class_of: Callable[[str], str | None],
    rehearsal: Sequence[str],
    settings: SpacyTraining,
    output: str | Path,
) -> dict[str, Any]:
    """Train on labelled lines, write the pipeline's folder, and return the measurements.

    ``rehearsal``: generic sentences that a base labels itself before the training. Spans that do not fit spaCy's tokens
    are widened to them; overlapping ones are left out, and counted. ``ModelError`` if the base cannot be read or the
    loss becomes NaN, ``CorpusError`` without a labelled span, ``ParameterError`` if the output is something else.
    """
    check_tagger_folder(output, "spaCy pipeline", "meta.json")
    set_up_spacy()
    import spacy
    from spacy.training import Example
    from thinc.api import fix_random_seed

    fix_random_seed(settings.seed)
    generator = random.Random(settings.seed)
    if settings.base:
        pipeline = load_pipeline(settings.base)
        recogniser = _recogniser(pipeline, settings.base)
    else:
        pipeline = spacy.blank("en")
        recogniser = pipeline.add_pipe("ner")
    known_strings = set(pipeline.vocab.strings)
    examples, entities, overlapping = [], 0, 0
    for line in lines:
        reference = pipeline.make_doc(line.text)
        reference.ents, left_out = _entities(reference, line, class_of)
        examples.append(Example(pipeline.make_doc(line.text), reference))
        entities += len(reference.ents)
        overlapping += left_out
    if not entities:
        raise CorpusError("the labelled text has no labelled span; a recogniser needs some to learn from")
    measured = {"lines": len(examples), "entities": entities, "overlapping_spans": overlapping}
    wanted = round(settings.rehearsal_share * len(examples)) if settings.base else 0
    chosen = generator.sample(list(rehearsal), min(wanted, len(rehearsal)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        examples += [
            Example(pipeline.make_doc(labelled.text), labelled)
            for labelled in pipeline.pipe(chosen, batch_size=256)
            if len(labelled)
        ]
    labels = {entity.label_ for example in examples for entity in example.reference.ents}
    for label in sorted(labels - set(recogniser.labels)):
        recogniser.add_label(label)
    if settings.base:
        pipeline.resume_training()
    else:
        pipeline.initialize(lambda: examples[:1000])
    loss = _update(pipeline, examples, settings, generator)
    with atomic_folder(output) as fresh:
        pipeline.meta["name"], pipeline.meta["version"] = "palimpsest", "1.0.0"
        pipeline.meta["description"] = f"trained by palimpsest on labelled text; base: {settings.base or 'none'}"
        pipeline.to_disk(fresh)
        _leave_out_words(fresh / "vocab" / "strings.json", known_strings | set(recogniser.labels))
        for path in fresh.rglob("*"):
            path.chmod(PUBLIC_FOLDER_MODE if path.is_dir() else PUBLIC_MODE)
    return {**measured, "entity_types": sorted(recogniser.labels), "loss": loss}


def _leave_out_words(path: Path, known: set[str]) -> None:
    """Leave out the words that spaCy remembers of the private text, which no file of the pipeline needs."""
    strings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps([each for each in strings if each in known], ensure_ascii=False), encoding="utf-8")


def _update(
    pipeline: "Language", examples: "list[Example]", settings: SpacyTraining, generator: random.Random
) -> float:
    """Train; return the summed loss of the last epoch."""
    from thinc.api import Adam

    optimizer = Adam(settings.learning_rate, L2=0.0, grad_clip=1.0)
    words = sum(len(example.reference) for example in examples)
    total = max(1, settings.epochs * words // settings.batch_words)
    updates, loss = 0, 0.0
    for _ in range(settings.epochs):
        generator.shuffle(examples)
        losses: dict[str, float] = {}
        for batch in _batches(examples, settings.batch_words):
            done = min(1.0, updates / total)
            optimizer.learn_rate = settings.learning_rate * min(done * 10 + 1 / total, (1 - done) / 0.9 + 1e-3, 1.0)
            pipeline.update(batch, sgd=optimizer, drop=settings.dropout, losses=losses)
            updates += 1
        loss = float(losses.get("ner", float("nan")))
        if not loss == loss:
            raise ModelError(f"the loss became NaN in update {updates}; lower learning_rate")
    return loss


def _batches(examples: list[Any], words: int) -> Iterable[list[Any]]:
    batch: list[Any] = []
    size = 0
    for example in examples:
        batch.append(example)
        size += len(example.reference)
        if size >= words:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _recogniser(pipeline: "Language", name: str) -> "EntityRecognizer":
    if "ner" not in pipeline.pipe_names:
        raise ModelError(
            f"spaCy pipeline {name!r} has no trainable recogniser 'ner'; it has {', '.join(pipeline.pipe_names)}"
        )
    return pipeline.get_pipe("ner")


def _entities(reference: "Doc", line: LabelledLine, class_of: Callable[[str], str | None]) -> "tuple[list[Span], int]":
    """The spans of a line as spaCy's, the longest of overlapping ones first, and the number of those left out."""
    entities: list[Span] = []
    left_out = 0
    for span in sorted(line.spans, key=lambda span: (span.start - span.end, span.start)):
        label = spacy_type(span.label, class_of)
        if label is None:
            continue
        entity = reference.char_span(span.start, span.end, label=label, alignment_mode="expand")
        if entity is None or any(entity.start < one.end and one.start < entity.end for one in entities):
            left_out += 1
        else:
            entities.append(entity)
    return entities, left_out
