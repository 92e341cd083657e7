"""Train a tagger of private words on labelled text, and test it on a held-out part.

Labelled text has JSON lines. 'palimpsest generate-labelled' writes such files:

  {"text": "...", "spans": [{"start": 0, "end": 4, "label": "PERSON"}]}

Choose the kind of tagger:

  --set kind=crf               conditional random field: fast and small.
  --set kind=word_classifier   classifier of words on a Transformer encoder: finds more.
  --set kind=spacy             recogniser of a spaCy pipeline, trained further.

With kind=spacy, --set base=null trains a new recogniser instead.

A tagger reveals parts of its text: 'palimpsest audit-tagger' attacks it, and writes a copy to share.

The result is a folder. Use it with 'palimpsest mask --technique crf --set tagger.model=FOLDER'. For
the other kinds, the technique is word_classifier or spacy.

Examples:
  palimpsest generate-labelled --set sentences=20000 --output labelled
  palimpsest train-tagger --set kind=crf --labelled labelled --output models/taggers/crf
  palimpsest train-tagger --set kind=spacy --labelled labelled --rehearsal-text generic.txt --output models/taggers/own
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from tasks.command import StageCommand, StageFiles
from tasks.corpora.words import word_spans
from tasks.errors import CorpusError, ParameterError
from tasks.labelled_text.labelled_lines import LabelledLine, read_labelled, span_warnings
from tasks.masking.settings import TaggerSettings
from tasks.masking.taggers.entity_tagger import EntityTagger, load_tagger
from tasks.masking.taggers.tagger_folder import write_audit_record
from tasks.masking_evaluation.judged_line import rates
from tasks.options import READ, Role
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.tagger_training.settings import TaggerTrainingSettings


def held_out_scores(
    settings: TaggerSettings, path: str | Path, class_of: Callable[[str], str | None], threads: int
) -> dict[str, Any]:
    """Recall, precision and F2 of words, for any type; undefined is ``None``.

    The definitions equal the token level of ``evaluate-masking``, without its mapping of types.
    """
    tagger = load_tagger(settings, threads)
    lines = list(read_labelled(path))
    found = private = masked = 0
    for line, (_, entities) in zip(lines, tagger.tag(line.text for line in lines), strict=True):
        wanted = [span for span in line.spans if class_of(span.label) is not None]
        for start, end in word_spans(line.text):
            is_private = any(span.start < end and start < span.end for span in wanted)
            is_masked = any(span.start < end and start < span.end for span in entities)
            private += is_private
            masked += is_masked
            found += is_private and is_masked
    return {
        "test_lines": len(lines),
        **{f"test_{name}": value for name, value in rates(found, private, found, masked).items()},
    }


SUMMARY = "train a tagger of private words on labelled text"


class TrainTaggerFiles(StageFiles):
    """Files that the training of a tagger reads and writes."""

    labelled: Annotated[str, READ]
    """folder with train.jsonl and test.jsonl"""
    output: Annotated[str, Role(writes=True, replaced=True)]
    """folder for the tagger; an earlier folder there is replaced"""
    rehearsal_text: Annotated[str | None, READ] = None
    """generic text that the base of a spaCy pipeline rehearses on, so that it does not forget its types"""


def train_tagger(
    settings: TaggerTrainingSettings, files: TrainTaggerFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Train a tagger and test it on a held-out part.

    Raises ``CorpusError`` if a part is missing or has labels without a class.
    """
    parts = {name: Path(files.labelled) / f"{name}.jsonl" for name in ("train", "test")}
    for path in parts.values():
        if not path.is_file():
            raise CorpusError(
                f"labelled file {str(path)!r} does not exist; 'palimpsest generate-labelled' writes such a folder"
            )
    report = Report(seed=settings.seed, warnings=_checked(parts.values()))
    lines = read_labelled(parts["train"])
    started = time.perf_counter()
    if settings.kind == "crf":
        from tasks.tagger_training.crf_training import train_crf

        report.measure(**train_crf(lines, class_of, settings, files.output))
    elif settings.kind == "word_classifier":
        from tasks.torch_setup import set_up_torch

        set_up_torch(resources.threads)
        from tasks.tagger_training.word_classifier_training import train_word_classifier

        report.measure(**train_word_classifier(lines, class_of, settings, files.output))
    else:
        from tasks.corpora.text_lines import read_corpus
        from tasks.tagger_training.spacy_training import train_spacy

        rehearsal = files.rehearsal_text if settings.base else None
        generic = [line for line in read_corpus(rehearsal) if line.strip()] if rehearsal else []
        if settings.base and settings.rehearsal_share and not generic:
            report.warn("the base rehearses nothing, since no --rehearsal-text is given; it may forget its types")
        report.measure(**train_spacy(lines, class_of, generic, settings, files.output))
    write_audit_record(files.output, report.measured["lines"])
    report.measure(training_seconds=round(time.perf_counter() - started, 3))
    trained = {"kind": settings.kind, "model": files.output}
    tagger = EntityTagger.model_validate({"kind": "entity_tagger", "tagger": trained}).tagger
    report.measure(**held_out_scores(tagger, parts["test"], class_of, resources.threads))
    _say(files.output, report.measured)
    return report


def _inputs(settings: TaggerTrainingSettings, files: TrainTaggerFiles) -> list[str]:
    rehearses = settings.kind == "spacy" and settings.base
    return [files.labelled, *([files.rehearsal_text] if rehearses and files.rehearsal_text else [])]


def class_of(label: str) -> str | None:
    """The class of a label in training: of generated text, of the usual gold sets, or a class itself."""
    from tasks.labelled_text.settings import LABEL_CLASSES
    from tasks.masking_evaluation.label_classes import label_mapping

    return LABEL_CLASSES.get(label) or label_mapping(None, "labels").class_of(label)


def _checked(paths: Iterable[Path]) -> list[str]:
    """Warnings about the spans; ``CorpusError`` names all labels without a class."""
    labels: set[str] = set()

    def lines() -> Iterator[LabelledLine]:
        for line in chain.from_iterable(map(read_labelled, paths)):
            labels.update(span.label for span in line.spans)
            yield line

    warnings = span_warnings(lines())
    unknown = sorted(label for label in labels if class_of(label) is None)
    if unknown:
        raise CorpusError(
            f"the labelled text has labels that no mapping to classes knows: {', '.join(map(repr, unknown))}; rename "
            "them to those of 'palimpsest generate-labelled', of CoNLL, OntoNotes or presidio, or to classes"
        )
    return warnings


def _say(output: str, measured: dict[str, Any]) -> None:
    rates = {name: measured[f"test_{name}"] for name in ("recall", "precision", "f2")}
    said = ", ".join(
        f"{name.capitalize() if name == 'f2' else name} {'undefined' if rate is None else f'{rate:.3f}'}"
        for name, rate in rates.items()
    )
    print(
        f"tagger in {output}, trained on {measured['lines']:,} lines in {measured['training_seconds']:.0f} s; on the "
        f"held-out part {said} of words",
        file=sys.stderr,
    )


def _of_kind(name: str | None) -> dict[str, object]:
    """Settings without a parameter file: ``kind`` is enough."""
    if name:
        raise ParameterError(f"--name {name!r} is a name in a parameter file; add --params, or give --set kind=crf")
    return {}


COMMAND = StageCommand(
    name="train_tagger",
    stage=train_tagger,
    settings=TaggerTrainingSettings,
    files=TrainTaggerFiles,
    section="taggers.{name}",
    named_settings=_of_kind,
    inputs_of=_inputs,
)
