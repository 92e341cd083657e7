"""Build the word vocabulary of the language models from generic text.

The vocabulary holds special tokens, the markers such as [MASK], and the most frequent words of the text. Build it
on public text only: the file goes wherever a model goes.

example:
  palimpsest vocabulary --word-counts data/word_counts.tsv --size 20000 --output models/vocabulary.txt
  palimpsest vocabulary --text data/generic/train.txt --size 20000 --output models/vocabulary.txt
"""

import argparse
import sys

from tasks.language_model.setting_options import add_setting_options, settings_of
from tasks.language_model.settings import VocabularySettings

SUMMARY = "build the word vocabulary of the language models"
READS = ("text", "word_counts")
WRITES = ("output",)
SECTION = "language_model.vocabulary"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--text", help="generic text, one sentence a line")
    source.add_argument("--word-counts", help="word counts of generic text, as 'palimpsest count-words' writes them")
    parser.add_argument("--output", required=True, help="vocabulary file to write, one token a line")
    parser.add_argument("--report", help="report file to write (JSON)")
    add_setting_options(parser, VocabularySettings, "vocabulary")


def sections(arguments: argparse.Namespace) -> list[str]:
    """Key paths of the parameter file that decide the result."""
    return [SECTION]


def run(arguments: argparse.Namespace) -> None:
    """Count words and write the most frequent ones."""
    from tasks.language_model.vocabulary import SPECIAL_TOKENS, build_vocabulary, count_words, counts_of_words
    from tasks.records.stage_report import recorded_stage
    from tasks.settings.checks import as_plain

    settings = settings_of(arguments, SECTION, VocabularySettings, "vocabulary options")
    with recorded_stage(
        "vocabulary",
        arguments.report,
        parameters={SECTION: as_plain(settings)},
        inputs=[arguments.text or arguments.word_counts],
        outputs=[arguments.output],
    ) as report:
        counts = count_words(arguments.text) if arguments.text else counts_of_words(arguments.word_counts)
        vocabulary = build_vocabulary(counts, settings.size, settings.minimum_count)
        vocabulary.write(arguments.output)
        words = sum(counts.values())
        covered = sum(counts[word] for word in vocabulary.tokens[len(SPECIAL_TOKENS) :])
        report.measure(
            vocabulary_size=len(vocabulary),
            vocabulary_hash=vocabulary.hash,
            special_tokens=len(SPECIAL_TOKENS),
            words=words,
            distinct_words=len(counts),
            covered_share=covered / words,
        )
    print(
        f"vocabulary: {len(vocabulary):,} tokens of {len(counts):,} distinct words cover {covered / words:.2%} of "
        f"{words:,} words",
        file=sys.stderr,
    )
