"""Measure how well a language model predicts a text: its perplexity, with a confidence interval.

The text is plain, one sentence a line. Perplexity is over words and sentence ends; beside it stands the perplexity
over known words, since a word outside the vocabulary is a token of its own that distorts the whole. The signature
in the output names the protocol: numbers with different signatures do not compare.

example:
  palimpsest perplexity --model models/adapted --text test.txt --json
"""

import argparse
import json
import sys

from tasks.language_model.setting_options import add_setting_options, overridden
from tasks.language_model.settings import EvaluationSettings
from tasks.reports.cell import add_cell_options, cell_of

SUMMARY = "measure how well a language model predicts a text"
SECTION = "evaluation"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    parser.add_argument("--model", required=True, help="model folder, made by the pretrain or adapt command")
    parser.add_argument("--text", required=True, help="text to predict, one sentence a line, or - for standard input")
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON on standard output")
    parser.add_argument("--scores", help="file to write the log-probability of each sentence to: numbers only, no text")
    parser.add_argument("--report", help="report file to write (JSON)")
    parser.add_argument("--threads", type=int, help="processor threads (default: of the parameter file, or all cores)")
    add_setting_options(parser, EvaluationSettings, "evaluation", leave_out=["seed"])
    parser.add_argument("--bootstrap-seed", type=int, help="seed of the resampling (default: 1)")
    add_cell_options(parser, "dataset", "technique", "filler", "method", "seed")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SECTION]


def run(arguments: argparse.Namespace) -> None:
    """Score the text and say what came out."""
    from tasks.language_model.training_options import threads_of
    from tasks.params import as_plain, check_settings, read_sections
    from tasks.reports.stage_report import recorded_stage

    base = read_sections(arguments.params, [SECTION])[SECTION] if arguments.params else None
    # --seed names the cell of the model; the resampling has an option of its own.
    given = argparse.Namespace(**{**vars(arguments), "seed": arguments.bootstrap_seed})
    settings: EvaluationSettings = check_settings(
        EvaluationSettings, overridden(given, EvaluationSettings, base), "evaluation options"
    )
    threads = threads_of(arguments)
    from tasks.torch_setup import set_up_torch

    set_up_torch(threads)
    with recorded_stage(
        "perplexity",
        arguments.report,
        cell=cell_of(arguments).as_dict(),
        parameters={SECTION: as_plain(settings)},
        seed=settings.seed,
        inputs=[arguments.model, arguments.text],
        outputs=[arguments.scores] if arguments.scores else [],
    ) as report:
        from tasks.language_model.encoded_text import encode_text
        from tasks.language_model.model_folder import load_model
        from tasks.language_model.perplexity import measure_perplexity, signature_of
        from tasks.language_model.scoring import score_sentences
        from tasks.language_model.sentence_scores import write_scores

        model, vocabulary = load_model(arguments.model)
        text = encode_text(arguments.text, vocabulary)
        scores = score_sentences(model, text)
        signature = signature_of(vocabulary, model.architecture.maximum_tokens)
        measured = measure_perplexity(scores, text, settings, signature)
        if arguments.scores:
            write_scores(arguments.scores, scores, signature)
        report.measure(**measured, threads=threads)
    if arguments.json:
        print(json.dumps(measured, allow_nan=False))
    else:
        print(_line(measured), file=sys.stderr if arguments.report else sys.stdout)


def _line(measured: dict) -> str:
    def shown(name: str) -> str:
        value, interval = measured[name], measured[f"{name}_ci"]
        if value is None:
            return "undefined"
        return f"{value:.2f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")

    return (
        f"perplexity {shown('perplexity')}, over known words {shown('perplexity_known')}; {measured['words']:,} words, "
        f"{measured['oov_rate']:.2%} unknown, {measured['sentences']:,} sentences; {measured['signature']}"
    )
