"""Count how often each word of a text occurs.

The output has one line for each different word: the word, a tab, and its count. The most frequent
word is first. Words keep their case. Contractions, numbers and addresses are treated as in masking.

Give generic text: the vocabulary threshold and filling by frequency need counts of it. One corpus
is seldom generic enough. So published frequencies of English, or of other languages, can be blended
in.

Example:
  palimpsest count-words --input data/generic/train.txt --output data/word_counts.tsv
"""

import sys
from typing import Annotated

from tasks.command import StageCommand, StageFiles
from tasks.corpora.settings import WordCountSettings
from tasks.errors import CorpusError
from tasks.options import READ, WRITE
from tasks.records.cell import Cell
from tasks.records.stage_report import Report
from tasks.settings.resources import ResourceSettings

SUMMARY = "count the words of a text, for the vocabulary threshold and for filling"


class CountWordsFiles(StageFiles):
    """Files that counting reads and writes."""

    input: Annotated[str, READ]
    """text to count, one sentence a line"""
    output: Annotated[str, WRITE]
    """file for the counts, word<TAB>count"""


def count_words(settings: WordCountSettings, files: CountWordsFiles, cell: Cell, resources: ResourceSettings) -> Report:
    """Write the counts; ``CorpusError`` if the text has no word."""
    from tasks.corpora.sources.published_frequencies import blend_counts, published_frequencies
    from tasks.corpora.text_lines import read_lines, refuse_no_sentences
    from tasks.corpora.word_counts import count_lines, write_word_counts

    refuse_no_sentences(files.input)
    counts = count_lines(read_lines(files.input))
    if not counts:
        raise CorpusError(f"text {files.input!r} holds no word; it needs at least one sentence")
    words, different = sum(counts.values()), len(counts)
    written: dict[str, int] = counts
    if settings.published_share:
        written = blend_counts(counts, published_frequencies(settings.published_languages), settings.published_share)
    write_word_counts(files.output, written)
    print(f"{words:,} words, {different:,} different ones; {len(written):,} written", file=sys.stderr)
    return Report().measure(words=words, different_words=different, written_words=len(written))


COMMAND = StageCommand(
    name="count_words",
    stage=count_words,
    settings=WordCountSettings,
    files=CountWordsFiles,
    section="word_counts",
)
