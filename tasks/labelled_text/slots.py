"""The kinds of slots: the generator of each, and the label of its values.

Kinds without a label (pronouns, forms of address, jobs, ordinary numbers) vary the text and are private to nobody.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tasks.corpora.sources.document import Part
from tasks.labelled_text import number_formats as numbers
from tasks.labelled_text import people as names
from tasks.labelled_text.organisations import Organisations
from tasks.labelled_text.people import People, Person
from tasks.labelled_text.places import Country, Places
from tasks.labelled_text.template import Slot
from tasks.labelled_text.value_pools import shipped_values

_ATTEMPTS = 40
"""Draws of a value with the required number of words, before another number is accepted."""


class Gazetteer:
    """All values that one part of the generated text can use."""

    def __init__(self, part: Part, reserved_share: float) -> None:
        self.people = People(part, reserved_share)
        self.places = Places(part, reserved_share, self.people)
        self.words: dict[str, list[str]] = {kind: words.split(", ") for kind, words in shipped_values("common_words")}
        self.words["job"] = [job for (job,) in shipped_values("jobs")]
        self.organisations = Organisations(part, reserved_share, self.people, self.places)


@dataclass
class Sentence:
    """Data that the slots of one sentence share: its people, countries and values by number."""

    gazetteer: Gazetteer
    random_numbers: random.Random
    people: dict[int, Person] = field(default_factory=dict)
    countries: dict[int, Country] = field(default_factory=dict)
    values: dict[tuple[str, int], str] = field(default_factory=dict)
    genders: dict[int, bool] = field(default_factory=dict)
    """Whether a numbered person is female, if a slot of the template requires a gender."""

    def person(self, slot: Slot, female: bool | None = None) -> Person:
        """The person of a slot's number, or a new one."""
        if slot.thing is None:
            return self.gazetteer.people.draw(self.random_numbers, female)
        if slot.thing not in self.people:
            wanted = self.genders.get(slot.thing, female)
            self.people[slot.thing] = self.gazetteer.people.draw(self.random_numbers, wanted)
        return self.people[slot.thing]

    def country(self, slot: Slot) -> Country:
        """The country of a slot's number, or a new one."""
        if slot.thing is None:
            return self.random_numbers.choice(self.gazetteer.places.countries)
        if slot.thing not in self.countries:
            self.countries[slot.thing] = self.random_numbers.choice(self.gazetteer.places.countries)
        return self.countries[slot.thing]


@dataclass(frozen=True, slots=True)
class SlotKind:
    """One kind of slot."""

    label: str | None
    """Fine label of the value, a key of ``LABEL_CLASSES``; ``None``: no label."""
    make: Callable[[Sentence, Slot], str]
    """Draws a value."""
    female: bool | None = None
    """Gender that the kind requires."""


def fill_slot(slot: Slot, sentence: Sentence) -> str:
    """The value of one slot in its form; equal slots of one number have equal values."""
    key = None if slot.thing is None else (slot.kind, slot.thing)
    value = sentence.values.get(key) if key else None
    if value is None:
        value = _draw(slot, sentence)
        if key:
            sentence.values[key] = value
    for modifier in slot.modifiers:
        if modifier == "lower":
            value = value.lower()
        elif modifier == "upper":
            value = value.upper()
        elif modifier == "hashtag":
            value = "#" + "".join(character for character in value.removeprefix("the ") if character.isalnum())
    return value


def _draw(slot: Slot, sentence: Sentence) -> str:
    make = SLOT_KINDS[slot.kind].make
    wanted = next((int(modifier[6:]) for modifier in slot.modifiers if modifier.startswith("words=")), None)
    value = make(sentence, slot)
    if wanted is None:
        return value
    for _ in range(_ATTEMPTS):
        if len(value.removeprefix("the ").split()) == wanted:
            break
        # A person without a name of that many words is replaced by another person.
        if slot.thing is not None:
            sentence.people.pop(slot.thing, None)
            sentence.countries.pop(slot.thing, None)
        value = make(sentence, slot)
    return value


def _person(make: Callable[[Person, random.Random], str], female: bool | None = None) -> SlotKind:
    return SlotKind(
        "PERSON", lambda sentence, slot: make(sentence.person(slot, female), sentence.random_numbers), female
    )


def _about_person(make: Callable[[Person, random.Random], str], label: str | None = None) -> SlotKind:
    return SlotKind(label, lambda sentence, slot: make(sentence.person(slot), sentence.random_numbers))


def _country(label: str, attribute: str) -> SlotKind:
    return SlotKind(label, lambda sentence, slot: getattr(sentence.country(slot), attribute))


def _place(label: str, make: Callable[[Places, random.Random], str]) -> SlotKind:
    return SlotKind(label, lambda sentence, slot: make(sentence.gazetteer.places, sentence.random_numbers))


def _organisation(label: str, make: Callable[[Organisations, random.Random], str]) -> SlotKind:
    return SlotKind(label, lambda sentence, slot: make(sentence.gazetteer.organisations, sentence.random_numbers))


def _kind_of_organisation(label: str, kind: str) -> SlotKind:
    return _organisation(label, lambda organisations, random_numbers: organisations.make(kind, random_numbers))


def _number(label: str | None, make: Callable[[random.Random], str]) -> SlotKind:
    return SlotKind(label, lambda sentence, slot: make(sentence.random_numbers))


def _one_of(label: str, values: Sequence[str]) -> SlotKind:
    return _number(label, lambda random_numbers: random_numbers.choice(values))


def _written(label: str, forms: Sequence[str]) -> SlotKind:
    return _number(label, lambda random_numbers: numbers.pattern(random_numbers.choice(forms), random_numbers))


def _word(kind: str) -> SlotKind:
    """A kind of common words without a label."""
    return SlotKind(None, lambda sentence, slot: sentence.random_numbers.choice(sentence.gazetteer.words[kind]))


def _belief(column: int) -> SlotKind:
    return SlotKind(
        "BELIEF",
        lambda sentence, slot: sentence.random_numbers.choice(sentence.gazetteer.organisations.beliefs)[column],
    )


def _work_address(sentence: Sentence, slot: Slot) -> str:
    host = sentence.gazetteer.organisations.web_host(sentence.random_numbers)
    place = sentence.random_numbers.random()
    if place < 0.15 and slot.thing is None:
        return f"{sentence.random_numbers.choice(['info', 'sales', 'support', 'contact', 'office', 'hr'])}@{host}"
    return names.email_address(sentence.person(slot), sentence.random_numbers, host if place < 0.5 else None)


def _relative(person: Person, random_numbers: random.Random) -> str:
    return random_numbers.choice(names.RELATIVES)[0 if person.female else 1]


SLOT_KINDS: Mapping[str, SlotKind] = {
    **{
        f"{kind}{ending}": _person(make, female)
        for kind, make in {
            "PERSON": names.written_name,
            "FULL_NAME": lambda person, random_numbers: f"{person.first} {person.last}",
            "FIRST_NAME": lambda person, random_numbers: person.first,
        }.items()
        for ending, female in (("", None), ("_FEMALE", True), ("_MALE", False))
    },
    "LAST_NAME": _person(lambda person, random_numbers: person.last),
    "FULL_NAME_REVERSED": _person(lambda person, random_numbers: f"{person.last}, {person.first}"),
    "NAME_OF_THREE": _person(lambda person, random_numbers: f"{person.first} {person.middle} {person.last}"),
    "INITIALS": _person(lambda person, random_numbers: f"{person.first[0]}.{person.last[0]}."),
    "FAMILY": _person(names.plural_name),
    "NICKNAME": _person(names.nickname),
    **{
        f"PRONOUN_{case}": _about_person(
            lambda person, random_numbers, forms=forms: forms[0 if person.female else 1]  # type: ignore[misc]
        )
        for case, forms in names.PRONOUNS.items()
    },
    "TITLE": _about_person(names.title),
    "RELATIVE": _about_person(_relative),
    "USER_NAME": _about_person(lambda person, numbers_: "@" + names.user_name(person, numbers_), "USER_NAME"),
    "USER_NAME_PLAIN": _about_person(names.user_name, "USER_NAME"),
    "EMAIL_ADDRESS": SlotKind("EMAIL_ADDRESS", _work_address),
    "JOB": _word("job"),
    "FOOD": _word("food"),
    "THING": _word("thing"),
    "ANIMAL": _word("animal"),
    "HOBBY": _word("hobby"),
    "DESCRIPTION": _word("adjective"),
    "ADVERB": _word("adverb"),
    "TOPIC": _word("subject"),
    "AILMENT": _word("ailment"),
    "OCCASION": _word("event"),
    "EXCLAMATION": _word("exclamation"),
    "COUNT": _number(None, numbers.count),
    "PERCENTAGE": _number(None, numbers.percentage),
    "COUNTRY": _country("COUNTRY", "name"),
    "NATIONALITY": _country("NATIONALITY", "adjective"),
    "NATIONALITY_PEOPLE": _country("NATIONALITY", "people"),
    "NATIONALITY_PERSON": _country("NATIONALITY", "person"),
    "CITY": _place("CITY", Places.city),
    "STATE": _place("STATE", lambda places, random_numbers: random_numbers.choice(places.states)[0]),
    "STATE_CODE": _place("STATE", lambda places, random_numbers: random_numbers.choice(places.states)[1]),
    "REGION": _place("REGION", lambda places, random_numbers: places.regions.draw(random_numbers)),
    "FACILITY": _place("FACILITY", Places.facility),
    "STREET": _place("STREET_ADDRESS", Places.street),
    "STREET_ADDRESS": _place("STREET_ADDRESS", Places.street_address),
    "FULL_ADDRESS": _place("STREET_ADDRESS", Places.full_address),
    "ZIP_CODE": _place("ZIP_CODE", Places.zip_code),
    "ORGANISATION": _organisation("ORGANISATION", Organisations.any),
    "COMPANY": _kind_of_organisation("ORGANISATION", "company"),
    "SHOP": _kind_of_organisation("ORGANISATION", "shop"),
    "UNIVERSITY": _kind_of_organisation("ORGANISATION", "university"),
    "SCHOOL": _kind_of_organisation("ORGANISATION", "school"),
    "HOSPITAL": _kind_of_organisation("ORGANISATION", "hospital"),
    "PRESS": _kind_of_organisation("ORGANISATION", "press"),
    "AGENCY": _kind_of_organisation("ORGANISATION", "agency"),
    "TEAM": _kind_of_organisation("TEAM", "team"),
    "BAND": _kind_of_organisation("BAND", "band"),
    "WORK": _kind_of_organisation("WORK", "work"),
    "PRODUCT": _kind_of_organisation("PRODUCT", "product"),
    "EVENT": _kind_of_organisation("EVENT", "event"),
    "URL": _organisation("URL", Organisations.url),
    "WEB_HOST": _organisation("URL", Organisations.web_host),
    "BELIEF": _belief(0),
    "BELIEF_PEOPLE": _belief(1),
    "BELIEF_PERSON": _belief(2),
    "DATE": _number("DATE", numbers.calendar_date),
    "DATE_OF_BIRTH": _number("DATE", lambda random_numbers: numbers.calendar_date(random_numbers, 1935, 2012)),
    "WHEN": _number("DATE", numbers.when),
    "WEEKDAY": _one_of("DATE", numbers.WEEKDAYS),
    "MONTH": _one_of("DATE", numbers.MONTHS),
    "YEAR": _number("DATE", numbers.year),
    "YEAR_SPOKEN": _number("DATE", numbers.spoken_year),
    "TIME": _number("TIME", numbers.time_of_day),
    "AGE": _number("AGE", numbers.age),
    "MONEY": _number("MONEY", numbers.money),
    "PHONE_NUMBER_SPOKEN": _number("PHONE_NUMBER", numbers.spoken_digits),
    **{label: _written(label, forms) for label, forms in numbers.PATTERNS.items()},
    "CREDIT_CARD": _number("CREDIT_CARD", numbers.card_number),
    "CARD_ENDING": _number("CREDIT_CARD", partial(numbers.pattern, "####")),
    "CARD_CODE": _number("CREDIT_CARD", partial(numbers.pattern, "###")),
    "IBAN": _number("IBAN", numbers.iban),
    "ACCOUNT_NUMBER_SPOKEN": _number(
        "ACCOUNT_NUMBER", lambda random_numbers: numbers.spoken_digits(random_numbers, random_numbers.randint(6, 9))
    ),
    "IP_ADDRESS": _number("IP_ADDRESS", numbers.ip_address),
}
"""Generators by kind of slot."""
