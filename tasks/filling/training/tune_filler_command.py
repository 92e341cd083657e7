"""Fine-tune a filler on masked in-domain text, without looking at any masked word.

Two kinds of text can be made from a masked corpus (paper 3.2, FT):

  --text unmasked   the sentences without any marker
  --text filled     the whole corpus, its markers filled by the filler as it is first (--method top_1, top_k, ...)

A masked language model learns, body and head, to guess words of that text; a causal one is tuned with LoRA on prompts:
an instruction, a sentence with a few words replaced by [MASK], and the sentence itself. The result is a filler's folder
like that of 'palimpsest train-filler', and can be the base of another round.

A share of the sentences (--held-out-share) is never trained on, the same ones in every round. The report says how well
words of these sentences that were never masked are guessed before and after. That says nothing of how good the
substitutes are: only a language model trained on the filled text does.

Examples:
  palimpsest tune-filler --base fillers/minilm --input masked.txt --output fillers/minilm_tuned
  palimpsest tune-filler --base fillers/minilm_tuned --input masked.txt --output fillers/minilm_tuned_round_2 \\
      --text filled --method top_k --kept-words kept_words.txt --word-counts word_counts.tsv
"""

import argparse
import functools
import sys
import time
from typing import Any

from tasks.errors import ParameterError
from tasks.filling.training.training_options import TRAINING_OPTIONS, add_training_options, given_options
from tasks.threads import threads_of

SUMMARY = "fine-tune a filler on masked in-domain text, as it is or filled"
READS = ("base", "input", "kept_words", "word_counts", "tuning_text", "generic_text")
WRITES = ("output",)
REPLACES = True
KINDS = ("masked_lm", "causal_lm")
_OVERRIDES = ("text", "held_out_share", "minimum_sentences", *TRAINING_OPTIONS)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--base", required=True, metavar="FOLDER", help="filler to start from: folder or hub name")
    parser.add_argument("--input", required=True, metavar="FILE", help="masked text, one sentence a line")
    parser.add_argument("--output", required=True, metavar="FOLDER", help="where the tuned filler goes")
    for option in ("kept-words", "word-counts", "tuning-text", "generic-text"):
        parser.add_argument(f"--{option}", metavar="FILE", help="for --text filled, as for 'palimpsest fill'")
    parser.add_argument("--report", metavar="FILE", help="write what was measured to this JSON file")
    parser.add_argument("--threads", type=int, help="threads (default: resources.threads, else 1)")
    parser.add_argument(
        "--work-folder",
        metavar="FOLDER",
        help="where finished parts of the filling lie until it is complete; private (default: .palimpsest/fills)",
    )
    parser.add_argument("--params", metavar="FILE", help="params.yaml of an experiment")
    parser.add_argument(
        "--filler", metavar="NAME", help="what the tuned filler is called; with --params a name of 'tuned_fillers'"
    )
    settings = parser.add_argument_group("settings", "override those of params.yaml or the defaults")
    settings.add_argument(
        "--kind", choices=KINDS, help="what the base is (default: what its configuration, or the section, says)"
    )
    settings.add_argument("--text", help="unmasked (default): sentences without marker; filled: the filled corpus")
    settings.add_argument("--method", metavar="KIND", help="filled: how, with that method's default settings")
    settings.add_argument("--held-out-share", type=float, help="share of the sentences that are never trained on")
    settings.add_argument("--minimum-sentences", type=int, help="fewer sentences to train on are an error")
    add_training_options(parser, settings)
    cell = parser.add_argument_group("cell", "what the report says it belongs to; changes no result")
    cell.add_argument("--dataset", help="name of the private corpus")
    cell.add_argument("--technique", help="name of the masking technique")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of ``params.yaml`` that the command reads."""
    return [f"tuned_fillers.{arguments.filler}"]


def run(arguments: argparse.Namespace) -> None:
    """Fine-tune a filler."""
    from tasks.corpora.text_lines import read_corpus
    from tasks.filling.filler_setup import model_folders
    from tasks.filling.masked_lm.filler_folder import check_filler_folder
    from tasks.filling.training.tuning_text import filled_by_base, read_by_fill, tuning_text
    from tasks.records.cell import Cell
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain

    settings, threads = _settings(arguments), threads_of(arguments)
    check_filler_folder(arguments.output)
    _check_base(arguments.base, settings)
    optional = read_by_fill(arguments, settings)
    with recorded_stage(
        "tune_filler",
        arguments.report,
        cell=Cell(arguments.dataset, arguments.technique, filler=arguments.filler or arguments.output).as_dict(),
        parameters={**as_plain(settings), "base": arguments.base},
        seed=settings.seed,
        inputs=[arguments.input, *optional, *model_folders(arguments.base)],
        outputs=[arguments.output],
    ) as report:
        from tasks.torch_setup import set_up_torch

        set_up_torch(threads)
        masked = read_corpus(arguments.input)
        filled = functools.partial(filled_by_base, arguments, settings, threads)
        text = tuning_text(masked, settings, filled)
        report.measure(**text.measured)
        started = time.perf_counter()
        if settings.kind == "causal_lm":
            from tasks.filling.causal_lm.in_domain_tuning import tune_causal_filler

            report.measure(**tune_causal_filler(arguments.base, text, settings, arguments.output))
        else:
            from tasks.filling.masked_lm.in_domain_tuning import tune_masked_filler

            report.measure(**tune_masked_filler(arguments.base, text, settings, arguments.output))
        report.measure(training_seconds=round(time.perf_counter() - started, 3))
        if report.measured["held_out_loss"] is None:
            report.warn(
                "no held-out sentence without markers has a word to guess: nothing says how well such words are guessed"
            )
        if report.measured.get("fills") and report.measured.get("class_slots") == 0:
            report.warn("no marker says its class: classes=match changed nothing in the filling; mask by class")
    _say(arguments.output, report.measured)


def _check_base(base: str, settings: Any) -> None:
    """Before minutes are spent on filling: is the base there, whole, and of the kind of the settings?"""
    from tasks.filling.causal_lm.filler_folder import is_causal
    from tasks.model_source import check_model_folder, locate_model

    source = locate_model(base)
    causal = is_causal(base)
    if not causal:
        check_model_folder(source, base)
    if causal != (settings.kind == "causal_lm"):
        found = "causal_lm" if causal else "masked_lm"
        raise ParameterError(
            f"kind {settings.kind!r} is not that of the base {base!r}, {found!r}; set kind: {found}, or name another "
            "base"
        )


def _say(output: str, measured: dict[str, Any]) -> None:
    quality = "; no held-out sentence to test on"
    if measured["held_out_loss"] is not None:
        quality = (
            f"; on held-out words perplexity {measured['base_held_out_perplexity']:.1f} before, "
            f"{measured['held_out_perplexity']:.1f} after, the right word first in "
            f"{measured['base_held_out_top_1_accuracy']:.1%} before, {measured['held_out_top_1_accuracy']:.1%} after"
        )
    filled = f", {measured['fills']:,} places filled first" if "fills" in measured else ""
    print(
        f"tuned filler in {output} after {measured['steps']} steps on {measured['training_sentences']:,} sentences"
        f"{filled} in {measured['training_seconds'] + measured.get('filling_seconds', 0):.0f} s{quality}",
        file=sys.stderr,
    )


def _settings(arguments: argparse.Namespace) -> Any:
    """The tuning's settings with the options that override them."""
    from tasks.filling.training.tuning_settings import TuningSettings
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import as_plain, check_settings

    values: dict[str, Any] = {}
    if arguments.params:
        if not arguments.filler:
            raise ParameterError("--params needs --filler with a name of its section 'tuned_fillers'")
        section = sections(arguments)[0]
        values = as_plain(read_sections(arguments.params, [section])[section])
        if arguments.kind and arguments.kind != values["kind"]:
            raise ParameterError(
                f"--kind {arguments.kind} is not that of the section, {values['kind']!r}; leave it out"
            )
    elif arguments.kind:
        values["kind"] = arguments.kind
    else:
        from tasks.filling.causal_lm.filler_folder import is_causal

        values["kind"] = "causal_lm" if is_causal(arguments.base) else "masked_lm"
    values |= given_options(arguments, _OVERRIDES)
    if arguments.method is not None:
        values["method"] = {"kind": arguments.method}
    return check_settings(TuningSettings, values, "tune-filler")
