"""Choose among a recogniser's hypotheses with a language model: rescoring of n-best lists.

The lists are JSON lines of any recogniser, plain or compressed, or as ESPnet, Kaldi, NeMo and others
write them:

  {"utterance_id", "reference", "hypotheses": [{"text", "score"}]}

The language model is a folder that palimpsest wrote, or a causal model of Hugging Face. That is a
folder, a package or a name on the hub. The language model, each word and each unknown word have a weight. The weights
are tuned on the lists of --dev and applied to the lists of --nbest, once. The report compares the
result with the recogniser's own choice, with a tuned insertion bonus alone, and with the best
hypothesis of every list (oracle). Rates in the report are shares: 0.2 is 20 %.

--weights takes the weights from the report of an earlier 'palimpsest rescore', instead of --dev.
The lists then need no reference. The choice is written to --output, and nothing is measured.

examples:
  palimpsest rescore --nbest test.jsonl.gz --dev dev.jsonl.gz --model models/adapted --report -
  palimpsest rescore --nbest new.jsonl --weights report.json --model models/adapted --output best.jsonl
"""

from typing import Annotated

from pydantic import Field

from tasks.command import StageCommand
from tasks.errors import ParameterError
from tasks.options import READ, READ_MODEL, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings
from tasks.speech.rescoring.settings import RescoreSettings
from tasks.speech.word_errors.word_error_rate_command import ErrorFiles

SUMMARY = "choose among a recogniser's hypotheses with a language model"


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


class RescoreFiles(FusedFiles):
    """The lists, and the file for the choice."""

    nbest: Annotated[str, READ]
    """n-best lists of the test set"""
    dev: Annotated[str | None, READ] = None
    """n-best lists to tune the weights on"""
    weights: Annotated[str | None, READ] = None
    """report of an earlier rescoring with its weights, instead of --dev; the lists then need no references"""
    references: Annotated[str | None, READ] = None
    """manifest of the test set; an utterance without a list counts as deleted"""
    output: Annotated[str | None, WRITE] = None
    """file for the chosen hypotheses (JSON lines), private; their aligned errors go to a second file, with the ending
    .errors.txt"""


def rescore(settings: RescoreSettings, files: RescoreFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Tune the weights, choose hypotheses, count errors and print the result."""
    if bool(files.dev) == bool(files.weights):
        raise ParameterError("give --dev to tune weights on, or --weights FILE that has them, and not both")
    files.check_model()
    for name in ("references", "sidecar", "counts", "training_text") if files.weights else ():
        if getattr(files, name):
            raise ParameterError(f"--{name.replace('_', '-')} has no use with --weights, which measures nothing")
    if files.weights and not (files.model and files.output):
        raise ParameterError("--weights needs --model, which chooses, and --output, where the choice goes")
    from tasks.speech.rescoring.rescore_stage import chosen_by_weights, rescored_lines, rescored_numbers
    from tasks.speech.word_errors.error_counts_file import error_warnings

    if files.weights:
        measured = chosen_by_weights(files, settings.rescoring, resources)
        report = Report(measured)
        report.shown = (
            f"{measured['utterances']:,} utterances, {measured['changed']:,} with another choice than the recogniser's"
        )
        if empty := measured["empty_lists"]:
            report.warn(f"{empty} lists hold no hypothesis; their utterances are left out of the choice")
        return report
    measured = rescored_numbers(files, settings, resources)
    shown = "\n".join(rescored_lines(measured))
    report = Report(measured, error_warnings(measured), settings.word_errors.seed, shown)
    if shared := measured["dev_in_test"]:
        report.warn(f"{shared} utterances of the test set are among those that the weights were tuned on")
    return report


COMMAND = StageCommand(
    name="rescore",
    stage=rescore,
    settings=RescoreSettings,
    files=RescoreFiles,
    section={"rescoring": "speech.rescoring", "word_errors": "speech.word_errors"},
    labels=("dataset", "technique", "filler", "method", "seed"),
    seed=None,
)
