"""Measure the word error rate of a recogniser, with its confidence interval.

References are in a manifest or in n-best lists. Hypotheses are in JSON lines {"utterance_id",
"text"}, or in n-best lists, where the highest score counts. Both may also be a text of Kaldi
("UTTERANCE WORDS"), .trn, a manifest of NeMo or a folder of ESPnet. They are paired by utterance id, and
normalised as the text of the language model is. docs/word_error_rate.md defines the numbers.

--sidecar measures the words that each technique masks. --set 'languages=[en, es]' measures the
words of each language, at a switch of language, and after a switch. The languages are those of the
manifest ("languages": a letter or code for each word), or are inferred from all references.

examples:
  palimpsest word-error-rate --references test/manifest.jsonl --hypotheses found.jsonl
  palimpsest reference-text --references test/manifest.jsonl --output test.txt
  palimpsest mask --technique entity_tagger --input test.txt --output masked.txt --sidecar sidecars/entity_tagger.jsonl
  palimpsest word-error-rate --references test/manifest.jsonl --hypotheses found.jsonl --sidecar sidecars
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.errors import ParameterError
from tasks.files.atomic_file import is_pipe_or_device
from tasks.language_model.evaluation.reference_text import sidecars_in
from tasks.language_model.normalisation import normalise
from tasks.options import READ, READ_MODEL, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.settings import WordErrorSettings
from tasks.speech.word_errors.error_report import error_lines, error_warnings, measure_errors, write_listing
from tasks.speech.word_errors.references import (
    language_groups,
    masked_groups,
    read_hypotheses,
    read_references,
)
from tasks.speech.word_errors.word_errors import ErrorTable, WordGroups, count_errors, write_errors

SUMMARY = "measure the word error rate of a recogniser"


class ErrorFiles(StageFiles):
    """Words that are measured separately, and errors by utterance, for any recogniser."""

    sidecar: Annotated[str | None, READ] = None
    """sidecar of the references, or folder with TECHNIQUE.jsonl or TECHNIQUE/sidecar.jsonl for each technique; masked
    words are measured separately"""
    counts: Annotated[str | None, WRITE] = None
    """file for the errors of each utterance, to compare systems: ids and numbers only"""

    def word_groups(self, references: Mapping[str, str], path: str, settings: WordErrorSettings) -> WordGroups:
        """Groups of the references' words to measure; ``path``: the manifest or lists with the references."""
        masked = masked_groups(references, sidecars_in(self.sidecar) if self.sidecar else {}, path)
        return {**masked, **(language_groups(references, settings.languages, path) if settings.languages else {})}

    def count(
        self,
        references: Mapping[str, str],
        hypotheses: Mapping[str, str],
        groups: WordGroups,
        output: str | None = None,
    ) -> ErrorTable:
        """The errors of each utterance, written to the file ``counts``; the aligned words of those with errors are
        written next to ``output``, with the ending ``.errors.txt``."""
        errors = count_errors(references, hypotheses, groups)
        if output and not is_pipe_or_device(output):
            write_listing(Path(output).with_suffix(".errors.txt"), errors, references, hypotheses)
        if self.counts:
            write_errors(self.counts, errors)
        return errors


class FusedFiles(ErrorFiles):
    """A language model for a recogniser, and its training texts."""

    model: Annotated[str | None, READ_MODEL] = None
    """language model: folder of any kind, package:NAME/FOLDER or name on the hub; without it, the recogniser alone"""
    training_text: Annotated[list[str], READ] = Field(default_factory=list)
    """texts that the model was trained on; their overlap with the test references is measured"""

    def check_model(self, *others: str) -> None:
        """``ParameterError`` if a given option (of ``others`` too) has no use without a model."""
        for name in ("training_text", *others):
            if getattr(self, name) and not self.model:
                raise ParameterError(
                    f"--{name.replace('_', '-')} has no use without --model; give a model, or leave it out"
                )

    def overlap(self, references: Mapping[str, str]) -> int | None:
        """Number of test references that are lines of the training texts; ``None`` without training texts."""
        if not self.training_text:
            return None
        lines = (" ".join(normalise(line)) for path in self.training_text for line in read_compressed_lines(path))
        said = Counter(" ".join(normalise(text)) for text in references.values())
        return sum(said[line] for line in set(lines) if line)


class WordErrorFiles(ErrorFiles):
    """Inputs of the measurement, and files for its results."""

    references: Annotated[str, READ]
    """manifest or n-best lists with the references"""
    hypotheses: Annotated[str, READ]
    """JSON lines with text, or n-best lists, with the hypotheses"""


def word_error_rate(
    settings: WordErrorSettings, files: WordErrorFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Count the errors and print the result."""
    references, hypotheses = read_references(files.references), read_hypotheses(files.hypotheses)
    groups = files.word_groups(references, files.references, settings)
    measured = measure_errors(files.count(references, hypotheses, groups), settings)
    return Report(measured, error_warnings(measured), settings.seed, "\n".join(error_lines(measured)))


CELL = ("dataset", "technique", "filler", "method", "seed")
COMMAND = StageCommand(
    "word-error-rate", word_error_rate, WordErrorSettings, WordErrorFiles, "speech.word_errors", labels=CELL, seed=None
)
