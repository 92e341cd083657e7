"""Mask and fill made-up sentences as an experiment masks and fills its corpus, for the report page to quote.

A page may show no private sentence, and numbers alone do not say what masked and filled text looks like. So a few
sentences that come with palimpsest, or that you give, take the way of the private ones: every technique masks them, and
every method fills them, with the same settings, lists, filler and learned weights. The report holds them in full: give
only text that anybody may read. A filler that was fine-tuned on one technique's text fills what that technique masks.

examples:
  palimpsest examples --params params.yaml --dataset chat --masked data/private/masked/chat/train \\
    --techniques allow_list entity_tagger --filler models/fillers/minilm --methods top_1 top_k --controls unigram \\
    --word-counts data/word_counts.tsv --tuning-text data/generic/valid.txt --generic-text data/generic/train.txt \\
    --report results/reports/examples/chat/minilm.json
  palimpsest examples --params params.yaml --dataset chat --masked data/private/masked/chat/train \\
    --technique allow_list --filler models/tuned_fillers/chat/allow_list/minilm_tuned --methods top_k \\
    --word-counts data/word_counts.tsv --tuning-text data/generic/valid.txt --generic-text data/generic/train.txt \\
    --report results/reports/examples/chat/allow_list/minilm_tuned.json
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.errors import ParameterError

SUMMARY = "mask and fill made-up sentences, for the report page to quote"
READS = ("word_counts", "tuning_text", "generic_text", "sentences", "masked", "filler")
SENTENCES = Path(__file__).with_name("example_sentences.txt")
STAGE = "examples"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", required=True, metavar="FILE", help="params.yaml of an experiment")
    parser.add_argument(
        "--dataset", required=True, metavar="NAME", help="private corpus whose masked text is the model"
    )
    parser.add_argument(
        "--masked", required=True, metavar="FOLDER", help="its masked text, with a folder for each technique"
    )
    parser.add_argument("--technique", metavar="NAME", help="mask by this one, on whose text the filler was tuned")
    parser.add_argument("--techniques", nargs="+", default=[], metavar="NAME", help="or mask by each of these")
    parser.add_argument("--methods", nargs="+", required=True, metavar="NAME", help="fill by each of these")
    parser.add_argument("--controls", nargs="+", default=[], metavar="NAME", help="and by these, without the filler")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draws (default: %(default)s)")
    parser.add_argument("--filler", required=True, metavar="FOLDER", help="filler, as for 'palimpsest fill'")
    parser.add_argument("--filler-name", metavar="NAME", help="name of the filler (default: --filler)")
    parser.add_argument("--word-counts", required=True, metavar="FILE", help="as for 'palimpsest fill'")
    parser.add_argument("--tuning-text", required=True, metavar="FILE", help="as for 'palimpsest fill'")
    parser.add_argument("--generic-text", required=True, metavar="FILE", help="as for 'palimpsest fill'")
    parser.add_argument(
        "--sentences",
        metavar="FILE",
        help="sentences of your own, one a line, that anybody may read (default: some that come with palimpsest)",
    )
    parser.add_argument("--report", required=True, metavar="FILE", help="report file to write (JSON)")


def sections(arguments: argparse.Namespace) -> list[str]:
    """How everything is masked and filled."""
    return ["filling", "masking"]


def run(arguments: argparse.Namespace) -> None:
    """Write the report."""
    from tasks.corpora.text_lines import read_corpus
    from tasks.filling.filled_corpus import Shard
    from tasks.filling.filler_setup import model_folders
    from tasks.records.cell import Cell
    from tasks.records.stage_report import recorded_stage
    from tasks.threads import threads_of

    threads = threads_of(argparse.Namespace(params=arguments.params, threads=None))
    seed, name = arguments.seed, arguments.filler_name or arguments.filler
    methods = [(method, name) for method in arguments.methods] + [(method, None) for method in arguments.controls]
    techniques = [arguments.technique] if arguments.technique else arguments.techniques
    if bool(arguments.technique) == bool(arguments.techniques):
        raise ParameterError("give --technique NAME, or --techniques NAME NAME ...: one of the two says how to mask")
    inputs = [arguments.word_counts, arguments.tuning_text, arguments.generic_text]
    inputs += [arguments.sentences] if arguments.sentences else []
    with recorded_stage(
        STAGE,
        arguments.report,
        cell=Cell(dataset=arguments.dataset, technique=arguments.technique, filler=name, seed=seed).as_dict(),
        seed=seed,
        inputs=[*inputs, *model_folders(arguments.filler)],
    ) as report:
        raw = list(read_corpus(arguments.sentences or str(SENTENCES)))
        examples = []
        for technique in techniques:
            masked, spans = _mask(raw, technique, arguments)
            shard = Shard(0, 1, masked, spans)
            filled = [
                {"method": method, "filler": filler, "lines": _fill(shard, technique, method, seed, arguments, threads)}
                for method, filler in methods
            ]
            examples.append({"technique": technique, "masked": masked, "filled": filled})
        report.measure(raw=raw, by_technique=examples)
    print(f"{len(raw)} sentences masked in {len(examples)} ways and filled in {len(methods)}")


def _mask(lines: Sequence[str], technique: str, arguments: argparse.Namespace) -> tuple[list[str], list[Any]]:
    from tasks.masking.technique import MaskingTally
    from tasks.parameters.parameter_file import read_sections

    section = f"masking.{technique}"
    read = read_sections(arguments.params, [section, "resources"])
    settings, threads = read[section], read["resources"].threads
    loaded = settings.build(arguments.word_counts, threads)
    masked = loaded.mask(lines, settings.markers.style, MaskingTally(), with_spans=True, merge=settings.markers.merge)
    pairs = list(masked)
    return [line for line, _ in pairs], [spans for _, spans in pairs]


def _fill(shard: Any, technique: str, method: str, seed: int, arguments: argparse.Namespace, threads: int) -> list[str]:
    """The lines as 'palimpsest fill' fills them, where it has learned from the whole masked corpus.

    Examples read no sidecar, so a method that counts masked words goes by the frequencies of the domain here.
    """
    from tasks.filling import fill_command
    from tasks.filling.fill_stage import learn
    from tasks.filling.filler_setup import corpus_filler
    from tasks.filling.log_linear.options import counts_masked_words
    from tasks.parameters.parameter_file import read_sections

    section = f"filling.{method}"
    settings = read_sections(arguments.params, [section])[section]
    if counts_masked_words(settings):
        settings = settings.model_copy(update={"prior": "domain"})
    folder = Path(arguments.masked) / technique
    options = ["--params", arguments.params, "--method", method, "--input", str(folder / "text.txt"), "--output", "-"]
    options += ["--kept-words", str(folder / "kept_words.txt"), "--word-counts", arguments.word_counts]
    options += ["--generic-text", arguments.generic_text, "--seed", str(seed)]
    if settings.uses_filler:
        options += ["--filler", arguments.filler, "--tuning-text", arguments.tuning_text]
    asked = _parsed(fill_command, options)
    prepared, _ = learn(asked, settings, threads)
    return corpus_filler(asked, settings, threads, b"", prepared).fill_shard(shard).lines


def _parsed(module: Any, options: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    module.configure(parser)
    return parser.parse_args(options)
