"""Build the word vocabulary of the language models from word counts of generic text.

The vocabulary has special tokens, the markers such as [MASK], and the most frequent words. Use
counts of public text only: every folder of a model contains the vocabulary.

example:
  palimpsest count-words --input data/generic/train.txt --output data/word_counts.tsv
  palimpsest vocabulary --word-counts data/word_counts.tsv --output models/vocabulary.txt
"""

import sys
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.language_model.settings import VocabularySettings
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "build the word vocabulary of the language models"


class VocabularyFiles(StageFiles):
    """Files that the command reads and writes."""

    word_counts: Annotated[str, READ]
    """word counts of generic text, as 'palimpsest count-words' writes them"""
    output: Annotated[str, WRITE]
    """vocabulary file to write, one token a line"""


def vocabulary(settings: VocabularySettings, files: VocabularyFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Write a vocabulary of the most frequent words; raises ``CorpusError`` where there is no word."""
    from tasks.language_model.vocabulary import SPECIAL_TOKENS, build_vocabulary, counts_of_words

    counts = counts_of_words(files.word_counts)
    built = build_vocabulary(counts, settings.size, settings.minimum_count)
    built.write(files.output)
    words = sum(counts.values())
    covered = sum(counts[word] for word in built.tokens[len(SPECIAL_TOKENS) :])
    print(
        f"vocabulary: {len(built):,} tokens of {len(counts):,} distinct words cover {covered / words:.2%} of "
        f"{words:,} words",
        file=sys.stderr,
    )
    return Report().measure(
        vocabulary_size=len(built),
        vocabulary_hash=built.hash,
        special_tokens=len(SPECIAL_TOKENS),
        words=words,
        distinct_words=len(counts),
        covered_share=covered / words,
    )


COMMAND = StageCommand(
    name="vocabulary",
    stage=vocabulary,
    settings=VocabularySettings,
    files=VocabularyFiles,
    section="language_model.vocabulary",
)
