"""The word vocabulary of a language model: special tokens, markers, and the words of generic text by frequency.

The file has one token a line; a token's id is its line number minus one. The vocabulary is built on generic text alone,
so it holds no word that occurs only in a private corpus.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tasks.corpora.masked_text import CLASSES, MASK, Marker
from tasks.corpora.text_lines import read_lines
from tasks.corpora.word_counts import read_word_counts
from tasks.errors import CorpusError, ModelError, ParameterError
from tasks.files.atomic_file import atomic_writer
from tasks.language_model.normalisation import normalise

PADDING, UNKNOWN, SENTENCE_START, SENTENCE_END = "<pad>", "<unk>", "<s>", "</s>"
MARKERS = tuple(str(Marker(label)) for label in CLASSES)
SPECIAL_TOKENS = (PADDING, UNKNOWN, SENTENCE_START, SENTENCE_END, *MARKERS)
"""First tokens of every vocabulary. No word equals one of them, since words hold no brackets."""
PADDING_ID, UNKNOWN_ID, START_ID, END_ID = range(4)
MASK_ID = SPECIAL_TOKENS.index(str(Marker(MASK)))


class Vocabulary:
    """Tokens by id and ids by token; ``hash`` identifies it."""

    is_open = False
    """Whether it takes up every word that it meets, so that none is unknown."""

    def __init__(self, tokens: Iterable[str]):
        self.tokens = tuple(tokens)
        self.ids = {token: index for index, token in enumerate(self.tokens)}
        self.hash = hashlib.sha256(_as_text(self.tokens).encode()).hexdigest()

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, words: Iterable[str]) -> list[int]:
        """Ids of words and markers; a word outside the vocabulary becomes ``<unk>``."""
        get = self.ids.get
        return [get(word, UNKNOWN_ID) for word in words]

    def write(self, path: str | Path, *, private: bool = False) -> None:
        """Write the vocabulary file."""
        with atomic_writer(path, private=private) as stream:
            stream.write(_as_text(self.tokens))


def _as_text(tokens: tuple[str, ...]) -> str:
    return "\n".join(tokens) + "\n"


def counts_of_words(path: str | Path) -> Counter[str]:
    """Count each normalised word of a text, given its word counts (``tasks.corpora.word_counts``)."""
    counts: Counter[str] = Counter()
    for word, count in read_word_counts(path):
        for normalised in normalise(word):
            counts[normalised] += count
    if not counts:
        raise CorpusError(f"word counts {str(path)!r} hold no word; a vocabulary needs generic text")
    return counts


def build_vocabulary(counts: Counter[str], size: int, minimum_count: int) -> Vocabulary:
    """The special tokens and the most frequent words, ``size`` tokens in all; ties are in code-point order.

    Raises ``ParameterError`` where ``size`` leaves no room for a word, or no word is frequent enough.
    """
    room = size - len(SPECIAL_TOKENS)
    if room < 1:
        raise ParameterError(
            f"vocabulary size {size!r} leaves no room for words: {len(SPECIAL_TOKENS)} special tokens come first; "
            f"give {len(SPECIAL_TOKENS) + 1} or more"
        )
    frequent = [(word, count) for word, count in counts.items() if count >= minimum_count]
    if not frequent:
        raise ParameterError(
            f"vocabulary minimum_count {minimum_count!r} leaves no word: the most frequent one occurs "
            f"{max(counts.values())} times; give a smaller minimum_count or more text"
        )
    frequent.sort(key=lambda item: (-item[1], item[0]))
    return Vocabulary((*SPECIAL_TOKENS, *(word for word, _ in frequent[:room])))


def read_vocabulary(path: str | Path) -> Vocabulary:
    """Read a vocabulary file; raises ``ModelError`` where it is missing or is not a vocabulary."""
    if not Path(path).is_file():
        raise ModelError(f"vocabulary {str(path)!r} does not exist; 'palimpsest vocabulary' makes one")
    tokens = list(read_lines(path))
    if tuple(tokens[: len(SPECIAL_TOKENS)]) != SPECIAL_TOKENS:
        raise ModelError(
            f"vocabulary {str(path)!r} does not begin with the {len(SPECIAL_TOKENS)} special tokens "
            f"({', '.join(SPECIAL_TOKENS[:5])}, ...); make it with 'palimpsest vocabulary'"
        )
    return Vocabulary(tokens)
