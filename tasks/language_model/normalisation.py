"""Normalisation of text into words, for language models and for a recogniser's references.

Text is lower-cased. Punctuation and symbols separate words and are dropped. Apostrophes inside a word remain; curly
ones become straight. Hyphenated words are split, and digits are unchanged. Text is first converted to Unicode form
NFKC, so full-width letters and ligatures equal plain ones. So do other signs for letters
(``tasks.corpora.plain_text``). ``NORMALISATION`` names these rules in a signature.
"""

import re
import unicodedata

from tasks.corpora.masked_text import Marker, parse_masked
from tasks.corpora.plain_text import plain

NORMALISATION = "v1"
"""Version of the rules. It changes with the definition of a word, so that numbers are not compared across versions."""

_SEPARATING_CATEGORIES = ("P", "S", "Z", "C")
_ZERO_WIDTH_SPACE = "\u200b"
_APOSTROPHES = "'\u2019\u2018\u201b\u02bc\u00b4`\uff07\u2032"
_ATTACHED_AFTER = re.compile(r"'?\w+(?:'\w+)*")
_ATTACHED_BEFORE = re.compile(r"\w+(?:'\w+)*'?$")


class _CharacterTable(dict[int, str]):
    """Maps a character's code to its replacement in a word; filled on demand."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if character == "'":
            replacement = character
        elif category == "Cf" and character != _ZERO_WIDTH_SPACE:
            replacement = ""  # soft hyphens, joiners and direction marks are invisible inside a word
        elif category[0] in _SEPARATING_CATEGORIES:
            replacement = " "
        else:
            replacement = character
        self[code] = replacement
        return replacement


_CHARACTERS = _CharacterTable()
_TO_APOSTROPHE = dict.fromkeys(map(ord, _APOSTROPHES), "'")


def normalise(text: str) -> list[str]:
    """The words of a text, in order; an empty list where it has none.

    ``normalise(" ".join(normalise(text))) == normalise(text)`` for every text.
    """
    text = fold_characters(text)
    if "'" not in text and text.isascii():
        return text.split()
    words = []
    for word in text.replace("''", " ").split():
        word = word.strip("'")
        if is_word(word):
            words.append(word)
    return words


def fold_characters(text: str) -> str:
    """The text in lower case and Unicode form NFKC; blanks replace all that separates words, not apostrophes."""
    text = text.translate(_TO_APOSTROPHE)
    if text.isascii():
        text = text.lower()
    else:
        text = plain(text)
        # Lower-casing can leave a form that is not composed (the dotted capital I).
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower()).translate(_TO_APOSTROPHE)
    return text.translate(_CHARACTERS)


def is_word(word: str) -> bool:
    """Whether a stretch without blanks is a word; a combining mark without a letter is none."""
    return bool(word) and (word.isascii() or any(character.isalnum() for character in word))


def normalise_masked(line: str) -> list[str]:
    """The words and markers of a masked line, in order; a marker is one entry, such as ``[MASK]``, without its
    language.

    Letters that touch a marker (the ``'s`` of ``[PERSON]'s``) belong to the masked word and are dropped, so a masked
    word is one entry, as in the raw text. A literal ``[MASK]`` of the user's, escaped in the masked line, is the
    ordinary word ``mask``.
    """
    pieces = parse_masked(line)
    entries: list[str] = []
    for index, piece in enumerate(pieces):
        if isinstance(piece, Marker):
            entries.append(str(Marker(piece.label)))
            continue
        text = piece.translate(_TO_APOSTROPHE)
        if index > 0:
            attached = _ATTACHED_AFTER.match(text)
            text = text[attached.end() :] if attached else text
        if index + 1 < len(pieces):
            text = _ATTACHED_BEFORE.sub("", text)
        entries += normalise(text)
    return entries
