"""Train the language model on generic text: a word-level Transformer, or a model of another kind.

The result is a folder with weights (safetensors), the vocabulary and the architecture. The adapt command trains it
further on private or obfuscated text; the perplexity command says how well it predicts a text.

--kind ngram estimates an n-gram model with modified Kneser-Ney smoothing instead, in seconds, and writes it as an ARPA
file. --kind causal_lm takes a causal language model of Hugging Face's as it comes: its folder says where its weights
are, and neither the text nor the vocabulary is used.

examples:
  palimpsest pretrain --text generic.txt --valid held-out.txt --vocabulary vocabulary.txt --output models/pretrained
  palimpsest pretrain --kind ngram --text generic.txt --vocabulary vocabulary.txt --output models/ngram
  palimpsest pretrain --kind causal_lm --model gpt2 --text generic.txt --vocabulary vocabulary.txt --output models/gpt2
"""

import argparse
from typing import TYPE_CHECKING

from tasks.language_model.downstream_model import (
    RESOURCE_OPTIONS,
    add_kind_option,
    check_options,
    kind_asked_for,
    kind_sections,
)
from tasks.language_model.kind_settings import CausalLanguageModelSettings, Kind, NgramSettings
from tasks.language_model.setting_options import add_setting_options, settings_of
from tasks.language_model.settings import ArchitectureSettings, TrainingSettings
from tasks.training.options import TRAINING_PATHS

if TYPE_CHECKING:
    from tasks.language_model.transformer.model import TransformerLanguageModel
    from tasks.language_model.vocabulary import Vocabulary

SUMMARY = "train the language model on generic text"
READS = ("vocabulary", "model", *TRAINING_PATHS)
WRITES = ("output",)
REPLACES = True
ARCHITECTURE, TRAINING = "language_model.architecture", "language_model.pretraining"
_OPTIONS: dict[Kind, set[str]] = {
    "transformer": {*ArchitectureSettings.model_fields, *TrainingSettings.model_fields, *RESOURCE_OPTIONS},
    "ngram": {"order"},
    "causal_lm": {"model", "gguf_file", "precision"},
}
"""What each kind of model takes."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    from tasks.training.options import add_training_options

    parser.add_argument("--vocabulary", required=True, help="vocabulary file, made by the vocabulary command")
    add_kind_option(parser)
    add_training_options(parser)
    add_setting_options(parser, ArchitectureSettings, "architecture")
    add_setting_options(parser, TrainingSettings, "training")
    add_setting_options(parser, NgramSettings, "kind ngram", leave_out=["generic_weight"])
    add_setting_options(parser, CausalLanguageModelSettings, "kind causal_lm", leave_out=["precision", "adaptation"])


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [ARCHITECTURE, TRAINING, *kind_sections(arguments)]


def run(arguments: argparse.Namespace) -> None:
    """Draw a new model, train it, write it; or make a model of another kind."""
    kind = kind_asked_for(arguments)
    check_options(arguments, kind, _OPTIONS)
    match kind:
        case "ngram":
            from tasks.language_model.ngram.stages import pretrain as pretrain_ngram

            return pretrain_ngram(arguments)
        case "causal_lm":
            from tasks.language_model.causal_lm.stages import pretrain as pretrain_causal_lm

            return pretrain_causal_lm(arguments)
    from tasks.language_model.training.stage import TrainingStage, run_training_stage
    from tasks.records.cell import Cell
    from tasks.settings.checks import as_plain

    architecture = settings_of(arguments, ARCHITECTURE, ArchitectureSettings, "architecture options")
    settings = settings_of(arguments, TRAINING, TrainingSettings, "training options")

    def build() -> "tuple[TransformerLanguageModel, Vocabulary]":
        from tasks.language_model.transformer.model import TransformerLanguageModel
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
