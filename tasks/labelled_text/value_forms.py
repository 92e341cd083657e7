"""The form of a corpus value: which kind of slot makes values of the same form.

Forms are one word or several, capitals or small letters, a hashtag, the name of a country or of a street. A template
learned from a sentence is then filled with values that fit there.
"""

import re
from collections.abc import Mapping
from functools import cache

from tasks.labelled_text.slots import SLOT_LABELS
from tasks.made_up.pools import (
    LOCALE_WEIGHTS,
    cities,
    first_names,
    last_names,
    shipped_values,
    shipped_words,
    states,
    without_article,
)


def _words(listed: str, end: str = "") -> re.Pattern[str]:
    return re.compile(rf"\b(?:{listed})\b{end}", re.IGNORECASE)


_FEMALE = _words("she|hers|herself|mrs|ms|miss")
_MALE = _words("he|him|his|himself|mr")
_SPORTS = _words(
    "game|games|win|wins|won|beat|vs|match|season|coach|league|score|goals?|fans?|football|soccer|baseball|cup|"
    "play|plays|playing|player|playoffs|defense|stadium|team"
)
_FACILITY = _words(
    "airport|station|stadium|park|bridge|hall|hotel|museum|tower|mall|theat(?:er|re)|cent(?:er|re)|building|arena|"
    "square|plaza|club|casino|highway|beach|zoo|cathedral"
)
_LOCATIONS = {
    "STREET": _words("st|street|ave|avenue|rd|road|blvd|boulevard|lane|ln|drive|dr", r"\.?$"),
    "FACILITY": _FACILITY,
    "REGION": _words("river|lake|mount|mt|mountains?|island|islands|sea|ocean|valley|county|coast|bay|hills"),
}
_ORGANISATIONS = {
    "UNIVERSITY": _words("university|college|institute of technology|universität"),
    "HOSPITAL": _words("hospital|clinic|medical"),
    "SCHOOL": _words("school|academy|elementary"),
}
_DATES = {
    "YEAR": re.compile(r"\A(?:(?:1[5-9]|20)\d\d|(?:the )?(?:\d\d)?\d0'?s)\Z"),
    "WEEKDAY": re.compile(rf"\A(?:{'|'.join(shipped_words()['weekday'])})s?\Z", re.IGNORECASE),
    "MONTH": re.compile(rf"\A(?:{'|'.join(shipped_words()['month'])})\Z", re.IGNORECASE),
    "TIME": re.compile(r"\d\s*(?:am|pm|a\.m\.|p\.m\.)|\d:\d\d|o'?clock|\bnoon\b|\bmidnight\b", re.IGNORECASE),
    "DATE": re.compile(r"\d"),
}
"""Patterns by kind, in the order of the tries."""
_ADDRESS_TITLE = re.compile(r"(?:mr|mrs|ms|miss|dr|prof|sir|madam)\.?", re.IGNORECASE)
_OWN_CASE = ("EMAIL_ADDRESS", "URL", "USER_NAME", "IBAN", "LICENCE_PLATE", "PASSPORT_NUMBER", "TIME")
"""Labels whose values always have their own case, for any case of the original."""
_COUNTED = ("COMPANY", "ORGANISATION", "WORK", "PRODUCT", "TEAM", "BAND", "CITY")
"""Kinds whose values get as many words as the original, up to three."""
_PERSONS = ("PERSON", "PERSON_FEMALE", "PERSON_MALE", "FULL_NAME", "FIRST_NAME", "LAST_NAME")


def slot_for(kind: str, original: str, rest: str) -> tuple[str, tuple[str, ...]]:
    """The kind of slot and modifiers that make values of the original's form; ``rest``: text around it."""
    modifiers: list[str] = []
    hashtag = original.startswith("#") and len(original) > 1
    words = len(original.split())
    if kind in _PERSONS:
        kind, counted = _person_kind(original, rest)
        counted = counted and words <= 3
    else:
        kind = _kind_of_thing(kind, original, rest)
        counted = kind in _COUNTED and words <= 3 and not hashtag
    if counted:
        modifiers.append(f"words={words}")
    if hashtag:
        modifiers.append("hashtag")
    label = SLOT_LABELS[kind]
    letters = "".join(filter(str.isalpha, original))
    if letters and label is not None and label not in _OWN_CASE:
        if original == original.lower():
            modifiers.append("lower")
        elif len(letters) > 4 and original == original.upper():
            modifiers.append("upper")
    return kind, tuple(modifiers)


def _kind_of_thing(kind: str, original: str, rest: str) -> str:
    match kind:
        case "LOCATION" | "CITY":
            return _location_kind(original)
        case "GROUP_NAME":
            teams = {without_article(row[0]).casefold() for row in shipped_values("teams")}
            return "TEAM" if original.casefold() in teams or _SPORTS.search(rest) else "BAND"
        case "ORGANISATION":
            return _first_form(_ORGANISATIONS, original, "ORGANISATION")
        case "POSITION":
            return "TITLE" if _ADDRESS_TITLE.fullmatch(original) else "JOB"
        case "NATIONALITY":
            by_ending = "NATIONALITY_PEOPLE" if original.endswith(("s", "S")) else "NATIONALITY"
            return _known_peoples().get(original.casefold(), by_ending)
        case "DATE":
            return _first_form(_DATES, original, "WHEN")
        case "STREET_ADDRESS":
            return _address_kind(original)
    return kind


def _first_form(forms: Mapping[str, re.Pattern[str]], original: str, other: str) -> str:
    return next((kind for kind, form in forms.items() if form.search(original)), other)


def _person_kind(original: str, rest: str) -> tuple[str, bool]:
    """A kind of name, and whether the number of words must be the same."""
    words = original.replace(" . ", ". ").split()
    if original.startswith("@"):
        return "USER_NAME", False
    if len(words) > 2:
        return ("NAME_OF_THREE" if len(words) == 3 else "PERSON"), len(words) == 3
    # Pronouns near a name may show a gender; words for relatives do not.
    female, male = bool(_FEMALE.search(rest)), bool(_MALE.search(rest))
    gender = "" if female == male else "_FEMALE" if female else "_MALE"
    if len(words) == 2:
        reverses = words[0].endswith(",") and words[1].isalpha()
        return ("FULL_NAME_REVERSED" if reverses else f"FULL_NAME{gender}"), True
    if any(character.isdigit() or character == "_" for character in original):
        return "USER_NAME_PLAIN", False
    # A word that is no known name is a first name in two of three sentences of chat.
    first, last = _known_names()
    name = original.casefold()
    return ("LAST_NAME" if name in last - first else f"FIRST_NAME{gender}"), True


@cache
def _known_names() -> tuple[set[str], set[str]]:
    """Case-folded first names, and last names."""
    both = [(locale, female) for locale in LOCALE_WEIGHTS for female in (True, False)]
    first = {name.casefold() for locale, female in both for name in first_names(locale, female=female)}
    return first, {name.casefold() for locale, female in both for name in last_names(locale, female=female)}


@cache
def _known_places() -> Mapping[str, str]:
    """Kinds by case-folded name; the last kind of a name wins."""
    places = {name.casefold(): "CITY" for name in cities()}
    places |= {without_article(row[0]).casefold(): "REGION" for row in shipped_values("regions")}
    places |= {name.casefold(): "STATE" for name, _ in states()}
    return places | {without_article(row[0]).casefold(): "COUNTRY" for row in shipped_values("nationalities")}


@cache
def _known_peoples() -> Mapping[str, str]:
    """Kinds by case-folded word; the last kind of a word wins."""
    nations = ((0, "COUNTRY"), (3, "NATIONALITY_PERSON"), (2, "NATIONALITY_PEOPLE"), (1, "NATIONALITY"))
    found: dict[str, str] = {}
    for column, kind in ((2, "BELIEF_PERSON"), (1, "BELIEF_PEOPLE"), (0, "BELIEF")):
        found |= {row[column].casefold(): kind for row in shipped_values("beliefs")}
    for column, kind in nations:
        found |= {row[column].casefold(): kind for row in shipped_values("nationalities")}
    return found


def _location_kind(original: str) -> str:
    name = without_article(original.removeprefix("#").replace("The ", "the ", 1))
    if name in dict(states()).values():
        return "STATE_CODE"
    if known := _known_places().get(name.casefold()):
        return known
    if any(map(str.isdigit, name)) and " " in name:
        return "FACILITY" if _FACILITY.search(name) else "STREET_ADDRESS"
    return _first_form(_LOCATIONS, name, "CITY")


def _address_kind(original: str) -> str:
    if re.fullmatch(r"[\d -]+", original):
        return "ZIP_CODE"
    if not any(map(str.isdigit, original)):
        return "STREET"
    return "FULL_ADDRESS" if "\n" in original or original.count(",") > 1 else "STREET_ADDRESS"
