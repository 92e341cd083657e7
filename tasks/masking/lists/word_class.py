"""The class of a word by its shape alone, for techniques that know no more than that it is private."""

import re

from tasks.corpora.masked_text import MASK

_CONTACT = re.compile(r"@|://|^www\.|[^\W\d_]\.(?:com|org|net|edu|gov|io|co|info)\b", re.IGNORECASE)
_NUMBER = re.compile(r"^[\d.,:/\-]*\d[\d.,:/\-]*(?:st|nd|rd|th|k|m|bn|am|pm|s|h|x)?$", re.IGNORECASE)


def word_class(word: str) -> str:
    """``NUMBER`` for digits, also with an ending (``5pm``, ``1st``), ``CONTACT`` for addresses, URLs and handles,
    ``MASK`` (unknown) for the rest."""
    if word.isalpha():
        return MASK
    if _NUMBER.match(word):
        return "NUMBER"
    if _CONTACT.search(word):
        return "CONTACT"
    return MASK
