"""The form of a corpus value: which kind of slot makes values of the same form.

Forms are one word or several, capitals or small letters, a hashtag, the name of a country or of a street. A template
learned from a sentence is then filled with values that fit there.
"""

import re
from collections.abc import Mapping
from functools import cache

from tasks.labelled_text.slots import SLOT_KINDS
from tasks.labelled_text.value_pools import LOCALE_WEIGHTS, cities, first_names, last_names, shipped_values, states

_FEMALE = re.compile(r"\b(?:she|hers|herself|mrs|ms|miss)\b", re.I)
_MALE = re.compile(r"\b(?:he|him|his|himself|mr)\b", re.I)
_SPORTS = re.compile(
    r"\b(?:game|games|win|wins|won|beat|vs|match|season|coach|league|score|goals?|fans?|football|soccer|baseball|cup|"
    r"play|plays|playing|player|playoffs|defense|stadium|team)\b",
    re.I,
)
_FACILITY = re.compile(
    r"\b(?:airport|station|stadium|park|bridge|hall|hotel|museum|tower|mall|theat(?:er|re)|cent(?:er|re)|building|arena|"
    r"square|plaza|club|casino|highway|beach|zoo|cathedral)\b",
    re.I,
)
_STREET = re.compile(r"\b(?:st|street|ave|avenue|rd|road|blvd|boulevard|lane|ln|drive|dr)\b\.?$", re.I)
_REGION = re.compile(
    r"\b(?:river|lake|mount|mt|mountains?|island|islands|sea|ocean|valley|county|coast|bay|hills)\b", re.I
)
_UNIVERSITY = re.compile(r"\b(?:university|college|institute of technology|universität)\b", re.I)
_SCHOOL = re.compile(r"\b(?:school|academy|elementary)\b", re.I)
_HOSPITAL = re.compile(r"\b(?:hospital|clinic|medical)\b", re.I)
_CLOCK = re.compile(r"\d\s*(?:am|pm|a\.m\.|p\.m\.)|\d:\d\d|o'?clock|\bnoon\b|\bmidnight\b", re.I)
_WEEKDAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?", re.I)
_MONTH = re.compile(r"(?:january|february|march|april|may|june|july|august|september|october|november|december)", re.I)
_ADDRESS_TITLE = re.compile(r"(?:mr|mrs|ms|miss|dr|prof|sir|madam)\.?", re.I)
_FORM_OF_THEIR_OWN = ("EMAIL_ADDRESS", "URL", "USER_NAME", "IBAN", "LICENCE_PLATE", "PASSPORT_NUMBER", "TIME")
"""Labels whose values always have their own case, for any case of the original."""


def slot_for(kind: str, original: str, rest: str) -> tuple[str, tuple[str, ...]]:
    """The kind of slot and modifiers that make values of the original's form; ``rest``: text around it."""
    modifiers: list[str] = []
    hashtag = original.startswith("#") and len(original) > 1
    words = len(original.split())
    match kind:
        case "PERSON" | "PERSON_FEMALE" | "PERSON_MALE" | "FULL_NAME" | "FIRST_NAME" | "LAST_NAME":
            if original.startswith("@"):
                return "USER_NAME", ()
            kind, counted = _person_kind(kind, original, rest)
            if counted:
                modifiers.append(f"words={words}")
        case "LOCATION" | "CITY":
            kind = _location_kind(original)
        case "GROUP_NAME":
            known = {row[0].removeprefix("the ").casefold() for row in shipped_values("teams")}
            kind = "TEAM" if original.casefold() in known or _SPORTS.search(rest) else "BAND"
        case "ORGANISATION":
            if _UNIVERSITY.search(original):
                kind = "UNIVERSITY"
            elif _HOSPITAL.search(original):
                kind = "HOSPITAL"
            elif _SCHOOL.search(original):
                kind = "SCHOOL"
        case "POSITION":
            kind = "TITLE" if _ADDRESS_TITLE.fullmatch(original) else "JOB"
            return kind, ()
        case "NATIONALITY":
            kind = _nationality_kind(original)
        case "DATE":
            kind = _date_kind(original)
        case "STREET_ADDRESS":
            kind = _address_kind(original)
    if kind in ("COMPANY", "ORGANISATION", "WORK", "PRODUCT", "TEAM", "BAND", "CITY") and words <= 3 and not hashtag:
        modifiers.append(f"words={words}")
    letters = [character for character in original if character.isalpha()]
    label = SLOT_KINDS[kind].label
    if hashtag:
        modifiers.append("hashtag")
    if letters and label not in _FORM_OF_THEIR_OWN:
        if original == original.lower():
            modifiers.append("lower")
        elif len(letters) > 4 and original == original.upper():
            modifiers.append("upper")
    return kind, tuple(modifiers)


def _person_kind(kind: str, original: str, rest: str) -> tuple[str, bool]:
    """A kind of name, and whether the number of words must be the same."""
    words = original.replace(" . ", ". ").split()
    if len(words) == 1:
        if any(character.isdigit() or character == "_" for character in original):
            return "USER_NAME_PLAIN", False
        name = original.casefold()
        first, last = _known_names()
        # A word that is no known name is a first name in two of three sentences of chat.
        return ("LAST_NAME" if name in last and name not in first else "FIRST_NAME" + _gender(name, rest)), True
    if len(words) == 2:
        if words[0].endswith(",") and words[1].isalpha():
            return "FULL_NAME_REVERSED", True
        return "FULL_NAME" + _gender(words[0].casefold(), rest), True
    return ("NAME_OF_THREE" if len(words) == 3 else "PERSON"), len(words) == 3


def _gender(first_name: str, rest: str) -> str:
    """The ending of a kind if pronouns near a name show a gender; words for relatives do not show it."""
    female, male = bool(_FEMALE.search(rest)), bool(_MALE.search(rest))
    if female == male:
        return ""
    return "_FEMALE" if female else "_MALE"


@cache
def _known_names() -> tuple[frozenset[str], frozenset[str]]:
    both = [(locale, female) for locale in LOCALE_WEIGHTS for female in (True, False)]
    first = {name for locale, female in both for name in first_names(locale, female=female)}
    last = {name for locale, female in both for name in last_names(locale, female=female)}
    return frozenset(map(str.casefold, first)), frozenset(map(str.casefold, last))


@cache
def _known_places() -> Mapping[str, str]:
    """Kinds by case-folded name; the last kind of a name wins."""
    places = {name.casefold(): "CITY" for name in cities()}
    places |= {row[0].removeprefix("the ").casefold(): "REGION" for row in shipped_values("regions")}
    places |= {name.casefold(): "STATE" for name, _ in states()}
    places |= {row[0].removeprefix("the ").casefold(): "COUNTRY" for row in shipped_values("nationalities")}
    return places


def _location_kind(original: str) -> str:
    name = original.removeprefix("#").removeprefix("the ").removeprefix("The ")
    codes = {code for _, code in states()}
    if name in codes:
        return "STATE_CODE"
    known = _known_places().get(name.casefold())
    if known:
        return known
    if any(map(str.isdigit, name)) and len(name.split()) > 1:
        return "STREET_ADDRESS" if not _FACILITY.search(name) else "FACILITY"
    for kind, form in (("STREET", _STREET), ("FACILITY", _FACILITY), ("REGION", _REGION)):
        if form.search(name):
            return kind
    return "CITY"


def _nationality_kind(original: str) -> str:
    name = original.casefold()
    rows, beliefs = shipped_values("nationalities"), shipped_values("beliefs")
    for table, kinds in (
        (rows, ((1, "NATIONALITY"), (2, "NATIONALITY_PEOPLE"), (3, "NATIONALITY_PERSON"), (0, "COUNTRY"))),
        (beliefs, ((0, "BELIEF"), (1, "BELIEF_PEOPLE"), (2, "BELIEF_PERSON"))),
    ):
        for column, kind in kinds:
            if any(row[column].casefold() == name for row in table):
                return kind
    return "NATIONALITY_PEOPLE" if name.endswith("s") else "NATIONALITY"


def _date_kind(original: str) -> str:
    if re.fullmatch(r"(?:1[5-9]|20)\d\d", original) or re.fullmatch(r"(?:the )?(?:\d\d)?\d0'?s", original):
        return "YEAR"
    for kind, form in (("WEEKDAY", _WEEKDAY), ("MONTH", _MONTH)):
        if form.fullmatch(original):
            return kind
    if _CLOCK.search(original):
        return "TIME"
    return "DATE" if any(map(str.isdigit, original)) else "WHEN"


def _address_kind(original: str) -> str:
    if re.fullmatch(r"[\d -]+", original):
        return "ZIP_CODE"
    if not any(map(str.isdigit, original)):
        return "STREET"
    return "FULL_ADDRESS" if "\n" in original or original.count(",") > 1 else "STREET_ADDRESS"
