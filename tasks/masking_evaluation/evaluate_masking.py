"""Measure how well a technique masks, against labelled text (gold).

A gold file has JSON lines:

  {"text": "...", "spans": [{"start": 0, "end": 4, "label": "PERSON"}]}

Every label is private, unless the labels of the gold set say otherwise. A line is a document,
unless the lines have a key "document".

The report has recall, precision and F2 over words, spans, entities and documents. F2 counts a
missed private word as worse than a word masked in excess. A span, entity or document is found only
if all its words are masked. The class of the marker does not matter.

The report also has:

- recall of each label;
- scores that require the right class;
- the share of words masked where nothing is private;
- speed, memory and size of the model.

"token" leaves out nothing. "token_in_scope" leaves out masked words of classes that the gold does
not annotate. For example, a gold set of names does not say that a masked date is wrong. An
undefined score is null.

The output has numbers only. --errors writes the words themselves, for developers, to a private
file.

examples:
  palimpsest evaluate-masking --technique allow_list --gold gold.jsonl
  palimpsest evaluate-masking --technique spacy --gold gold.jsonl --clean harmless.txt --report -
  palimpsest evaluate-masking --technique presidio --gold mail.jsonl \\
    --set 'evaluation.gold_sets={mail: {source: mail.jsonl, labels: {employee: PERSON, role: null}}}' --gold-set mail
"""

import time
from typing import Annotated, Any

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.errors import ParameterError
from tasks.masking.techniques import TECHNIQUES_HELP, AnyTechnique, settings_named
from tasks.masking_evaluation.label_classes import MaskingEvaluationSettings
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings

SUMMARY = "measure how well a technique masks, against labelled text"


class JudgedTechnique(Settings):
    """A technique, and the settings of its evaluation."""

    technique: AnyTechnique
    evaluation: MaskingEvaluationSettings = MaskingEvaluationSettings()


class EvaluateMaskingFiles(StageFiles):
    """Files that the evaluation of a technique reads and writes."""

    gold: Annotated[list[str], READ] = Field(default_factory=list)
    """labelled files; several are pooled"""
    gold_set: str | None = None
    """key of masking_evaluation.gold_sets: gives the labels, and the file if there is no --gold"""
    clean: Annotated[str | None, READ] = None
    """text without anything private, to measure the share of it that is masked"""
    word_counts: Annotated[str | None, READ] = None
    """word counts of generic text, for vocabulary_threshold only"""
    errors: Annotated[str | None, WRITE] = None
    """file for missed and over-masked words in context; as private as the gold itself"""


def evaluate_masking(
    settings: JudgedTechnique, files: EvaluateMaskingFiles, cell: Cell, resources: ResourceSettings
) -> Report:
    """Mask the gold, compare, and report the scores.

    Raises ``ParameterError`` without a gold file, ``CorpusError`` that names all bad lines of a labelled file.
    """
    from tasks.labelled_text.labelled_lines import read_labelled, span_warnings
    from tasks.masking_evaluation.evaluation import (
        GoldFile,
        TimedTechnique,
        judge_files,
        model_size,
        over_masking_of_clean_text,
        scores,
    )
    from tasks.masking_evaluation.evaluation_table import evaluation_table, write_errors
    from tasks.masking_evaluation.label_classes import label_mapping
    from tasks.records.stage_report import peak_memory_bytes

    paths, own_labels = _gold(files, settings.evaluation)
    mapping = label_mapping(own_labels, f"masking_evaluation.gold_sets.{files.gold_set}.labels")
    gold = [GoldFile(path, list(read_labelled(path))) for path in paths]
    clock = time.perf_counter()
    technique = settings.technique.build(files.word_counts, resources.threads)
    load_seconds = time.perf_counter() - clock
    timed = TimedTechnique(technique)
    judged = judge_files(timed, gold, mapping)
    clean = over_masking_of_clean_text(timed, files.clean) if files.clean else None
    if files.errors:
        write_errors(files.errors, gold, judged)
    words = [files.word_counts] if files.word_counts and settings.technique.reads_word_counts else []
    measured: dict[str, Any] = {
        "technique": cell.technique,
        "gold_set": files.gold_set or "+".join(file.name for file in gold),
        **scores(gold, judged, mapping, settings.evaluation),
        "clean_text": clean,
        "words_per_second": round(timed.words / timed.seconds) if timed.seconds else None,
        "load_seconds": round(load_seconds, 3),
        "peak_memory_bytes": peak_memory_bytes(),
        "model_bytes": model_size([*settings.technique.files, *words], settings.technique),
        "threads": resources.threads,
    }
    report = Report(seed=settings.evaluation.seed).measure(**measured)
    report.warnings += [*_warnings(measured), *span_warnings(line for file in gold for line in file.lines)]
    report.shown = evaluation_table(measured)
    return report


def _gold(files: EvaluateMaskingFiles, settings: MaskingEvaluationSettings) -> tuple[list[str], dict[str, str | None]]:
    """The gold files, and the user's classes of their labels."""
    from tasks.spelling import nearest

    if not files.gold and not files.gold_set:
        raise ParameterError("no labelled file is given; use --gold FILE, or --params with --gold-set NAME")
    if len(set(files.gold)) != len(files.gold):
        raise ParameterError(f"--gold: a file occurs twice in {files.gold!r}; its words would count twice")
    if not files.gold_set:
        return files.gold, {}
    gold_set = settings.gold_sets.get(files.gold_set)
    if gold_set is None:
        names = sorted(settings.gold_sets)
        raise ParameterError(
            f"--gold-set {files.gold_set!r} is no key of 'masking_evaluation.gold_sets'"
            f"{nearest(files.gold_set, names)}; there are: {', '.join(names) or 'none'}"
        )
    return files.gold or [gold_set.source], dict(gold_set.labels or {})


def _warnings(measured: dict[str, Any]) -> list[str]:
    """Warnings for the reader of the scores."""
    warnings = []
    if measured["unmapped_labels"]:
        counts = ", ".join(f"{label!r} ({count:,} spans)" for label, count in measured["unmapped_labels"].items())
        warnings.append(
            f"labels without a class: {counts}; they count as private, but not in 'typed' and the scope; 'labels' of "
            "the gold set gives them one"
        )
    if measured["labels_not_in_gold"]:
        names = ", ".join(map(repr, measured["labels_not_in_gold"]))
        warnings.append(f"no span of the gold has the label {names}, for which a class is given")
    if measured["ignored_spans"]:
        warnings.append(f"{sum(measured['ignored_spans'].values()):,} gold spans are ignored as not private")
    return warnings


COMMAND = StageCommand(
    name="evaluate_masking",
    stage=evaluate_masking,
    settings=JudgedTechnique,
    files=EvaluateMaskingFiles,
    section={"technique": "masking.{technique}", "evaluation": "masking_evaluation"},
    cell=("technique",),
    named_settings=settings_named,
    files_of_settings=lambda settings: settings.technique.files,
    epilog=TECHNIQUES_HELP,
)
