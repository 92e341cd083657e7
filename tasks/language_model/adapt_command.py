"""Train a language model further on a text: adaptation.

The text is plain (raw or filled), or masked. In masked text a marker such as [MASK] is either a token that the model
learns to predict like any word (--markers token, the paper's Baseline0), or is read but never predicted
(--markers ignore, Baseline1). In an experiment --method says which: baseline0 and baseline1 are the two, every other
method has plain text.

example:
  palimpsest adapt --model models/pretrained --text filled.txt --output models/adapted
"""

import argparse
from typing import TYPE_CHECKING

from tasks.language_model.setting_options import add_setting_options, overridden
from tasks.language_model.settings import TrainingSettings
from tasks.reports.cell import add_cell_options, cell_of

if TYPE_CHECKING:
    from tasks.language_model.transformer import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary

SUMMARY = "train a language model further on raw, masked or filled text"
TRAINING = "language_model.adaptation"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from tasks.language_model.training_options import add_training_options

    parser.add_argument("--model", required=True, help="model folder to begin with")
    add_training_options(parser)
    parser.add_argument(
        "--markers",
        choices=("none", "token", "ignore"),
        help="how markers in the text are treated (default: as --method says, or none: the text is plain)",
    )
    parser.add_argument("--method", help="method of the experiment that the text comes from; see above")
    parser.add_argument("--seed", type=int, help="seed of the order of batches and of dropout (default: 1)")
    parser.add_argument("--private", action="store_true", help="make the model readable by its owner alone")
    add_setting_options(parser, TrainingSettings, "training", leave_out=["seed"])
    add_cell_options(parser, "dataset", "technique", "filler")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [TRAINING]


def run(arguments: argparse.Namespace) -> None:
    """Read a model, train it on, write it elsewhere."""
    from tasks.language_model.encoded_text import marker_use_of
    from tasks.language_model.training_stage import TrainingStage, run_training_stage
    from tasks.params import as_plain, check_settings, read_sections

    base = read_sections(arguments.params, [TRAINING])[TRAINING] if arguments.params else None
    settings: TrainingSettings = check_settings(
        TrainingSettings, overridden(arguments, TrainingSettings, base), "training options"
    )
    markers = arguments.markers or marker_use_of(arguments.method)

    def build() -> "tuple[TransformerLanguageModel, Vocabulary]":
        from tasks.language_model.model_folder import load_model

        return load_model(arguments.model)

    stage = TrainingStage(
        name="adapt",
        cell=cell_of(arguments),
        settings=settings,
        seed=settings.seed,
        markers=markers,
        private=arguments.private,
        parameters={TRAINING: as_plain(settings), "markers": markers},
        inputs=[arguments.model],
        build=build,
    )
    run_training_stage(arguments, stage)
