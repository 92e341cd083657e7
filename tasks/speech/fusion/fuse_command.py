"""Decode encoded speech with a transducer, fused with a language model inside the beam search.

The weights of the language model, of the insertion bonus and of an internal language model are found on dev, by word
error rate; then test is decoded once with them. Without --model it is the recogniser alone that decodes, and dev is not
needed. The hypotheses are n-best lists, private as what was said is. The encoded speech comes from 'palimpsest
encode-speech', the references from the manifest of the same speech.

examples:
  palimpsest fuse --recogniser models/recogniser --test test.safetensors --test-manifest test.jsonl --output alone.jsonl
  palimpsest fuse --recogniser models/recogniser --dev dev.safetensors --dev-manifest dev.jsonl --test test.safetensors
      --test-manifest test.jsonl --model models/adapted --output fused.jsonl --report fused.json
"""

import argparse
import json
import sys

from tasks.errors import ParameterError
from tasks.language_model.setting_options import add_setting_options, add_setting_options_and_grids, overridden
from tasks.speech.fusion.settings import FusionSettings
from tasks.speech.rescoring.rescore_command import add_training_text_option, add_vocabulary_option
from tasks.speech.search.settings import SearchSettings
from tasks.speech.word_errors.settings import WordErrorSettings
from tasks.speech.word_errors.word_error_rate_command import SECTION as ERRORS_SECTION
from tasks.speech.word_errors.word_error_rate_command import (
    add_error_options,
    add_interval_options,
    word_error_settings,
)

SUMMARY = "decode speech, fused with a language model whose weight is found on dev"
READS = (
    "recogniser",
    "dev",
    "dev_manifest",
    "test",
    "test_manifest",
    "model",
    "source_model",
    "source_text",
    "training_text",
    "masked",
    "sidecars",
)
WRITES = ("output", "errors", "counts")
SEARCH_SECTION, FUSION_SECTION = "speech.search", "speech.fusion"
_GRIDS = ("lm_weights", "insertion_bonuses", "internal_lm_weights")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    parser.add_argument("--recogniser", metavar="FOLDER", required=True, help="recogniser that encoded the speech")
    parser.add_argument("--dev", metavar="FILE", help="encoded speech to find the weights on")
    parser.add_argument("--dev-manifest", metavar="FILE", help="manifest or n-best lists with the references of --dev")
    parser.add_argument("--test", metavar="FILE", required=True, help="encoded speech to decode")
    parser.add_argument(
        "--test-manifest", metavar="FILE", required=True, help="manifest or n-best lists with the references of --test"
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="language model to fuse: a folder of any kind, or a causal model of Hugging Face's by folder, "
        "package:NAME/FOLDER or name on the hub; without it, the recogniser alone",
    )
    parser.add_argument(
        "--source-model",
        metavar="FOLDER",
        help="language model of the recogniser's own training text, for internal_lm density_ratio",
    )
    parser.add_argument(
        "--source-text", metavar="FILE", help="the recogniser's own training text, for internal_lm lodr"
    )
    add_vocabulary_option(parser)
    add_training_text_option(parser)
    parser.add_argument("--output", metavar="FILE", required=True, help="n-best lists to write (JSON lines): private")
    add_error_options(parser)
    parser.add_argument("--threads", type=int, help="processor threads (default: of the parameter file, or all cores)")
    add_setting_options(parser, SearchSettings, "search")
    add_setting_options_and_grids(parser, FusionSettings, "fusion", _GRIDS, "WEIGHT")
    add_interval_options(parser)


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SEARCH_SECTION, *([FUSION_SECTION] if arguments.model else []), ERRORS_SECTION]


def run(arguments: argparse.Namespace) -> None:
    """Find the weights, decode test, write what was found and say what came out."""
    settings = _settings(arguments)
    _check(arguments, settings[1])
    from tasks.threads import available_cores, threads_of
    from tasks.torch_setup import set_up_torch

    set_up_torch(threads_of(arguments, available_cores()))
    from tasks.speech.fusion.fuse_stage import fuse

    measured, warnings = fuse(arguments, *settings)
    if arguments.json:
        print(json.dumps(measured, allow_nan=False))
    else:
        print(_line(measured), file=sys.stderr if arguments.report else sys.stdout)
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _settings(arguments: argparse.Namespace) -> tuple[SearchSettings, FusionSettings, WordErrorSettings]:
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import check_settings

    def of(kind: type, section: str, title: str):  # type: ignore[no-untyped-def]
        base = read_sections(arguments.params, [section])[section] if arguments.params else None
        return check_settings(kind, overridden(arguments, kind, base), title)

    search = of(SearchSettings, SEARCH_SECTION, "search options")
    fusion = of(FusionSettings, FUSION_SECTION, "fusion options") if arguments.model else FusionSettings()
    return search, fusion, word_error_settings(arguments)


def _check(arguments: argparse.Namespace, settings: FusionSettings) -> None:
    """Hold that the options belong together."""
    if arguments.model and not (arguments.dev and arguments.dev_manifest):
        raise ParameterError("--model needs --dev and --dev-manifest: the weights are found on dev, never on test")
    if not arguments.model:
        needless: tuple[str, ...] = ("dev", "dev_manifest", "source_model", "source_text", "internal_lm", *_GRIDS)
        needless += ("vocabulary_hash", "unknown_log_share", "tuning_rounds")
        needless += ("maximum_shared_sentences", "maximum_shared_8_grams")
        for name in needless:
            if getattr(arguments, name) is not None:
                raise ParameterError(
                    f"--{name.replace('_', '-')} has no use without --model: there is nothing to fuse; leave it out"
                )
        if arguments.training_text:
            raise ParameterError("--training-text has no use without --model: nothing was trained; leave it out")
        return
    if settings.limited and not arguments.training_text:
        raise ParameterError(
            "maximum_shared_sentences and maximum_shared_8_grams need --training-text: the overlap with it is limited"
        )
    for name, kind in (("source_model", "density_ratio"), ("source_text", "lodr")):
        option = f"--{name.replace('_', '-')}"
        given = getattr(arguments, name) is not None
        if settings.internal_lm == kind and not given:
            raise ParameterError(f"internal_lm {kind!r} needs {option}; give it, or another internal_lm")
        if given and settings.internal_lm != kind:
            raise ParameterError(
                f"{option} belongs to internal_lm {kind!r}, and it is {settings.internal_lm!r}; leave it out"
            )


def _line(measured: dict) -> str:
    from tasks.speech.word_errors.measurement import shown_rate

    synthetic = " of synthetic speech" if measured["synthetic_speech"] else ""
    weights = ""
    if measured["lm_weight"] is not None:
        weights = f"; LM weight {measured['lm_weight']:g}, insertion bonus {measured['insertion_bonus']:g}"
        if measured["internal_lm"] != "none":
            weights += f", {measured['internal_lm']} weight {measured['internal_lm_weight']:g}"
        weights += f" (dev {measured['dev']['wer']:.2%}, alone {measured['dev']['wer_alone']:.2%})"
    return (
        f"word error rate {shown_rate(measured)}: {measured['insertions']:,} insertions, {measured['deletions']:,} "
        f"deletions, {measured['substitutions']:,} substitutions in {measured['words']:,} words of "
        f"{measured['utterances']:,} utterances{synthetic}{weights}; real-time factor "
        f"{measured['real_time_factor']:.3f}"
    )
