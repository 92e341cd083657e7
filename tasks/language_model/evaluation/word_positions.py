"""Where the words of a language model stand in the raw line.

Normalisation divides words that masking takes as one (``555-1234``) and joins what masking divides (``Tom's``), and it
can change the number of characters. What was masked is known by characters of the raw line, so the two meet there.
"""

import re
from dataclasses import dataclass

from tasks.language_model.normalisation import fold_characters, is_word

_STRETCH = re.compile(r"\s+|\S+")
_WORD = re.compile("[^ ]+")


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """A normalised word and the characters of the raw line that it was made of."""

    word: str
    start: int
    """First character, counted from 0."""
    end: int
    """One past the last character."""


def placed_words(line: str) -> list[PlacedWord]:
    """The words of ``normalise(line)``, the same in the same order, each with its place in ``line``."""
    folded, starts, ends = _folded(line)
    # As in ``normalise``, two apostrophes separate words; the blank is doubled so that places stay.
    spaced = folded.replace("''", "  ")
    words = []
    for match in _WORD.finditer(spaced):
        stretch = match.group()
        first = match.start() + len(stretch) - len(stretch.lstrip("'"))
        word = stretch.strip("'")
        if is_word(word):
            words.append(PlacedWord(word, starts[first], ends[first + len(word) - 1]))
    return words


def _folded(line: str) -> tuple[str, list[int], list[int]]:
    """The folded line, and for each of its characters the start and end of what it was made of in ``line``."""
    if line.isascii():
        places = list(range(len(line) + 1))
        return fold_characters(line), places[:-1], places[1:]
    text, starts, ends = [], [], []
    for stretch in _STRETCH.finditer(line):
        position = stretch.start()
        for raw, folded in _pieces(stretch.group()):
            text.append(folded)
            starts += [position] * len(folded)
            ends += [position + len(raw)] * len(folded)
            position += len(raw)
    return "".join(text), starts, ends


def _pieces(stretch: str) -> list[tuple[str, str]]:
    """A stretch in raw pieces and what each becomes: single characters as far as they fold by themselves.

    White space never changes what stands beside it, so a line folds stretch by stretch. Where the pieces together are
    not what the whole becomes, the whole is one piece.
    """
    if stretch.isascii():
        return [(character, fold_characters(character)) for character in stretch]
    whole = fold_characters(stretch)
    pieces: list[tuple[str, str]] = []
    for character in stretch:
        alone = fold_characters(character)
        if pieces:
            raw, folded = pieces[-1]
            together = fold_characters(raw + character)
            if together != folded + alone:
                pieces[-1] = (raw + character, together)
                continue
        pieces.append((character, alone))
    joined = "".join(folded for _, folded in pieces)
    if len(joined) == len(whole):
        # A sigma at the end of a word has a form of its own: one character either way.
        parts, place = [], 0
        for raw, folded in pieces:
            parts.append((raw, whole[place : place + len(folded)]))
            place += len(folded)
        if joined.replace("ς", "σ") == whole.replace("ς", "σ"):
            return parts
    return [(stretch, whole)]
