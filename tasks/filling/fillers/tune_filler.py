"""Fine-tune a filler on masked text of your domain, without reading any masked word.

Two kinds of training text can be made from a masked corpus (paper 3.2, FT):

  --set text=unmasked   the sentences without any marker.
  --set text=filled     the whole corpus, filled by the filler before tuning (setting method).

A masked language model learns to guess words of that text, with body and head. A causal one is
tuned with LoRA on prompts: an instruction, a sentence with a few words replaced by [MASK], and the
sentence itself. The result is a folder like that of 'palimpsest train-filler'. It can be the base
of another round.

A share of the sentences (held_out_share) is never trained on, the same ones in every round. The
report says how well the filler guesses words of these sentences before and after. It guesses only
words that were never masked. So these figures do not measure how good the substitutes are. Only a
language model that was trained on the filled text shows that.

Examples:
  palimpsest tune-filler --base fillers/minilm --input masked.txt --output fillers/minilm_tuned
  palimpsest tune-filler --base fillers/minilm_tuned --input masked.txt --output fillers/minilm_tuned_round_2 \\
      --set text=filled --set method.kind=top_k --allowed-words allowed_words.txt --word-counts word_counts.tsv
"""

import argparse
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from tasks.command import Invocation, StageCommand
from tasks.errors import ParameterError
from tasks.filling.fill import DEFAULT_WORK_FOLDER, fill
from tasks.filling.fill_files import FillFiles, GenericFiles
from tasks.filling.fillers.filler_folder import check_filler_folder, is_causal, model_folders
from tasks.filling.fillers.settings import CausalLanguageModelTuning, MaskedLanguageModelTuning, TuningSettings
from tasks.filling.methods import AnyMethod
from tasks.options import READ, READ_MODEL, WRITE_FOLDER
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "fine-tune a filler on masked in-domain text"
AnyTuning = MaskedLanguageModelTuning | CausalLanguageModelTuning
_NEEDS_SIDECAR = "restoration"
"""Part of the name of every figure of a fill that needs the sidecar."""


class TuneFiles(GenericFiles):
    """Inputs and outputs of the tuning of a filler."""

    base: Annotated[str, READ_MODEL]
    """filler to start from: hub name, folder, or package:NAME/FOLDER"""
    input: Annotated[str, READ]
    """masked text, one sentence a line"""
    output: Annotated[str, WRITE_FOLDER]
    """folder for the tuned filler"""
    allowed_words: Annotated[str | None, READ] = None
    """as for 'palimpsest fill'; read with text=filled only, as are word counts and generic text"""
    word_counts: Annotated[str | None, READ] = None
    """as for 'palimpsest fill'"""

    def of_fill(self, method: AnyMethod, output: str) -> FillFiles:
        """The files of the fill by the base."""
        same = ("input", "allowed_words", "word_counts", "generic")
        return FillFiles(
            output=output,
            filler=self.base if method.uses_filler else None,
            **{name: getattr(self, name) for name in same},
        ).read_by(method)


def tune_filler(settings: AnyTuning, files: TuneFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Write the tuned filler, and report its accuracy at held-out words before and after.

    Raises ``ParameterError`` if base and settings differ in kind, and ``CorpusError`` if too little text is left to
    train on. Raises ``ModelError`` if the base cannot be used.
    """
    from tasks.corpora.text_lines import read_corpus
    from tasks.filling.fillers.tuning import tuning_text
    from tasks.torch_setup import set_up_torch

    check_filler_folder(files.output)
    _check_base(files.base, settings)
    set_up_torch(resources.threads)
    text = tuning_text(read_corpus(files.input), settings, partial(_filled_by_base, settings, files, resources))
    report = Report(seed=settings.seed).measure(**text.measured)
    started = time.perf_counter()
    if isinstance(settings, CausalLanguageModelTuning):
        from tasks.filling.fillers.preparation import tune_causal_filler

        report.measure(**tune_causal_filler(files.base, text, settings, files.output))
    else:
        from tasks.filling.fillers.preparation import tune_masked_filler

        report.measure(**tune_masked_filler(files.base, text, settings, files.output))
    report.measure(training_seconds=round(time.perf_counter() - started, 3))
    measured = report.measured
    if measured["held_out_loss"] is None:
        report.warn("no held-out sentence without markers has a word to guess: the accuracy at such words is unknown")
    if measured.get("fills") and measured.get("class_slots") == 0:
        report.warn("no marker has a class: classes=match changed nothing in the filling; mask by class")
    filled = f", {measured['fills']:,} places filled first" if "fills" in measured else ""
    print(f"tuned filler in {files.output} after {measured['steps']} steps{filled}", file=sys.stderr)
    return report


def _filled_by_base(
    settings: AnyTuning, files: TuneFiles, resources: ResourceSettings
) -> tuple[list[str], dict[str, object]]:
    """The whole corpus filled as by ``palimpsest fill``, without a sidecar, and the figures of its report."""
    from tasks.corpora.text_lines import read_lines
    from tasks.files.atomic_file import private_work_folder

    assert settings.method is not None, "settings hold that there is one"
    with private_work_folder(resources.work_folder or DEFAULT_WORK_FOLDER) as work:
        filled = str(work / "filled.txt")
        report = fill(settings.method, files.of_fill(settings.method, filled), Cell(seed=settings.seed), resources)
        lines = list(read_lines(filled))
    return lines, {name: value for name, value in report.measured.items() if _NEEDS_SIDECAR not in name}


def _check_base(base: str, settings: AnyTuning) -> None:
    """Check before minutes of filling that the base exists, is complete, and has the kind of the settings."""
    from tasks.filling.fillers.filler_folder import located

    kind = "causal_lm" if is_causal(base) else "masked_lm"
    if kind == "masked_lm":
        located(base)
    if kind != settings.kind:
        raise ParameterError(
            f"kind is {settings.kind!r}, but base {base!r} has kind {kind!r}; set kind: {kind}, or name another base"
        )


def _inputs(settings: AnyTuning, files: TuneFiles) -> list[str]:
    """Masked text, base, and the inputs of the fill, if there is one."""
    folders = model_folders(files.base)
    if settings.method is None:
        return [files.input, *folders]
    read = files.of_fill(settings.method, files.output).read()
    return [*(path for _, path in read if path != files.base), *folders]


@dataclass(frozen=True)
class TuneCommand(StageCommand[AnyTuning, TuneFiles]):
    """The command, with the base from the option ``--base``."""

    def parse(self, arguments: argparse.Namespace) -> Invocation[AnyTuning, TuneFiles]:
        """The parsed options."""
        found = super().parse(arguments)
        return replace(found, settings=found.settings.model_copy(update={"base": found.files.base}))


COMMAND = TuneCommand(
    name="tune_filler",
    stage=tune_filler,
    settings=TuningSettings,
    files=TuneFiles,
    section="tuned_fillers.{name}",
    labels=("dataset", "technique"),
    seed=None,
    cell_of=lambda files, name, cell: Cell(cell.dataset, cell.technique, filler=name or files.output),
    named_settings=lambda name: {},
    defaults=lambda files: {"kind": "causal_lm" if is_causal(files.base) else "masked_lm"},
    inputs_of=_inputs,
)
