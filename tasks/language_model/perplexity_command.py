"""Measure how well a language model predicts a text: its perplexity, with a confidence interval.

The text is plain, one sentence a line. Perplexity is over words and sentence ends; beside it stands the perplexity
over known words, since a word outside the vocabulary is a token of its own that distorts the whole. Given the sidecars
of the text, the words that each technique masks are told apart from the rest; given word counts, frequent words from
rare ones. The signature in the output names the protocol (docs/perplexity.md): numbers with different signatures do
not compare.

examples:
  palimpsest perplexity --model models/adapted --text test.txt --json
  palimpsest mask --technique allow_list --input test.txt --output masked.txt --sidecar sidecars/allow_list.jsonl
  palimpsest perplexity --model models/adapted --text test.txt --sidecars sidecars --word-counts counts.tsv
  torchrun --nproc-per-node 2 -m tasks.cli perplexity --model models/adapted --text test.txt
"""

import argparse
import json
import sys
from collections.abc import Iterator

from tasks.language_model.setting_options import add_setting_options, overridden
from tasks.language_model.settings import EvaluationSettings
from tasks.records.cell import add_cell_options, cell_of

SUMMARY = "measure how well a language model predicts a text"
READS = ("model", "text", "sidecars", "word_counts")
WRITES = ("scores",)
SECTION = "evaluation"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    parser.add_argument("--model", required=True, help="model folder, made by the pretrain or adapt command")
    parser.add_argument("--text", required=True, help="text to predict, one sentence a line")
    parser.add_argument(
        "--sidecars",
        metavar="FOLDER",
        help="sidecars of the text, one TECHNIQUE.jsonl for each technique: what it masks is measured apart",
    )
    parser.add_argument(
        "--word-counts", metavar="FILE", help="counts of generic words: what is frequent there is measured apart"
    )
    parser.add_argument("--json", action="store_true", help="print all numbers as JSON on standard output")
    parser.add_argument("--scores", help="file to write the log-probability of each sentence to: numbers only, no text")
    parser.add_argument("--report", help="report file to write (JSON)")
    parser.add_argument("--threads", type=int, help="processor threads (default: of the parameter file, or all cores)")
    add_setting_options(parser, EvaluationSettings, "evaluation", leave_out=["seed", "frequency_classes"])
    parser.add_argument(
        "--frequency-classes",
        type=int,
        nargs="+",
        metavar="RANK",
        help="rising ranks that divide known words into classes of frequency (default: 100 1000 10000)",
    )
    parser.add_argument("--bootstrap-seed", type=int, help="seed of the resampling (default: 1)")
    add_cell_options(parser, "dataset", "technique", "filler", "method", "seed")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SECTION]


def run(arguments: argparse.Namespace) -> None:
    """Score the text and say what came out."""
    from tasks.parameters.parameter_file import read_sections
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain, check_settings
    from tasks.threads import available_cores, threads_of

    base = read_sections(arguments.params, [SECTION])[SECTION] if arguments.params else None
    # --seed names the cell of the model; the resampling has an option of its own.
    given = argparse.Namespace(**{**vars(arguments), "seed": arguments.bootstrap_seed})
    settings: EvaluationSettings = check_settings(
        EvaluationSettings, overridden(given, EvaluationSettings, base), "evaluation options"
    )
    threads = threads_of(arguments, available_cores())
    from tasks.torch_setup import set_up_torch

    set_up_torch(threads)
    from tasks.language_model.evaluation.reference_text import read_reference_text, sidecars_in

    sidecars = sidecars_in(arguments.sidecars) if arguments.sidecars else {}
    inputs = [arguments.model, arguments.text, *sidecars.values(), arguments.word_counts]
    from tasks.language_model.evaluation.ranks import ranks_of_torchrun

    with (
        ranks_of_torchrun(threads) as plan,
        recorded_stage(
            "perplexity",
            arguments.report if plan.is_first else None,
            cell=cell_of(arguments).as_dict(),
            parameters={SECTION: as_plain(settings)},
            seed=settings.seed,
            inputs=[path for path in inputs if path],
            outputs=[arguments.scores] if arguments.scores else [],
        ) as report,
    ):
        from tasks.language_model.downstream_model import score_text
        from tasks.language_model.evaluation.frequency_classes import word_ranks
        from tasks.language_model.evaluation.perplexity import measure_perplexity
        from tasks.language_model.evaluation.sentence_scores import write_scores

        ranks = word_ranks(arguments.word_counts) if arguments.word_counts else None
        text = read_reference_text(arguments.text, sidecars)
        scores, protocol = score_text(arguments.model, arguments.text, settings.markers)
        if not plan.is_first:
            return
        measured, sentences = measure_perplexity(scores, text, settings, protocol.signature, ranks)
        if arguments.scores:
            write_scores(arguments.scores, sentences, protocol.signature)
        report.measure(**measured, threads=threads)
    if arguments.json:
        print(json.dumps(measured, allow_nan=False))
    elif arguments.report:
        print(_first_line(measured), file=sys.stderr)
    else:
        print("\n".join([_first_line(measured), *_further_lines(measured)]))


def _shown(measured: dict, name: str = "perplexity") -> str:
    value, interval = measured[name], measured[f"{name}_ci"]
    if value is None:
        return "undefined"
    return f"{value:,.2f}" + (f" [{interval[0]:,.2f}, {interval[1]:,.2f}]" if interval else "")


def _first_line(measured: dict) -> str:
    return (
        f"perplexity {_shown(measured)}, over known words {_shown(measured, 'perplexity_known')}; "
        f"{measured['words']:,} words, {measured['oov_rate']:.2%} unknown, {measured['sentences']:,} sentences; "
        f"{measured['bits_per_character']:.3f} bits per character; {measured['signature']}"
    )


def _further_lines(measured: dict) -> Iterator[str]:
    """Masked words apart, and words by frequency, where options asked for them."""
    for technique, masked in measured["masked_words"].items():
        yield (
            f"  {technique}: {masked['words']:,} masked words ({masked['share']:.1%}), those known "
            f"{_shown(masked, 'perplexity_known')}; the rest {_shown(masked, 'perplexity_rest_known')}"
        )
    for name, group in measured["by_frequency"].items():
        yield f"  {name}: {group['targets']:,} targets, {_shown(group)}"
