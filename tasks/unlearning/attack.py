"""Attack a model that was made to forget a text, to measure whether the text comes back.

There are two attacks: a little training, and rounding the weights to four bits. For the training,
an attacker has a few of the lines (--known). By default, these are some lines of --forget, drawn at
random. If the other lines are only hidden, the model then finds them more probable than before.

The output has the perplexity of the lines that the attacker does not know. Compare it with the
perplexity of --base, a model that never read them. If it is lower, the model still knows the lines.

example:
  palimpsest attack --model models/forgotten --base models/pretrained --forget leave.txt
"""

import math
from typing import Annotated

import numpy as np

from tasks.command import StageCommand, StageFiles
from tasks.corpora.text_lines import read_corpus
from tasks.errors import CorpusError
from tasks.language_model.evaluation.reference_text import reference_text_of
from tasks.options import READ, READ_MODEL
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.unlearning.settings import UnlearningSettings

SUMMARY = "attack a model that was made to forget, to measure whether the text comes back"


class AttackedFiles(StageFiles):
    """A model, its base, and the text that it was made to forget."""

    model: Annotated[str, READ_MODEL]
    """model that was made to forget"""
    base: Annotated[str, READ_MODEL]
    """model that never read the text: the one that --model was adapted from, or one that was adapted without it"""
    forget: Annotated[str, READ]
    """text that --model was made to forget, one sentence a line"""
    known: Annotated[str | None, READ] = None
    """lines that the attacker has: some of --forget, or others of the same form"""


def attack(settings: UnlearningSettings, files: AttackedFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Report how much of the text comes back.

    Raises ``ModelError`` where the models have different vocabularies, ``CorpusError`` where no line is left to attack.
    """
    from tasks.torch_setup import set_up_torch
    from tasks.unlearning.attacks import four_bits, relearned
    from tasks.unlearning.steps import open_pair

    set_up_torch(resources.threads)
    seed = 1 if cell.seed is None else cell.seed
    lines = list(dict.fromkeys(read_corpus(files.forget)))
    if files.known:
        known = read_corpus(files.known)
    else:
        count = max(1, round(settings.relearned_share * len(lines)))
        known = [lines[number] for number in sorted(np.random.default_rng(seed).permutation(len(lines))[:count])]
    unknown = [line for line in lines if line not in set(known)]
    if not unknown:
        raise CorpusError(f"the attacker knows every line of --forget {files.forget!r}; give fewer as --known")
    reference_text_of(unknown, files.forget)
    reference_text_of(known, files.known or files.forget)
    model, base = open_pair(files.model, files.base)
    attackers = model.encode(known)
    attacked = {
        "base": base,
        "model": model,
        "relearned": relearned(model, attackers, settings, seed),
        "four_bits": four_bits(model),
        # Effect of the same lines on a model that never read the others.
        "base_relearned": relearned(base, attackers, settings, seed),
    }
    text = model.encode(unknown)
    perplexity = {name: math.exp(each.mean_loss(text)) for name, each in attacked.items()}
    report = Report(seed=cell.seed).measure(unknown=len(unknown), known=len(known), perplexity=perplexity)
    if perplexity["relearned"] < 0.9 * min(perplexity["base_relearned"], perplexity["model"]):
        report.warn("the text was hidden and not forgotten: training on the attacker's lines brings the rest back")
    report.shown = (
        f"attack: {len(unknown):,} lines at perplexity {perplexity['model']:.1f}, {perplexity['relearned']:.1f} after "
        f"{settings.relearning_steps} steps on {len(known):,} known lines, {perplexity['four_bits']:.1f} in four bits; "
        f"without the text {perplexity['base']:.1f}, {perplexity['base_relearned']:.1f} after the same steps"
    )
    return report


COMMAND = StageCommand(
    name="attack",
    stage=attack,
    settings=UnlearningSettings,
    files=AttackedFiles,
    section="unlearning",
    cell=("seed",),
    labels=("dataset",),
)
