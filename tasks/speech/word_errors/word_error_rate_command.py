"""Measure how many words a recogniser gets wrong: the word error rate, with its confidence interval.

References and hypotheses are found by utterance id. References stand in a manifest or in n-best lists, hypotheses in
JSON lines {"utterance_id", "text"} or in n-best lists, where the highest score counts; both are normalised as the
language model's text is. Given the sidecars of the references, the words that each technique masks are told apart.
The files with texts are private. docs/word_error_rate.md says what is counted.

examples:
  palimpsest word-error-rate --references test/manifest.jsonl --hypotheses found.jsonl
  palimpsest word-error-rate --references lists.jsonl.gz --hypotheses lists.jsonl.gz --errors errors.txt --report -
  palimpsest reference-text --references test/manifest.jsonl --output test.txt
  palimpsest mask --technique entity_tagger --input test.txt --output masked.txt --sidecar sidecars/entity_tagger.jsonl
  palimpsest word-error-rate --references test/manifest.jsonl --hypotheses found.jsonl --sidecar sidecars
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from tasks.command import StageCommand, StageFiles
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.settings import WordErrorSettings

if TYPE_CHECKING:
    from tasks.speech.word_errors.word_errors import MaskedPlaces, UtteranceErrors

SUMMARY = "measure how many words a recogniser gets wrong"


class ErrorFiles(StageFiles):
    """What stands beside a word error rate, whatever recognised the words."""

    sidecar: Annotated[str | None, READ] = None
    """sidecar of the references, or folder with one for each technique, TECHNIQUE.jsonl or TECHNIQUE/sidecar.jsonl:
    what it masks is measured apart"""
    errors: Annotated[str | None, WRITE] = None
    """file to write the errors to, aligned, to read by eye: private"""
    counts: Annotated[str | None, WRITE] = None
    """file to write the errors of each utterance to: ids and numbers, to compare systems"""

    def masked_places(self, references: Mapping[str, str], name: str) -> "MaskedPlaces":
        """Which words of the references each technique masks; ``name`` is what messages call the references."""
        from tasks.language_model.evaluation.reference_text import sidecars_in
        from tasks.speech.word_errors.references import masked_places

        return masked_places(references, sidecars_in(self.sidecar) if self.sidecar else {}, name)

    def count(
        self, references: Mapping[str, str], hypotheses: Mapping[str, str], masked: "MaskedPlaces"
    ) -> "UtteranceErrors":
        """The errors of each utterance, written where files are named for them."""
        from tasks.speech.word_errors.error_counts_file import write_errors, write_listing
        from tasks.speech.word_errors.word_errors import count_errors

        errors = count_errors(references, hypotheses, masked)
        if self.errors:
            write_listing(self.errors, errors, references, hypotheses, masked)
        if self.counts:
            write_errors(self.counts, errors)
        return errors


class WordErrorFiles(ErrorFiles):
    """What the measurement reads and writes."""

    references: Annotated[str, READ]
    """manifest or n-best lists: what was said"""
    hypotheses: Annotated[str, READ]
    """JSON lines with text, or n-best lists: what was recognised"""


def word_error_rate(
    settings: WordErrorSettings, files: WordErrorFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Count the errors and say what came out."""
    from tasks.speech.word_errors.error_counts_file import error_lines, error_warnings, measure_errors
    from tasks.speech.word_errors.references import read_hypotheses, read_references

    references, hypotheses = read_references(files.references), read_hypotheses(files.hypotheses)
    masked = files.masked_places(references, files.references)
    measured = measure_errors(files.count(references, hypotheses, masked), settings)
    return Report(measured, error_warnings(measured), settings.seed, "\n".join(error_lines(measured)))


COMMAND = StageCommand(
    name="word-error-rate",
    stage=word_error_rate,
    settings=WordErrorSettings,
    files=WordErrorFiles,
    section="speech.word_errors",
    labels=("dataset", "technique", "filler", "method", "seed"),
    seed=None,
)
