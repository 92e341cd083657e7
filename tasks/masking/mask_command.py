"""Mask the private words of a text.

Every masked word becomes a marker, [MASK] or its class such as [PERSON]; everything else, punctuation and white space
included, stays as it is, and so do the number and order of the lines. A marker that the text itself contains is
escaped ([\\MASK]) and comes back as it was when the text is filled. 'palimpsest preview' shows what would be masked,
and why.

Examples:
  palimpsest mask --technique allow_list --input mail.txt --output masked.txt
  cat mail.txt | palimpsest mask --technique entity_tagger --marker-style class --input - --output -
  palimpsest count-words --input generic.txt --output counts.tsv
  palimpsest mask --technique vocabulary_threshold --word-counts counts.tsv --input mail.txt --output masked.txt
  palimpsest mask --technique combination --rule union --part allow_list --part spacy --input mail.txt --output -
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext

from tasks.errors import CorpusError
from tasks.masking.technique_options import (
    TECHNIQUE_PATHS,
    TECHNIQUE_TEXTS,
    TECHNIQUES_HELP,
    add_marker_options,
    add_technique_options,
    chosen_technique,
    technique_sections,
)
from tasks.records.cell import add_cell_options, cell_of

SUMMARY = "mask the private words of a text"
READS = ("input", *TECHNIQUE_PATHS)
WRITES = ("output", "sidecar", "kept_words")
STREAMS = ("input", *TECHNIQUE_TEXTS, *WRITES)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest mask``."""
    parser.epilog = TECHNIQUES_HELP
    parser.add_argument("--input", metavar="FILE", required=True, help="text, one sentence a line; '-': standard input")
    parser.add_argument("--output", metavar="FILE", required=True, help="masked text; '-': standard output")
    add_technique_options(parser)
    add_marker_options(parser)
    parser.add_argument(
        "--sidecar", metavar="FILE", help="write what was masked and where; as private as the text itself"
    )
    parser.add_argument("--kept-words", metavar="FILE", help="write the words that are never masked, one a line")
    parser.add_argument("--report", metavar="FILE", help="write a report of what was done, numbers only")
    add_cell_options(parser, "dataset")


def sections(arguments: argparse.Namespace) -> list[str]:
    """The one section that the technique is described by."""
    return technique_sections(arguments)


def run(arguments: argparse.Namespace) -> None:
    """Write the masked text, and what was asked for beside it."""
    chosen = chosen_technique(arguments)
    markers = chosen.settings.markers
    from tasks.corpora.sidecar import sidecar_line
    from tasks.corpora.text_lines import line_writer, read_lines, write_lines
    from tasks.masking.technique import MaskingTally
    from tasks.records.stage_report import recorded_stage

    inputs = [arguments.input, *chosen.files]
    outputs = [file for file in (arguments.output, arguments.kept_words, arguments.sidecar) if file]
    with recorded_stage(
        "mask",
        arguments.report,
        cell=cell_of(arguments).as_dict(),
        parameters=chosen.plain,
        inputs=inputs,
        outputs=outputs,
    ) as report:
        technique = chosen.load()
        for line in technique.announcements():
            print(line, file=sys.stderr)
        tally = MaskingTally()
        clock = time.perf_counter()
        with (
            line_writer(arguments.output, private=True) as output,
            line_writer(arguments.sidecar, private=True) if arguments.sidecar else nullcontext() as sidecar,
        ):
            lines = _with_progress(read_lines(arguments.input))
            masked = technique.mask(lines, markers.style, tally, with_spans=sidecar is not None, merge=markers.merge)
            for number, (line, spans) in enumerate(masked, start=1):
                output.write(line + "\n")
                if sidecar is not None:
                    sidecar.write(sidecar_line(number, spans))
            if tally.lines == tally.empty_lines:
                raise CorpusError(f"corpus file {arguments.input!r} is empty; it needs at least one sentence")
        seconds = time.perf_counter() - clock
        kept_words = technique.kept_words
        if arguments.kept_words:
            write_lines(arguments.kept_words, sorted(kept_words or ()))
        report.measure(
            lines=tally.lines,
            empty_lines=tally.empty_lines,
            masked_lines=tally.masked_lines,
            words=tally.words,
            masked_words=tally.masked_words,
            masked_fraction=tally.masked_fraction,
            masked_by_class=dict(sorted(tally.labels.items())),
            masked_by_source=dict(sorted(tally.sources.items())),
            kept_words=None if kept_words is None else len(kept_words),
            masking_seconds=round(seconds, 3),
            words_per_second=round(tally.words / seconds),
            **technique.in_force(),
        )
    share = f"{tally.masked_fraction:.1%}" if tally.masked_fraction is not None else "none"
    print(
        f"{arguments.technique}: {tally.masked_words:,} of {tally.words:,} words masked ({share}) "
        f"in {tally.lines:,} lines; {tally.words / seconds:,.0f} words/s",
        file=sys.stderr,
    )


def _with_progress(lines: Iterable[str]) -> Iterator[str] | Iterable[str]:
    """A bar on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        return lines
    from tqdm import tqdm

    return tqdm(lines, unit=" lines", unit_scale=True, mininterval=0.5, desc="mask")
