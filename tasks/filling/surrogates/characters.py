"""Words in the form of the original, character by character: figures, letters and their case."""

import random
import re
import string
import unicodedata
from collections.abc import Callable

from faker.utils.checksums import calculate_luhn, luhn_checksum

from tasks.corpora.identifiers import is_hexadecimal
from tasks.filling.masked_sentence import same_word
from tasks.filling.surrogates.groups import GROUPS, group_of, no_list
from tasks.made_up.writing import ordinal_ending

_FIGURE = re.compile(r"\d[\d.,:/\-]*[A-Za-z]{0,2}", re.ASCII)
_ORDINAL = re.compile(r"([\d.,]*\d)(st|nd|rd|th)", re.IGNORECASE)
_HALF_OF_DAY = re.compile(r"(?<![^\W\d_])[ap](?=\.?m(?![^\W_]))", re.IGNORECASE)
_LETTERS = re.compile(r"([^\W\d_]+)")
_DOMAIN = re.compile(r"(?:\w+://)?[\w\-]+(?:\.[\w\-]+)*\.[^\W\d_]{2,}(?:[:/].*)?", re.DOTALL)
_BYTE = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_ADDRESS = re.compile(rf"(?<![\w.]){_BYTE}(?:\.{_BYTE}){{3}}(?![\w.])", re.ASCII)
_FEWEST_OF_CARD = 13
_PARTS_OF_LETTERS = ("Mn", "Mc", "Me", "Cf")


def like(original: str, word: str) -> str:
    """The word in the case of the original: all small, all capitals, or with a first capital. AM and PM are always
    capitals, so they do not change the word."""
    letters = [character for character in original if character.isalpha()]
    if not letters or (_HALF_OF_DAY.match(original) and original.isupper()):
        return word
    if all(character.islower() for character in letters):
        return same_word(word, word.lower())
    if len(letters) > 1 and all(character.isupper() for character in letters):
        return same_word(word, word.upper())
    return same_word(word, word[:1].upper() + word[1:]) if letters[0].isupper() else word


def like_each(original: str, word: str) -> str:
    """The word with the original's capitals by position; by ``like`` if the lengths differ."""
    if len(original) != len(word):
        return like(original, word)
    return "".join(new.upper() if old.isupper() else new for old, new in zip(original, word, strict=True))


def other_characters(original: str, random_numbers: random.Random, *, letters: bool) -> str:
    """The word with every figure and numeric sign (``½``) replaced by a random figure. With ``letters``, every letter
    becomes a random ASCII letter of the same case.

    With ``letters``, combining marks and format characters are left out, since they would reveal letters. A first
    figure other than 0 does not become 0. A payment card number still passes its check (Luhn). An IPv4 address remains
    one, and a hexadecimal identifier remains hexadecimal.
    """
    alphabet = "abcdef" if is_hexadecimal(original) else string.ascii_lowercase
    made: list[str] = []
    first = True
    for character in original:
        if is_numeric(character):
            made.append(random_numbers.choice("123456789" if first and character != "0" else string.digits))
            first = False
        elif letters and character.isalpha():
            letter = random_numbers.choice(alphabet)
            made.append(letter.upper() if character.isupper() else letter)
        elif not letters or unicodedata.category(character) not in _PARTS_OF_LETTERS:
            made.append(character)
    if is_card(original):
        figures = [index for index, character in enumerate(made) if character.isdigit()]
        made[figures[-1]] = str(calculate_luhn(int("".join(made[index] for index in figures[:-1]))))
    text = "".join(made)
    return _with_addresses(original, text, random_numbers) if len(text) == len(original) else text


def _with_addresses(original: str, text: str, random_numbers: random.Random) -> str:
    """The text with a random IPv4 address at each of the original's; its numbers have the same lengths."""

    def other(number: str) -> str:
        smallest = 10 ** (len(number) - 1)
        return str(random_numbers.randint(smallest, min(10 * smallest - 1, 255)))

    for address in _ADDRESS.finditer(original):
        numbers = ".".join(map(other, address.group().split(".")))
        text = text[: address.start()] + numbers + text[address.end() :]
    return text


def is_card(text: str) -> bool:
    """Whether the figures of a text pass the check of payment cards (Luhn) and are at least 13."""
    figures = "".join(filter(str.isdecimal, text))
    return len(figures) >= _FEWEST_OF_CARD and luhn_checksum(int(figures)) == 0


def is_numeric(character: str) -> bool:
    """Whether a character is a figure or another numeric sign (``²``, ``½``, ``Ⅷ``), but no letter such as ``五``."""
    return character.isdigit() or (character.isnumeric() and not character.isalpha())


def is_figure(word: str) -> bool:
    """Whether a word is a figure, at most with a short ending (``1,000``, ``5pm``, ``1st``). More letters may be a
    name."""
    return bool(_FIGURE.fullmatch(word)) or not any(map(str.isalpha, word))


def is_domain(word: str) -> bool:
    """Whether a word looks like a domain, with or without a path (``163.com``)."""
    return bool(_DOMAIN.fullmatch(word))


def other_figures(original: str, random_numbers: random.Random) -> str:
    """The word with random figures; an ordinal gets the ending of the new number. Letters other than a short ending are
    drawn too, and a word of a group (``USD500``) becomes another one of the group."""
    if ordinal := _ORDINAL.fullmatch(original):
        number = other_characters(ordinal.group(1), random_numbers, letters=False)
        return number + like(ordinal.group(2), ordinal_ending(number))
    if is_figure(original):
        return other_half_of_day(other_characters(original, random_numbers, letters=False), random_numbers)
    return other_letters(original, random_numbers)


def other_letters(original: str, random_numbers: random.Random) -> str:
    """The text with random letters and figures; a word of a group becomes a random one of the group."""
    return "".join(
        other_of_group(part, random_numbers) or other_characters(part, random_numbers, letters=True)
        for part in _LETTERS.split(original)
    )


def other_of_group(
    original: str, random_numbers: random.Random, on_list: Callable[[str], bool] = no_list
) -> str | None:
    """A random word of the original's group, such as months or number words; ``None`` for a word without a group."""
    group = group_of(original, GROUPS, on_list)
    return like(original, random_numbers.choice(group)) if group else None


def other_half_of_day(text: str, random_numbers: random.Random) -> str:
    """The text with am and pm drawn at random. The original's may be drawn too, so the result reveals nothing."""
    return _HALF_OF_DAY.sub(lambda half: like(half.group(), random_numbers.choice("ap")), text)
