"""The indefinite article before a value that was filled in: "a Dane", "an Austrian", "an 18-year-old"."""

import re
import unicodedata

ARTICLE = re.compile(r"(?<![\w'’])([Aa])n?( )$")
"""An article at the end of the text before a slot."""

_VOWEL_LETTER_NAMES = frozenset("AEFHILMNORSX")
_SOUNDS_LIKE_A_CONSONANT = re.compile(r"(?:uni(?!n|m)|us[aeiu]|ukr|uru|ut[eo]|uga|eu|ewe|one\b|once\b)", re.I)
_SOUNDS_LIKE_A_VOWEL = re.compile(r"(?:hour|honou?r|honest|heir)", re.IGNORECASE)
_SPELT_OUT = re.compile(r"[A-Z](?![a-zà-ÿ])")


def article_for(value: str) -> str:
    """``"a"`` or ``"an"`` by the sound: "a European", "an hour", "an MBA", "an 8", "an 11", "a 1"."""
    word = value.lstrip("\"'“‘(#@$€£ ")
    if not word:
        return "a"
    number = re.match(r"\d+", word)
    if number:
        digits = number.group()
        return "an" if digits[0] == "8" or digits in ("11", "18") else "a"
    if _SPELT_OUT.match(word) and not word[1:2].isspace() and (len(word) == 1 or not word.isupper() or len(word) <= 4):
        return "an" if word[0] in _VOWEL_LETTER_NAMES else "a"
    if _SOUNDS_LIKE_A_VOWEL.match(word):
        return "an"
    if _SOUNDS_LIKE_A_CONSONANT.match(word):
        return "a"
    # Accents are ignored: "an Élysée".
    return "an" if unicodedata.normalize("NFD", word)[0].lower() in "aeiou" else "a"


def agree(text: str, value: str) -> str:
    """The text before a value; if its last word is an article, it agrees with the value."""
    return ARTICLE.sub(lambda match: match[1] + ("n" if article_for(value) == "an" else "") + match[2], text)
