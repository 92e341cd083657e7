"""Count the words of a text.

Writes one line per different word, "word<TAB>count", the most frequent first. Words keep their case; what a word
is (contractions, numbers, addresses) is the same as for masking. The vocabulary threshold and the filling by frequency
read such a file, made of generic text. Published frequencies of general English can be blended in: one corpus is
seldom generic enough.

Example:
  palimpsest count-words --input data/generic/train.txt --output data/word_counts.tsv
"""

import argparse
import sys

SUMMARY = "count the words of a text, for the vocabulary threshold and for filling"
READS = ("input",)
WRITES = ("output",)
STREAMS = (*READS, *WRITES)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of ``palimpsest count-words``."""
    parser.add_argument("--input", metavar="FILE", required=True, help="text, one sentence a line; '-': standard input")
    parser.add_argument("--output", metavar="FILE", required=True, help="word counts; '-': standard output")
    parser.add_argument("--params", metavar="FILE", help="take the settings from the section word_counts of this file")
    parser.add_argument(
        "--published-share",
        metavar="SHARE",
        type=float,
        help="weight, from 0 to 1, of the published word frequencies of the package wordfreq (default: 0)",
    )
    parser.add_argument("--report", metavar="FILE", help="write a report of what was done, numbers only")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return ["word_counts"]


def run(arguments: argparse.Namespace) -> None:
    """Write the counts and the report."""
    from tasks.corpora.settings import WordCountSettings
    from tasks.corpora.sources.published_frequencies import blend_counts, published_frequencies
    from tasks.corpora.text_lines import read_lines
    from tasks.corpora.word_counts import count_lines, write_word_counts
    from tasks.errors import CorpusError
    from tasks.parameters.parameter_file import read_sections
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain, check_settings

    base = read_sections(arguments.params, ["word_counts"])["word_counts"] if arguments.params else WordCountSettings()
    given = {} if arguments.published_share is None else {"published_share": arguments.published_share}
    settings = check_settings(WordCountSettings, {**as_plain(base), **given}, "count-words options")
    with recorded_stage(
        "count_words",
        arguments.report,
        parameters={"word_counts": as_plain(settings)},
        inputs=[arguments.input],
        outputs=[arguments.output],
    ) as report:
        counts = count_lines(read_lines(arguments.input))
        if not counts:
            raise CorpusError(f"corpus file {arguments.input!r} holds no word; it needs at least one sentence")
        words, different = sum(counts.values()), len(counts)
        written: dict[str, int] = counts
        if settings.published_share:
            written = blend_counts(counts, published_frequencies(), settings.published_share)
        write_word_counts(arguments.output, written)
        report.measure(words=words, different_words=different, written_words=len(written))
    print(f"{words:,} words, {different:,} different ones; {len(written):,} written", file=sys.stderr)
