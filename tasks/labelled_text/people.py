"""People: matching first and last names, with pronouns, titles and addresses that agree with them."""

import random
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from tasks.corpora.sources.document import Part
from tasks.labelled_text.value_pools import LOCALE_WEIGHTS, Pool, divided_pool, first_names, last_names

PRONOUNS: Mapping[str, tuple[str, str]] = {
    "SUBJECT": ("she", "he"),
    "OBJECT": ("her", "him"),
    "POSSESSIVE": ("her", "his"),
    "REFLEXIVE": ("herself", "himself"),
}
"""Female and male form by grammatical case."""
RELATIVES = (
    ("mother", "father"),
    ("mom", "dad"),
    ("mum", "dad"),
    ("sister", "brother"),
    ("daughter", "son"),
    ("aunt", "uncle"),
    ("grandma", "grandpa"),
    ("niece", "nephew"),
    ("wife", "husband"),
    ("girlfriend", "boyfriend"),
    ("sister-in-law", "brother-in-law"),
)
_TITLES = (
    ("Ms.", "Mr."),
    ("Mrs.", "Mr."),
    ("Ms", "Mr"),
    ("Miss", "Mr"),
    ("Dr.", "Dr."),
    ("Dr", "Dr"),
    ("Prof.", "Prof."),
)
_NICKNAMES = {
    "Elizabeth": "Liz", "William": "Bill", "Robert": "Bob", "Richard": "Rick", "James": "Jim", "John": "Johnny",
    "Katherine": "Kate", "Margaret": "Maggie", "Thomas": "Tommy", "Michael": "Mikey", "Christopher": "Chris",
    "Jennifer": "Jen", "Jessica": "Jess", "Rebecca": "Becky", "Patricia": "Patty", "Daniel": "Danny",
    "Matthew": "Matt", "Anthony": "Tony", "Nicholas": "Nick", "Samuel": "Sammy", "Benjamin": "Ben",
    "Alexander": "Alex", "Victoria": "Vicky", "Susan": "Sue", "Deborah": "Debbie", "Edward": "Eddie",
}  # fmt: skip
_MAIL_HOSTS = ("gmail.com", "yahoo.com", "hotmail.com", "outlook.com", "icloud.com", "gmx.de", "web.de", "aol.com",
               "orange.fr", "libero.it", "mail.ru", "proton.me", "btinternet.com", "comcast.net")  # fmt: skip
_HANDLE_WORDS = ("the", "real", "its", "iam", "official", "music", "dj", "mr", "miss", "lil", "king", "queen", "xo",
                 "love", "gamer", "photo", "art", "blogs", "fan", "girl", "boy", "tweets", "news", "lover", "baby",
                 "sunny", "crazy", "happy", "dark", "blue", "star", "moon", "panda", "kitty", "wolf",
                 "pixel")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Person:
    """One person of a sentence."""

    first: str
    middle: str
    last: str
    female: bool


class People:
    """People of one part of the generated text."""

    def __init__(self, part: Part, reserved_share: float) -> None:
        self._locales = Pool(list(LOCALE_WEIGHTS), list(LOCALE_WEIGHTS.values()))
        self._first = {
            (locale, female): divided_pool(first_names(locale, female=female), part, reserved_share)
            for locale in LOCALE_WEIGHTS
            for female in (True, False)
        }
        self._last = {
            (locale, female): divided_pool(last_names(locale, female=female), part, reserved_share)
            for locale in LOCALE_WEIGHTS
            for female in (True, False)
        }

    def draw(self, random_numbers: random.Random, female: bool | None = None) -> Person:
        """A person; both names are usually of one language."""
        female = random_numbers.random() < 0.5 if female is None else female
        locale = self._locales.draw(random_numbers)
        last_locale = locale if random_numbers.random() < 0.9 else self._locales.draw(random_numbers)
        first, middle = (self._first[locale, female].draw(random_numbers) for _ in range(2))
        return Person(first, middle, self._last[last_locale, female].draw(random_numbers), female)

    def last_name(self, random_numbers: random.Random) -> str:
        """A last name in the form for companies, streets and schools."""
        return self._last["en_US" if random_numbers.random() < 0.6 else self._locales.draw(random_numbers), False].draw(
            random_numbers
        )


_NAMES_WITHOUT_SUFFIX = (
    (0.80, "{0.first} {0.last}"),
    (0.86, "{0.first} {0.middle[0]}. {0.last}"),
    (0.90, "{0.first} {0.middle} {0.last}"),
    (0.94, "{0.first[0]}. {0.last}"),
    (0.96, "{0.first} {0.middle[0]} {0.last}"),
    (0.98, "{0.first}-{0.middle} {0.last}"),
)
"""Forms of a name, each up to a cumulative share of all names."""


def written_name(person: Person, random_numbers: random.Random) -> str:
    """A whole name in one of the usual written forms."""
    place = random_numbers.random()
    suffix = random_numbers.choice([" Jr.", " III", " Sr.", " II"]) if place >= _NAMES_WITHOUT_SUFFIX[-1][0] else ""
    form = next((form for most, form in _NAMES_WITHOUT_SUFFIX if place < most), "{0.first} {0.last}")
    return form.format(person) + suffix


def nickname(person: Person, random_numbers: random.Random) -> str:
    """A nickname of a person."""
    if person.first in _NICKNAMES:
        return _NICKNAMES[person.first]
    if len(person.first) > 5 and person.first[:3].isalpha():
        stem = person.first[:4] if person.first[3] not in "aeiouyáéíóúäöü" else person.first[:3]
        return stem + random_numbers.choice(["", "ie", "y", "o"])
    return person.first + random_numbers.choice(["", "", "ie"])


def plural_name(person: Person, random_numbers: random.Random) -> str:
    """The family: "the Millers", "the Joneses" (without the article)."""
    return person.last + ("es" if person.last[-1] in "sxz" or person.last.endswith(("ch", "sh")) else "s")


def title(person: Person, random_numbers: random.Random) -> str:
    """A form of address that agrees."""
    pair = random_numbers.choices(_TITLES, weights=(6, 4, 3, 1, 4, 2, 2))[0]
    return pair[0] if person.female else pair[1]


def _plain(name: str) -> str:
    """A name for addresses: lower-case ASCII letters."""
    name = name.replace("ß", "ss").replace("ø", "o").replace("Ø", "O").replace("ł", "l").replace("đ", "d")
    name = name.replace("ı", "i").replace("æ", "ae")
    decomposed = unicodedata.normalize("NFD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z]", "", decomposed.lower()) or "user"


def email_address(person: Person, random_numbers: random.Random, host: str | None = None) -> str:
    """An e-mail address made from the name."""
    first, last = _plain(person.first), _plain(person.last)
    number = str(random_numbers.randint(1, 99)) if random_numbers.random() < 0.3 else ""
    name = random_numbers.choice(
        [f"{first}.{last}", f"{first}{last}", f"{first[0]}{last}", f"{first}_{last}", f"{first}", f"{last}.{first[0]}"]
    )
    return f"{name}{number}@{host or random_numbers.choice(_MAIL_HOSTS)}"


def user_name(person: Person, random_numbers: random.Random) -> str:
    """A name in a social network, without the ``@``."""
    first, last = _plain(person.first), _plain(person.last)
    word, other = random_numbers.choice(_HANDLE_WORDS), random_numbers.choice(_HANDLE_WORDS)
    number = random_numbers.choice([str(random_numbers.randint(1, 99)), str(random_numbers.randint(1970, 2012))])
    return random_numbers.choice(
        [f"{first}{last}", f"{first}_{last}", f"{first}{number}", f"{first.title()}{last.title()}", f"{word}{first}",
         f"{first[0]}{last}{number}", f"_{first}{word}", f"{word}_{other}{number}", f"{word.title()}{other.title()}",
         f"{last}{number}", f"xX{first.title()}Xx", f"{first}{word}{number}"]
    )  # fmt: skip
