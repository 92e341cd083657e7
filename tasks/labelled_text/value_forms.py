"""The form of a corpus value: which kind of slot makes values of the same form.

Forms are one word or several, capitals or small letters, a hashtag, the name of a country or of a street. A template
learned from a sentence is then filled with values that fit there.
"""

import re
from collections.abc import Mapping
from functools import cache

from tasks.corpora.words import fold
from tasks.labelled_text.slots import SLOT_LABELS
from tasks.made_up.known import gender_of_text, is_last_name, kinds_of_place
from tasks.made_up.pools import shipped_values, shipped_words, states, without_article


def _words(listed: str, end: str = "") -> re.Pattern[str]:
    return re.compile(rf"\b(?:{listed})\b{end}", re.IGNORECASE)


_SPORTS = _words(
    "game|games|win|wins|won|beat|vs|match|season|coach|league|score|goals?|fans?|football|soccer|baseball|cup|"
    "play|plays|playing|player|playoffs|defense|stadium|team"
)
_LOCATIONS = {
    "FACILITY": _words(
        "airport|station|stadium|park|bridge|hall|hotel|museum|tower|mall|theat(?:er|re)|cent(?:er|re)|building|arena|"
        "square|plaza|club|casino|highway|beach|zoo|cathedral"
    ),
    "STREET_ADDRESS": re.compile(r"\d.* | .*\d"),
    "STREET": _words("st|street|ave|avenue|rd|road|blvd|boulevard|lane|ln|drive|dr", r"\.?$"),
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
_ADDRESSES = {
    "ZIP_CODE": re.compile(r"\A[\d -]+\Z"),
    "FULL_ADDRESS": re.compile(r"\A(?=.*\d).*(?:\n|,.*,)", re.DOTALL),
    "STREET_ADDRESS": re.compile(r"\d"),
}
_POSITIONS = {"TITLE": re.compile(r"\A(?:mr|mrs|ms|miss|dr|prof|sir|madam)\.?\Z", re.IGNORECASE)}
"""Patterns by kind, in the order of the tries."""
_OWN_CASE = (None, "EMAIL_ADDRESS", "URL", "USER_NAME", "IBAN", "LICENCE_PLATE", "PASSPORT_NUMBER", "TIME")
"""Labels whose values always have their own case, for any case of the original."""
_COUNTED = ("COMPANY", "ORGANISATION", "WORK", "PRODUCT", "TEAM", "BAND", "CITY")
"""Kinds whose values get as many words as the original, up to three."""
_PERSONS = ("PERSON", "PERSON_FEMALE", "PERSON_MALE", "FULL_NAME", "FIRST_NAME", "LAST_NAME")


def slot_for(kind: str, original: str, rest: str) -> tuple[str, tuple[str, ...]]:
    """The kind of slot and modifiers that make values of the original's form; ``rest``: text around it."""
    hashtag = original.startswith("#") and len(original) > 1
    words = len(original.split())
    if kind in _PERSONS:
        kind = _person_kind(original, rest)
        counted = words <= 3 and SLOT_LABELS[kind] == "PERSON"
    else:
        kind = _kind_of_thing(kind, original, rest)
        counted = words <= 3 and kind in _COUNTED and not hashtag
    letters = "".join(filter(str.isalpha, original))
    cased = bool(letters) and SLOT_LABELS[kind] not in _OWN_CASE
    modifiers = {
        f"words={words}": counted,
        "hashtag": hashtag,
        "lower": cased and original == original.lower(),
        "upper": cased and len(letters) > 4 and original == original.upper(),
    }
    return kind, tuple(modifier for modifier, applies in modifiers.items() if applies)


def _kind_of_thing(kind: str, original: str, rest: str) -> str:
    match kind:
        case "LOCATION" | "CITY":
            name = without_article(original.removeprefix("#").replace("The ", "the ", 1))
            if name in dict(states()).values():
                return "STATE_CODE"
            return kinds_of_place().get(fold(name), _first_form(_LOCATIONS, name, "CITY")).upper()
        case "GROUP_NAME":
            teams = {without_article(row[0]).casefold() for row in shipped_values("teams")}
            return "TEAM" if original.casefold() in teams or _SPORTS.search(rest) else "BAND"
        case "ORGANISATION":
            return _first_form(_ORGANISATIONS, original, "ORGANISATION")
        case "POSITION":
            return _first_form(_POSITIONS, original, "JOB")
        case "NATIONALITY":
            by_ending = "NATIONALITY_PEOPLE" if original.endswith(("s", "S")) else "NATIONALITY"
            return _kinds_of_people().get(original.casefold(), by_ending)
        case "DATE":
            return _first_form(_DATES, original, "WHEN")
        case "STREET_ADDRESS":
            return _first_form(_ADDRESSES, original, "STREET")
    return kind


def _first_form(forms: Mapping[str, re.Pattern[str]], original: str, other: str) -> str:
    return next((kind for kind, form in forms.items() if form.search(original)), other)


def _person_kind(original: str, rest: str) -> str:
    words = original.replace(" . ", ". ").split()
    if original.startswith("@"):
        return "USER_NAME"
    if len(words) > 2:
        return "NAME_OF_THREE" if len(words) == 3 else "PERSON"
    gender = {True: "_FEMALE", False: "_MALE", None: ""}[gender_of_text([rest])]
    if len(words) == 2:
        return "FULL_NAME_REVERSED" if words[0].endswith(",") and words[1].isalpha() else f"FULL_NAME{gender}"
    if any(character.isdigit() or character == "_" for character in original):
        return "USER_NAME_PLAIN"
    # A word that is no known name is a first name in two of three sentences of chat.
    return "LAST_NAME" if is_last_name(original) else f"FIRST_NAME{gender}"


@cache
def _kinds_of_people() -> Mapping[str, str]:
    """Kinds by case-folded word; the last kind of a word wins."""
    beliefs, nations = shipped_values("beliefs"), shipped_values("nationalities")
    columns = {
        "BELIEF_PERSON": [row[2] for row in beliefs],
        "BELIEF_PEOPLE": [row[1] for row in beliefs],
        "BELIEF": [row[0] for row in beliefs],
        "COUNTRY": [row[0] for row in nations],
        "NATIONALITY_PERSON": [row[3] for row in nations],
        "NATIONALITY_PEOPLE": [row[2] for row in nations],
        "NATIONALITY": [row[1] for row in nations],
    }
    return {word.casefold(): kind for kind, words in columns.items() for word in words}
