"""The format of word counts: one line for each word of a text, with its count.

A UTF-8 text file with lines ``word<TAB>count``, the most frequent first and equal counts in the order of the words'
code points. Words have the case of the text (``tasks.corpora.words``); they contain neither tabs nor line ends.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tasks.corpora.text_lines import line_writer, read_lines, whole_number
from tasks.corpora.words import words_of
from tasks.errors import CorpusError

_MOST_CHUNKS = 1 << 19


def count_lines(lines: Iterable[str]) -> Counter[str]:
    """Counts of the words of some lines; memory grows with the number of different words only.

    Words never span white space, so chunks without white space are counted first, and each different one is divided
    into words once.
    """
    counts: Counter[str] = Counter()
    chunks: Counter[str] = Counter()
    for line in lines:
        chunks.update(line.split())
        if len(chunks) > _MOST_CHUNKS:
            _add_words(counts, chunks)
            chunks.clear()
    _add_words(counts, chunks)
    return counts


def _add_words(counts: Counter[str], chunks: Counter[str]) -> None:
    for chunk, count in chunks.items():
        for word in words_of(chunk):
            counts[word] += count


def write_word_counts(path: str | Path, counts: Mapping[str, int]) -> None:
    """Write counts in the order of the format, so equal counts give equal bytes."""
    with line_writer(path) as stream:
        for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            stream.write(f"{word}\t{count}\n")


def read_word_counts(path: str | Path) -> Iterator[tuple[str, int]]:
    """Yield word and count in the order of the file; ``CorpusError`` names a malformed line."""
    for number, line in enumerate(read_lines(path, "file of word counts"), start=1):
        word, tab, digits = line.rpartition("\t")
        count = whole_number(digits)
        if not (tab and word) or count is None:
            raise CorpusError(
                f"{str(path)!r}: line {number} is not 'word<TAB>count' with a count of at most 18 digits; 'palimpsest "
                "count-words' writes such files"
            )
        yield word, count
