"""The format of word lists: one word a line, in any case."""

from dataclasses import dataclass, field
from pathlib import Path

from tasks.corpora.text_lines import read_lines
from tasks.corpora.words import fold, words_of
from tasks.errors import CorpusError

_FEW = 3
"""A file with this many times as many other lines as words is no word list."""


@dataclass(frozen=True)
class WordList:
    """Content of a list file."""

    words: frozenset[str]
    """Folded words."""
    unusable_lines: list[int]
    """Numbers, from 1, of the lines that are not one word each, such as ``New York`` or ``well-known``."""
    by_language: dict[str, set[str]] = field(default_factory=dict)
    """Folded words that are on the list for one language only."""


def read_word_list(path: str | Path, *, empty: bool = False, of_languages: bool = False) -> WordList:
    """Read a list file. ``empty``: it may hold no word; ``of_languages``: a line may be ``word<TAB>language``.

    Case, duplicates, blank lines, a byte order mark and white space around a word make no difference. Raises
    ``CorpusError`` if the file is missing, not UTF-8, empty, or has hardly a line of one word, such as a text.
    """
    words: set[str] = set()
    by_language: dict[str, set[str]] = {}
    unusable_lines = []
    for number, line in enumerate(read_lines(path, "word list"), start=1):
        entry, language = line.strip(), ""
        if of_languages and len(pair := entry.split("\t")) == 2 and pair[1].replace("-", "").isalpha():
            entry, language = pair
        if entry and words_of(entry) == [entry]:
            (by_language.setdefault(language, set()) if language else words).add(fold(entry))
        elif entry:
            unusable_lines.append(number)
    if len(unusable_lines) > _FEW * len(words):
        raise CorpusError(
            f"{str(path)!r} is no word list: {len(unusable_lines):,} of its lines are not one word each, the first of "
            f"them line {unusable_lines[0]}; give a file with one word a line"
        )
    if not words and not empty:
        raise CorpusError(f"word list {str(path)!r} is empty; it needs one word a line")
    return WordList(frozenset(words), unusable_lines, by_language)
