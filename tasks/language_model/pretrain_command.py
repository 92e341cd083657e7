"""Train the word-level Transformer language model on generic text.

The result is a folder with weights (safetensors), the vocabulary and the architecture. The adapt command trains it
further on private or obfuscated text; the perplexity command says how well it predicts a text.

example:
  palimpsest pretrain --text generic.txt --valid held-out.txt --vocabulary vocabulary.txt --output models/pretrained
"""

import argparse
from typing import TYPE_CHECKING

from tasks.language_model.setting_options import add_setting_options, overridden
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings

if TYPE_CHECKING:
    from tasks.language_model.transformer import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary

SUMMARY = "train the language model on generic text"
ARCHITECTURE, TRAINING = "language_model.architecture", "language_model.pretraining"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from tasks.language_model.training_options import add_training_options

    parser.add_argument("--vocabulary", required=True, help="vocabulary file, made by the vocabulary command")
    add_training_options(parser)
    add_setting_options(parser, ArchitectureSettings, "architecture")
    add_setting_options(parser, TrainingSettings, "training")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [ARCHITECTURE, TRAINING]


def run(arguments: argparse.Namespace) -> None:
    """Draw a new model, train it, write it."""
    from tasks.language_model.training_stage import TrainingStage, run_training_stage
    from tasks.params import as_plain, check_settings, read_sections
    from tasks.reports.cell import Cell

    given = read_sections(arguments.params, [ARCHITECTURE, TRAINING]) if arguments.params else {}
    architecture: ArchitectureSettings = check_settings(
        ArchitectureSettings,
        overridden(arguments, ArchitectureSettings, given.get(ARCHITECTURE)),
        "architecture options",
    )
    settings: TrainingSettings = check_settings(
        TrainingSettings, overridden(arguments, TrainingSettings, given.get(TRAINING)), "training options"
    )

    def build() -> "tuple[TransformerLanguageModel, Vocabulary]":
        from tasks.language_model.transformer import TransformerLanguageModel
        from tasks.language_model.vocabulary import read_vocabulary

        vocabulary = read_vocabulary(arguments.vocabulary)
        model = TransformerLanguageModel(architecture, len(vocabulary))
        model.initialise(settings.seed)
        return model, vocabulary

    stage = TrainingStage(
        name="pretrain",
        cell=Cell(),
        settings=settings,
        seed=settings.seed,
        markers="none",
        private=False,
        parameters={ARCHITECTURE: as_plain(architecture), TRAINING: as_plain(settings)},
        inputs=[arguments.vocabulary],
        build=build,
    )
    run_training_stage(arguments, stage)
