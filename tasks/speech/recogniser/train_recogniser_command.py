"""Train a recogniser: an Emformer transducer, from scratch.

It learns from recordings (--manifest) or from the sentences of a text, which are spoken anew in every epoch by a
synthesiser (--text); what is trained so is labelled synthetic. The folder that it writes holds weights, units and
feature statistics.

  palimpsest train-recogniser --text generic.txt --valid valid.txt --output models/recogniser --epochs 0.5
  palimpsest train-recogniser --manifest train.jsonl --valid dev.jsonl --output models/recogniser --batch-seconds 60

Settings come from the section 'speech.recogniser' of the parameter file, or from --settings FILE, a YAML file of that
section alone.
"""

import argparse
from typing import Any

from tasks.language_model.setting_options import add_setting_options, overridden
from tasks.speech.recogniser.settings import RecogniserTraining, TrainedRecogniser
from tasks.training.options import TRAINING_PATHS

SUMMARY = "train the recogniser, or fetch a pretrained one"
READS = ("manifest", "settings", *TRAINING_PATHS)
WRITES = ("output",)
REPLACES = True
SECTION = "speech.recogniser"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from tasks.training.options import add_training_options

    add_training_options(parser)
    for action in parser._actions:
        if action.dest == "text":
            action.required = False
            action.help = "text whose sentences are spoken by a synthesiser, one sentence a line"
        elif action.dest == "valid":
            action.help = "held-out manifest or text, as the training speech is one, to measure progress on"
    parser.add_argument("--manifest", help="recordings to train on: a file of JSON lines")
    parser.add_argument("--settings", help=f"YAML file with what the section {SECTION!r} holds, in its place")
    parser.add_argument("--private", action="store_true", help="write the recogniser for its owner alone")
    add_setting_options(parser, RecogniserTraining, "training", leave_out=["keep_features"])


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SECTION]


def run(arguments: argparse.Namespace) -> None:
    """Train, write the folder and the report."""
    from tasks.errors import ParameterError

    settings = _settings(arguments)
    if settings.kind == "emformer_bundle":
        from tasks.speech.recogniser.bundle_stage import run_bundle_stage

        return run_bundle_stage(arguments, settings)
    if (arguments.manifest is None) == (arguments.text is None):
        raise ParameterError("give --manifest with recordings, or --text with sentences to be spoken, and not both")
    from tasks.speech.recogniser.training_stage import run_training_stage

    run_training_stage(arguments, settings, arguments.private)


def _settings(arguments: argparse.Namespace) -> Any:
    from tasks.errors import ParameterError
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import check_settings
    from tasks.speech.recogniser.settings import RecogniserSettings

    if arguments.settings:
        import yaml

        try:
            with open(arguments.settings, encoding="utf-8") as stream:
                values = yaml.safe_load(stream)
        except yaml.YAMLError as error:
            raise ParameterError(f"{arguments.settings} is not YAML: {' '.join(str(error).split())}") from None
        if not isinstance(values, dict):
            raise ParameterError(f"{arguments.settings} must hold settings such as 'kind: trained'")
        given = check_settings(RecogniserSettings, {"kind": "trained", **values}, arguments.settings)
    elif arguments.params:
        given = read_sections(arguments.params, [SECTION])[SECTION]
    else:
        given = TrainedRecogniser()
    if given.kind != "trained":
        return given
    training = check_settings(
        RecogniserTraining, overridden(arguments, RecogniserTraining, given.training), "training options"
    )
    return given.model_copy(update={"training": training})
