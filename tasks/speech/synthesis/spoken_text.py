"""What is spoken of a sentence: its words as the language model and the references have them, and its pauses."""

import unicodedata

from tasks.language_model.normalisation import normalise

DIGITS = "digits"
NO_WORDS = "no_words"
OTHER_SCRIPT = "other_script"
TOO_SHORT = "too_short"
TOO_LONG = "too_long"

_PAUSES = ",.;:?!"
_CLOSING = "\"'”’)]}»"


def why_not_spoken(text: str, minimum_words: int, maximum_words: int) -> str | None:
    """The reason why a sentence cannot have a reference recording, or ``None``.

    ``digits``: how a number is read is open, and the reference would not say it. ``other_script``: letters that are
    not Latin, which an English voice spells out.
    """
    words = normalise(text)
    if not words:
        return NO_WORDS
    if any(character.isnumeric() for character in text):
        return DIGITS
    if any(not _is_latin(character) for word in words for character in word):
        return OTHER_SCRIPT
    if len(words) < minimum_words:
        return TOO_SHORT
    return TOO_LONG if len(words) > maximum_words else None


def spoken_text(text: str) -> str:
    """The normalised words with the marks that make pauses and tunes behind them.

    So the recording says what the reference says: a synthesiser reads ``&`` and ``%`` out, spells words in capitals
    and reads some marks aloud, and the reference has none of that.
    """
    parts = []
    for token in text.split():
        words = normalise(token)
        mark = token.rstrip(_CLOSING)[-1:]
        if words:
            parts.append(" ".join(words) + (mark if mark in _PAUSES else ""))
        elif parts and token in ("-", "–", "—"):
            parts[-1] = parts[-1].rstrip(_PAUSES) + ","
    spoken = " ".join(parts)
    words = normalise(text)
    return spoken if normalise(spoken) == words else " ".join(words)


def _is_latin(character: str) -> bool:
    return character.isascii() or unicodedata.name(character, "").startswith(("LATIN", "COMBINING"))
