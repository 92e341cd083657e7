"""How values are written: figures of a pattern, groups of figures, letters of an address."""

import random
import re
import unicodedata

_LETTERS = str.maketrans({"ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "đ": "d", "ı": "i", "æ": "ae"})


def written(form: str, random_numbers: random.Random) -> str:
    """A form with a random figure for each ``#``, the first not 0, and a capital letter for each ``~``."""
    form = re.sub("#", lambda _: random_numbers.choice("123456789"), form, count=1)
    form = re.sub("#", lambda _: random_numbers.choice("0123456789"), form)
    return re.sub("~", lambda _: random_numbers.choice("ABCDEFGHJKLMNPRSTUVWXYZ"), form)


def ordinal_ending(number: str) -> str:
    """The ordinal ending of a number in figures: ``1st``, ``11th``."""
    return "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")


def ascii_letters(text: str) -> str:
    """The text without accents and without letters beyond ASCII."""
    return unicodedata.normalize("NFD", text).encode("ascii", "ignore").decode()


def plain(name: str) -> str:
    """A name for addresses: lower-case ASCII letters."""
    return re.sub(r"[^a-z]", "", ascii_letters(name.translate(_LETTERS)).lower()) or "user"


def grouped(text: str, lengths: tuple[int, ...], separator: str) -> str:
    """The text in groups of these lengths."""
    groups = []
    for length in lengths:
        groups.append(text[:length])
        text = text[length:]
    return separator.join(filter(None, [*groups, text]))
