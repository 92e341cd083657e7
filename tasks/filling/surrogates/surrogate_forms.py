"""The form of a surrogate: figures for figures, capitals for capitals, a month for a month.

Everything here looks at one word. Dates, numbers and sums as wholes are in ``surrogate_figures``; what a word means
beyond its form (a name's gender, a place's kind) is in ``surrogate_values``.
"""

import random
import re
import string
import unicodedata
from collections.abc import Callable

from tasks.filling.casing import same_word
from tasks.filling.surrogates.surrogate_groups import GROUPS, group_of, no_list

_FIGURE = re.compile(r"\d[\d.,:/\-]*[A-Za-z]{0,2}", re.ASCII)
_ORDINAL = re.compile(r"([\d.,]*\d)(st|nd|rd|th)", re.IGNORECASE)
_HALF_OF_DAY = re.compile(r"(?<![^\W\d_])[ap](?=\.?m(?![^\W_]))", re.IGNORECASE)
_LETTERS = re.compile(r"([^\W\d_]+)")
_DOMAIN = re.compile(r"(?:\w+://)?[\w\-]+(?:\.[\w\-]+)*\.[^\W\d_]{2,}(?:[:/].*)?", re.DOTALL)
_PARTS_OF_LETTERS = ("Mn", "Mc", "Me", "Cf")


def like(original: str, word: str) -> str:
    """The word in the case of the original: all small, all capitals, or beginning with a capital."""
    letters = [character for character in original if character.isalpha()]
    if not letters:
        return word
    if all(character.islower() for character in letters):
        return same_word(word, word.lower())
    if len(letters) > 1 and all(character.isupper() for character in letters):
        return same_word(word, word.upper())
    return same_word(word, word[:1].upper() + word[1:]) if letters[0].isupper() else word


def like_each(original: str, word: str) -> str:
    """The word with capitals where the original has some; in its case as a whole where they are not equally long."""
    if len(original) != len(word):
        return like(original, word)
    return "".join(new.upper() if old.isupper() else new for old, new in zip(original, word, strict=True))


def other_of_group(
    original: str, random_numbers: random.Random, on_list: Callable[[str], bool] = no_list
) -> str | None:
    """A month for a month, a number word for a number word; ``None`` for a word of no group."""
    group = group_of(original, GROUPS, on_list)
    return like(original, random_numbers.choice(group)) if group else None


def other_characters(original: str, random_numbers: random.Random, *, letters: bool) -> str:
    """A figure for every figure and numeric sign (``½``) and, with ``letters``, an ASCII letter of the same case for
    every letter.

    With ``letters`` combining marks and format characters, which would tell of its letters, are left out. A first
    figure that is not 0 does not become 0. What passes the check of payment cards (Luhn) still does.
    """
    figures = [character for character in original if character.isdecimal()]
    made: list[str] = []
    first = True
    for character in original:
        if is_numeric(character):
            made.append(random_numbers.choice("123456789" if first and character != "0" else string.digits))
            first = False
        elif letters and character.isalpha():
            letter = random_numbers.choice(string.ascii_lowercase)
            made.append(letter.upper() if character.isupper() else letter)
        elif not letters or unicodedata.category(character) not in _PARTS_OF_LETTERS:
            made.append(character)
    if len(figures) >= 13 and _luhn(figures) == 0:
        last = max(index for index, character in enumerate(made) if character.isdigit())
        made[last] = "0"
        made[last] = str(-_luhn([character for character in made if character.isdigit()]) % 10)
    return "".join(made)


def is_numeric(character: str) -> bool:
    """Whether a character is a figure or another numeric sign (``²``, ``½``, ``Ⅷ``), and no letter as ``五`` is."""
    return character.isdigit() or (character.isnumeric() and not character.isalpha())


def is_figure(word: str) -> bool:
    """Whether a word is a figure, with a short ending at most (``1,000``, ``5pm``, ``1st``): other letters may be a
    name."""
    return bool(_FIGURE.fullmatch(word)) or not any(map(str.isalpha, word))


def is_domain(word: str) -> bool:
    """Whether a word looks like a domain, with or without a path (``163.com``)."""
    return bool(_DOMAIN.fullmatch(word))


def other_figures(original: str, random_numbers: random.Random) -> str:
    """A figure for every figure, with the ending of the new one where it is an ordinal; other letters than a short
    ending are drawn too, for words of a group (``USD500``) words of it."""
    if ordinal := _ORDINAL.fullmatch(original):
        number = other_characters(ordinal.group(1), random_numbers, letters=False)
        return number + like(ordinal.group(2), ordinal_ending(number))
    if is_figure(original):
        return other_half_of_day(other_characters(original, random_numbers, letters=False), random_numbers)
    return other_letters(original, random_numbers)


def other_letters(original: str, random_numbers: random.Random) -> str:
    """Letters and figures drawn, for words of a group words of it."""
    return "".join(
        other_of_group(part, random_numbers) or other_characters(part, random_numbers, letters=True)
        for part in _LETTERS.split(original)
    )


def other_half_of_day(text: str, random_numbers: random.Random) -> str:
    """am or pm, where a text has one of them. There are but two: the original's may be drawn too, so that nothing
    follows from what is written."""
    return _HALF_OF_DAY.sub(lambda half: like(half.group(), random_numbers.choice("ap")), text)


def ordinal_ending(number: str) -> str:
    """The ending of a number in figures: the original's would tell the last figure (``1st``)."""
    return "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")


def _luhn(figures: list[str]) -> int:
    doubled = [int(figure) * (2 if place % 2 else 1) for place, figure in enumerate(reversed(figures))]
    return sum(number - 9 * (number > 9) for number in doubled) % 10
