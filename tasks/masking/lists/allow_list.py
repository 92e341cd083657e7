"""The allow list (paper 3.1, ``allowList``): keep the words of a hand-made list of safe common words."""

from pathlib import Path

from tasks.corpora.text_lines import read_lines
from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.masking.lists.kept_words import KeptWords
from tasks.masking.settings import AllowList

SHIPPED_LIST = Path(__file__).parent / "allow_list.txt"
"""5,000 common words without names, places and numbers; ``build_allow_list.py`` makes it."""


def read_word_list(path: str | Path) -> frozenset[str]:
    """The folded words of a list file, one word a line.

    Case, duplicates, blank lines, a byte order mark and white space round a word make no difference. Raises
    ``CorpusError`` where the file is missing, is not UTF-8, or holds no word at all.
    """
    words = frozenset(fold(line.strip()) for line in read_lines(path) if line.strip())
    if not words:
        raise CorpusError(f"word list {str(path)!r} is empty; it needs one word a line")
    return words


def allow_list(settings: AllowList) -> KeptWords:
    """The technique that the settings describe."""
    return KeptWords(read_word_list(settings.path or SHIPPED_LIST), settings.kind)
