"""Make a language model forget a text that it was trained on, and retain the rest.

The end of this help lists the methods. A method is tried with rising strengths. The result is the
model of the last strength that raises the perplexity of --valid by at most --budget, a share of the
perplexity before. 'palimpsest compare-unlearning' shows which method leaves least on your own
corpus.

A model that was made to forget is as private as before. Training on a few of the lines brings most
of the others back. Only a model that never read the text is free of it: one that was retrained
without it.

examples:
  palimpsest mask --technique allow_list --input leave.txt --output leave_masked.txt --allowed-words kept.txt
  palimpsest fill --method unigram --input leave_masked.txt --allowed-words kept.txt --word-counts word_counts.tsv \\
    --output refilled.txt
  palimpsest unlearn --method negative_preference --set retain=divergence --set refilled_weight=0.3 \\
    --model models/adapted --base models/pretrained --forget leave.txt --refilled refilled.txt --retain stay.txt \\
    --valid valid.txt --output models/forgotten
"""

import math
from typing import Annotated

from pydantic import Field

from tasks.command import StageCommand, StageFiles
from tasks.corpora.text_lines import read_corpus
from tasks.errors import CorpusError
from tasks.language_model.evaluation.reference_text import reference_text_of
from tasks.language_model.model_folder import check_replaceable
from tasks.language_model.opening import save_learner
from tasks.options import READ, READ_MODEL, WRITE_FOLDER
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.unlearning.method import Request, UnlearningMethod
from tasks.unlearning.methods import METHODS_HELP, AnyUnlearning, settings_named

SUMMARY = "make a language model forget a text that it was trained on"


class UnlearnFiles(StageFiles):
    """A model, the text to forget and the text to retain."""

    model: Annotated[str, READ_MODEL]
    """model that must forget: a Transformer of palimpsest or a causal model of Hugging Face"""
    base: Annotated[str, READ_MODEL]
    """model that --model was adapted from"""
    forget: Annotated[str, READ]
    """text to forget, one sentence a line"""
    refilled: Annotated[str | None, READ] = None
    """--forget with other words in the private places, in one copy or several, as 'palimpsest fill' writes it"""
    retain: Annotated[str, READ]
    """text that the model may know, one sentence a line"""
    valid: Annotated[str, READ]
    """text to measure perplexity on, one sentence a line"""
    output: Annotated[str, WRITE_FOLDER]
    """folder for the model; an earlier model there is replaced"""
    budget: Annotated[float, Field(ge=0)] = 0.05
    """share by which the perplexity may rise"""


def unlearn(settings: UnlearningMethod, files: UnlearnFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Make a model forget a text, and write it.

    Raises ``ModelError`` where the models have different vocabularies or cannot be trained. Raises ``CorpusError``
    where a text has no word, or every line to forget is also one to retain.
    """
    from tasks.torch_setup import set_up_torch
    from tasks.unlearning.comparison import forget
    from tasks.unlearning.steps import open_pair

    check_replaceable(files.output)
    set_up_torch(resources.threads)
    start, base = open_pair(files.model, files.base)
    lines, retained, valid = (read_corpus(path) for path in (files.forget, files.retain, files.valid))
    both = set(lines) & set(retained)
    if both == set(lines):
        raise CorpusError(
            f"every line of --forget {files.forget!r} is one of --retain {files.retain!r} too; remove it there"
        )
    for text, path in ((retained, files.retain), (valid, files.valid), (lines, files.forget)):
        reference_text_of(text, path)
    marked = start.encode(lines)
    request = Request(
        start=start,
        base=base,
        forget=marked,
        retain=start.encode(retained),
        refilled=start.encode(read_corpus(files.refilled)) if files.refilled else None,
        seed=cell.seed or 0,
    )
    found = forget(settings, request, start.encode(valid), files.budget)
    save_learner(found.model, files.output)
    models = {"base": base, "before": start, "after": found.model}
    known = {name: math.exp(model.mean_loss(marked)) for name, model in models.items()}
    report = Report(seed=cell.seed).measure(
        strength=found.strength,
        seconds=round(found.seconds, 2),
        sweep=found.sweep,
        sentences=marked.sentences,
        forget_perplexity=known,
    )
    if known["before"] >= known["base"]:
        report.warn("the model finds the text to forget no more probable than its base does: it has hardly read it")
    if both:
        report.warn(f"{len(both):,} lines of --forget are in --retain too, and are trained on")
    if not found.is_within_budget:
        report.warn(
            f"even the first strength, {found.strength:g}, raises the perplexity by more than {files.budget:.0%}"
        )
    tried = next(each for each in found.sweep if each["strength"] == found.strength)
    report.shown = (
        f"unlearn: {marked.sentences:,} sentences, strength {found.strength:g}, perplexity on valid text "
        f"{tried['valid_ratio'] - 1:+.1%}, on the text to forget {known['before']:.1f} -> {known['after']:.1f} (base "
        f"{known['base']:.1f}); model in {files.output}"
    )
    return report


COMMAND = StageCommand(
    name="unlearn",
    stage=unlearn,
    settings=AnyUnlearning,
    files=UnlearnFiles,
    section="unlearning.methods.{method}",
    cell=("method", "seed"),
    labels=("dataset",),
    named_settings=settings_named,
    epilog=METHODS_HELP,
)
