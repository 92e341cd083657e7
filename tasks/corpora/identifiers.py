"""Identifiers by their form: hexadecimal ones of machines and keys, account numbers with check digits, file numbers."""

import re
from collections.abc import Iterator

_GROUP = "[0-9a-f]{1,4}"
HEXADECIMAL = "|".join(
    (
        r"(?<!\w)[0-9a-f]{4,12}(?:-[0-9a-f]{4,12}){2,}(?!\w)",
        r"(?<!\w)[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,}(?!\w)",
        r"(?<!\w)[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(?!\w)",
        # Slices and the like (``1::2``) have no group of three digits.
        rf"(?<![\w:])(?=[0-9a-f:]{{0,30}}?[0-9a-f]{{3}})(?:{_GROUP}(?::{_GROUP}){{7}}|{_GROUP}(?::{_GROUP}){{0,6}}::"
        rf"{_GROUP}(?::{_GROUP}){{0,6}}|{_GROUP}(?::{_GROUP}){{1,6}}::|::{_GROUP}(?::{_GROUP}){{1,6}})"
        r"(?:\.\d{1,3}){0,3}(?:%\w+)?(?!\w)",
    )
)
"""Pattern of UUIDs, keys in groups of four digits or more, MAC addresses, and IPv6 addresses."""
_HEXADECIMAL = re.compile(HEXADECIMAL, re.IGNORECASE)
_LETTER = re.compile("[^\\W\\d_]")
_ACCOUNT = re.compile(
    r"(?<!\w)[a-z]{2}\d{2}(?:[ -]?[a-z0-9]{4}){2,7}(?:[ -]?[a-z0-9]{1,3})?(?!\w)", re.IGNORECASE | re.ASCII
)
_FEWEST_OF_ACCOUNT = 15
_FILE_NUMBER = re.compile(r"(?<![\w/.\-])(?!(?:19|20)\d\d/)\d{3,6}/\d{2}(?:\d\d)?(?![\w/]|[.\-]\d)")
"""A number and a year, as courts and offices number their files: ``8374/03``. Two years (``2018/19``) are a season."""


def is_hexadecimal(word: str) -> bool:
    """Whether a word is a hexadecimal identifier with a letter."""
    return bool(_HEXADECIMAL.fullmatch(word) and _LETTER.search(word))


def identifiers_in(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of hexadecimal identifiers with a letter, IBANs with right check digits, and file numbers."""
    for match in _FILE_NUMBER.finditer(text):
        yield match.span()
    for match in _HEXADECIMAL.finditer(text):
        if _LETTER.search(match.group()):
            yield match.span()
    for match in _ACCOUNT.finditer(text):
        written = match.group()
        while len(number := re.sub("[ -]", "", written)) >= _FEWEST_OF_ACCOUNT:
            if _check_digits_hold(number):
                yield match.start(), match.start() + len(written)
                break
            # A short word after an account in groups of four looks like its last group.
            shorter = re.match(r"(.*)[ -]", written)
            if shorter is None:
                break
            written = shorter.group(1)


def _check_digits_hold(number: str) -> bool:
    """Whether an account number has right check digits by ISO 13616."""
    return int("".join(str(int(character, 36)) for character in number[4:] + number[:4])) % 97 == 1
