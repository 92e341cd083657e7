"""Measure how well a language model predicts a text: its perplexity, with a confidence interval.

The text is plain, one sentence a line. Perplexity is over words and sentence ends. A word outside
the vocabulary counts as one special token, which distorts the figure. So the output also has the
perplexity over known words.

Three options divide the words and measure each group:

- --sidecar: words that each technique masks, and the rest.
- --word-counts: frequent words and rare words.
- --set languages=[en,es]: words of each language, and words at switch points.

The output has a signature, which names the protocol (docs/perplexity.md). Numbers with different
signatures do not compare.

examples:
  palimpsest perplexity --model models/adapted --input test.txt --report -
  palimpsest mask --technique allow_list --input test.txt --output masked.txt --sidecar sidecars/allow_list.jsonl
  palimpsest perplexity --model models/adapted --input test.txt --sidecar sidecars --word-counts counts.tsv
"""

from collections.abc import Iterator
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.language_model.settings import MANY_UNKNOWN, EvaluationSettings
from tasks.options import READ, READ_MODEL, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "measure how well a language model predicts a text"


class PerplexityFiles(StageFiles):
    """Files that the measurement reads and writes."""

    model: Annotated[str, READ_MODEL]
    """model folder of 'palimpsest pretrain' or 'palimpsest adapt', or a causal language model by its hub name or as
    package:NAME/FOLDER"""
    input: Annotated[str, READ]
    """text to predict, one sentence a line"""
    sidecar: Annotated[str | None, READ] = None
    """sidecar of the text, or folder with TECHNIQUE.jsonl for each technique; masked words are measured separately"""
    word_counts: Annotated[str | None, READ] = None
    """word counts of generic text; frequent and rare words are measured separately"""
    scores: Annotated[str | None, WRITE] = None
    """file for the log-probability of each sentence: numbers only, no text"""


def perplexity(settings: EvaluationSettings, files: PerplexityFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Score the text and report its perplexity.

    Raises ``ModelError`` where the model cannot be read, and ``CorpusError`` where the text or a sidecar cannot.
    """
    from tasks.corpora.text_lines import refuse_empty

    refuse_empty(files.input)
    from tasks.language_model.divided_model import DividedModel
    from tasks.language_model.evaluation.perplexity import measure_perplexity, word_ranks
    from tasks.language_model.evaluation.reference_text import read_reference_text, sidecars_in
    from tasks.language_model.evaluation.sentence_scores import write_scores
    from tasks.torch_setup import set_up_torch

    set_up_torch(resources.threads)
    sidecars = sidecars_in(files.sidecar) if files.sidecar else {}
    ranks = word_ranks(files.word_counts) if files.word_counts else None
    report = Report(seed=settings.seed)
    text = read_reference_text(files.input, sidecars)
    scores, protocol = DividedModel(files.model, resources).score_text(files.input, settings.markers)
    measured, sentences = measure_perplexity(scores, text, settings, protocol.signature, ranks)
    if files.scores:
        write_scores(files.scores, sentences, protocol.signature)
    report.shown = "\n".join([_first_line(measured), *_further_lines(measured)])
    if measured["oov_rate"] > MANY_UNKNOWN:
        report.warn(
            f"{measured['oov_rate']:.1%} of the words are unknown to the model, and count as one word that is easy to "
            "predict. So the perplexity is too low for a comparison; use the perplexity over known words"
        )
    return report.measure(**measured, threads=resources.threads)


def _shown(measured: dict, name: str = "perplexity") -> str:
    value, interval = measured[name], measured[f"{name}_ci"]
    if value is None:
        return "none"
    return f"{value:,.2f}" + (f" [{interval[0]:,.2f}, {interval[1]:,.2f}]" if interval else "")


def _first_line(measured: dict) -> str:
    return (
        f"perplexity {_shown(measured)}, over known words {_shown(measured, 'perplexity_known')}; "
        f"{measured['words']:,} words, {measured['oov_rate']:.2%} unknown, {measured['sentences']:,} sentences; "
        f"{measured['bits_per_character']:.3f} bits per character; {measured['signature']}"
    )


def _further_lines(measured: dict) -> Iterator[str]:
    """Lines on masked words, on words by frequency and on words by language, where they were measured."""
    for technique, masked in measured["masked_words"].items():
        yield (
            f"  {technique}: {masked['words']:,} masked words ({masked['share']:.1%}), those known "
            f"{_shown(masked, 'perplexity_known')}; the rest {_shown(masked, 'perplexity_rest_known')}"
        )
    for name, group in (measured["by_frequency"] | measured["by_language"]).items():
        yield f"  {name}: {group['targets']:,} targets, {_shown(group)}"


COMMAND = StageCommand(
    name="perplexity",
    stage=perplexity,
    settings=EvaluationSettings,
    files=PerplexityFiles,
    section="evaluation",
    labels=("dataset", "technique", "filler", "method", "seed"),
    seed=None,
)
