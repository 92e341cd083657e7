"""Mask the private words of a text.

Every masked word becomes a marker, [MASK] or its class such as [PERSON]; everything else, punctuation and white space
included, stays as it is, and so do the number and order of the lines. A marker that the text itself contains is
escaped ([\\MASK]) and comes back as it was when the text is filled.

Techniques:
  allow_list            keep the words of a list of 5,000 safe common words (or of --list), mask all others
  vocabulary_threshold  keep the most frequent words of generic text, mask all others; needs --word-counts or
                        --vocabulary
  entity_tagger         mask the names, places, organisations, dates, numbers ... that a model tags

Examples:
  palimpsest mask --technique allow_list --input mail.txt --output masked.txt
  cat mail.txt | palimpsest mask --technique entity_tagger --marker-style class --input - --output -
  palimpsest count-words --input generic.txt --output counts.tsv
  palimpsest mask --technique vocabulary_threshold --word-counts counts.tsv --input mail.txt --output masked.txt
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any

from tasks.errors import CorpusError, ParameterError
from tasks.reports.cell import add_cell_options, cell_of

SUMMARY = "mask the private words of a text"

KINDS = ("allow_list", "vocabulary_threshold", "entity_tagger")
_OPTIONS_OF = {
    "allow_list": ("list",),
    "vocabulary_threshold": ("most_frequent", "vocabulary_size", "vocabulary"),
    "entity_tagger": ("tagger", "model", "batch_size", "minimum_score"),
}
"""Options that belong to one kind of technique: with another one they would do nothing, which is an error."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest mask``."""
    parser.add_argument("--input", metavar="FILE", required=True, help="text, one sentence a line; '-': standard input")
    parser.add_argument("--output", metavar="FILE", required=True, help="masked text; '-': standard output")
    parser.add_argument(
        "--technique",
        required=True,
        metavar="NAME",
        help=f"one of {', '.join(KINDS)}; with --params: a key of 'masking:'",
    )
    parser.add_argument("--params", metavar="FILE", help="read the technique's settings from a params.yaml")
    parser.add_argument(
        "--marker-style",
        choices=("mask", "class"),
        default="mask",
        help="'mask': every marker is [MASK]; 'class': [PERSON], [NUMBER], ... (default: mask)",
    )
    parser.add_argument(
        "--sidecar", metavar="FILE", help="write what was masked and where; as private as the text itself"
    )
    parser.add_argument("--kept-words", metavar="FILE", help="write the words that are never masked, one a line")
    parser.add_argument("--report", metavar="FILE", help="write a report of what was done, numbers only")
    parser.add_argument(
        "--word-counts", metavar="FILE", help="counts of generic text's words; vocabulary_threshold alone reads them"
    )
    allow_list = parser.add_argument_group("allow_list")
    allow_list.add_argument("--list", metavar="FILE", help="a list of your own, one word a line")
    threshold = parser.add_argument_group("vocabulary_threshold")
    threshold.add_argument("--vocabulary", metavar="FILE", help="instead of counts: words, the most frequent first")
    threshold.add_argument("--most-frequent", type=int, metavar="N", help="how many words are kept (default: 10000)")
    threshold.add_argument("--vocabulary-size", type=int, metavar="N", help="of how many words (default: 85000)")
    tagger = parser.add_argument_group("entity_tagger")
    tagger.add_argument("--tagger", choices=("spacy", "transformers"), help="library of the model (default: spacy)")
    tagger.add_argument("--model", metavar="NAME", help="installed spaCy pipeline, hub name or folder of the model")
    tagger.add_argument(
        "--batch-size", type=int, metavar="N", help="sentences (spacy) or windows (transformers) a batch"
    )
    tagger.add_argument(
        "--minimum-score", type=float, metavar="P", help="transformers: mask no entity of lower probability"
    )
    add_cell_options(parser, "dataset")


def sections(arguments: argparse.Namespace) -> list[str]:
    """The one section that the technique is described by."""
    return [f"masking.{arguments.technique}"] if arguments.params else []


def _settings(arguments: argparse.Namespace) -> tuple[Any, int]:
    """Settings of the technique, and the number of threads."""
    from tasks.masking.settings import TechniqueSettings
    from tasks.params import as_plain, check_settings, read_sections
    from tasks.spelling import nearest

    threads = 1
    if arguments.params:
        (section,) = sections(arguments)
        read = read_sections(arguments.params, [section, "resources"])
        values, threads = as_plain(read[section]), read["resources"].threads
    elif arguments.technique in KINDS:
        section, values = "options", {"kind": arguments.technique}
    else:
        raise ParameterError(
            f"--technique {arguments.technique!r} is none{nearest(arguments.technique, KINDS)}; "
            f"allowed: {', '.join(KINDS)}, or with --params a key of 'masking:'"
        )
    for kind, names in _OPTIONS_OF.items():
        for name in names:
            if getattr(arguments, name) is not None and kind != values["kind"]:
                raise ParameterError(f"--{name.replace('_', '-')} is for {kind}, not for {values['kind']}")
    _set(values, "path", arguments.list)
    _set(values, "kept_words", arguments.most_frequent)
    _set(values, "vocabulary_size", arguments.vocabulary_size)
    if values["kind"] == "entity_tagger":
        tagger = dict(values.get("tagger") or {"kind": "spacy"})
        if arguments.tagger not in (None, tagger["kind"]):
            tagger = {}
        for name in ("model", "batch_size", "minimum_score"):
            _set(tagger, name, getattr(arguments, name))
        _set(tagger, "kind", arguments.tagger)
        values["tagger"] = tagger
    return check_settings(TechniqueSettings, values, section), threads


def _word_files(arguments: argparse.Namespace, settings: Any) -> tuple[str | None, str | None]:
    """Word counts and vocabulary file, where the technique reads them; the graph names the counts for every one."""
    if settings.kind != "vocabulary_threshold":
        return None, None
    # A vocabulary given by hand goes before the counts that a graph gives to every technique.
    return (None, arguments.vocabulary) if arguments.vocabulary else (arguments.word_counts, None)


def _set(values: dict[str, Any], name: str, value: Any) -> None:
    if value is not None:
        values[name] = value


def run(arguments: argparse.Namespace) -> None:
    """Write the masked text, and what was asked for beside it."""
    settings, threads = _settings(arguments)
    from tasks.corpora.sidecar import sidecar_line
    from tasks.corpora.text_lines import line_writer, read_lines, write_lines
    from tasks.masking.technique import MaskingTally
    from tasks.masking.techniques import load_technique
    from tasks.params import as_plain
    from tasks.reports.stage_report import recorded_stage

    counts, vocabulary = _word_files(arguments, settings)
    inputs = [arguments.input, *(file for file in (counts, vocabulary, getattr(settings, "path", None)) if file)]
    outputs = [file for file in (arguments.output, arguments.kept_words, arguments.sidecar) if file]
    with recorded_stage(
        "mask",
        arguments.report,
        cell=cell_of(arguments).as_dict(),
        parameters={**as_plain(settings), "marker_style": arguments.marker_style},
        inputs=inputs,
        outputs=outputs,
    ) as report:
        technique = load_technique(
            settings,
            word_counts=counts,
            vocabulary=vocabulary,
            threads=threads,
        )
        tally = MaskingTally()
        clock = time.perf_counter()
        with (
            line_writer(arguments.output, private=True) as output,
            line_writer(arguments.sidecar, private=True) if arguments.sidecar else nullcontext() as sidecar,
        ):
            lines = _with_progress(read_lines(arguments.input))
            masked = technique.mask(lines, arguments.marker_style, tally, with_spans=sidecar is not None)
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
