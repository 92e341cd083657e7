"""How a text of a source becomes a sentence of a corpus, or is left out for a reason that is counted.

White space of any kind and control characters become one space; zero-width spaces, soft hyphens and byte order
marks go; characters are composed (NFC); halves of surrogate pairs become U+FFFD. Case and punctuation stay.
"""

import re
import unicodedata
from hashlib import blake2b

from tasks.corpora.settings import CleaningSettings
from tasks.corpora.words import count_words, fold, words_of

EMPTY, TOO_SHORT, TOO_LONG = "empty", "too_short", "too_long"
DUPLICATE, BEYOND_LIMIT = "duplicate", "beyond_limit"
REASONS = (EMPTY, TOO_SHORT, TOO_LONG, DUPLICATE, BEYOND_LIMIT)
"""Why a text is left out."""

# C0 and C1 controls are no white space to ``str.split``, except the ones that end lines or tabulate.
_CONTROLS = {code: " " for code in [*range(0x20), *range(0x7F, 0xA0)]}
_INVISIBLE = dict.fromkeys((0x200B, 0x2060, 0xFEFF, 0x00AD), None)
_SURROGATES = re.compile("[\ud800-\udfff]")
_ASCII_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


def normalise(text: str) -> str:
    """One line of composed characters with single spaces."""
    if not text.isascii():
        text = _SURROGATES.sub("\ufffd", text.translate(_INVISIBLE))
        text = unicodedata.normalize("NFC", text).translate(_CONTROLS)
    elif _ASCII_CONTROLS.search(text):
        text = text.translate(_CONTROLS)
    return " ".join(text.split())


def why_left_out(sentence: str, settings: CleaningSettings) -> str | None:
    """The reason to leave a normalised sentence out, or ``None``."""
    if not sentence:
        return EMPTY
    words = count_words(sentence)
    if words < settings.minimum_words:
        return TOO_SHORT
    if words > settings.maximum_words:
        return TOO_LONG
    return None


def sentence_key(sentence: str) -> bytes:
    """What makes two sentences the same: their folded words in order; without any word, the sentence itself.

    Case and punctuation make no difference, since the language model sees neither. 16 bytes, so that the sentences
    of a large corpus can be told apart in memory.
    """
    key = " ".join(map(fold, words_of(sentence))) or sentence
    return blake2b(key.encode(), digest_size=16).digest()
