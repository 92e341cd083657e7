"""Values of surrogates: names of people by gender, of places and organisations by kind and number of words."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.corpora.words import fold
from tasks.filling.surrogates.characters import other_characters
from tasks.filling.surrogates.groups import ORGANISATION_ENDINGS, PLACE_ENDINGS, group_of, no_list
from tasks.made_up.known import is_one_word, kinds_of_place, peoples, places
from tasks.made_up.made_up import all_values
from tasks.made_up.pools import shipped_words, without_article
from tasks.made_up.thing import Thing

_ATTEMPTS = 60
_FEWEST_PLACES = 8
_ENDING_SHARE = 0.3
"""Share of freely drawn organisations of several words that end with a word of ``ORGANISATION_ENDINGS``. Without them,
such an ending would reveal that the original has one of the same group."""
_SHORT_NAME, _SHORT_FOLDED = re.compile(r"[A-Z]{2,5}"), re.compile(r"[a-z]{2,3}")
_DOTTED = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_LINK = re.compile(r"(?:https?://)?(?:www\.)?", re.IGNORECASE)
_TELEPHONE_ASKED = re.compile(r"\b(?:call|phone|tel|telephone|text|mobile|cell|fax|number)\b[^.]*$", re.IGNORECASE)


@dataclass(frozen=True)
class Wanted:
    """A draw of a name of one or several words."""

    random_numbers: random.Random
    originals: Sequence[str]
    """The original words; empty if they are unknown."""
    count: int
    """Number of words."""
    cased: bool = True
    """False: originals are folded. One of two or three letters then counts as a short name."""
    on_list: Callable[[str], bool] = no_list
    """Whether a word is never masked."""

    def endings(self, groups: Sequence[Sequence[str]]) -> Sequence[str]:
        """The words that may replace the last original word, since they show its kind (Street, Inc)."""
        return group_of(self.originals[-1], groups, self.on_list) if len(self.originals) == self.count else []


def first_name(random_numbers: random.Random, female: bool | None) -> str:
    """A first name of one word."""
    return _one_word(lambda: Thing(all_values(), random_numbers, female).make("first"))


def last_name(random_numbers: random.Random) -> str:
    """A last name of one word."""
    return _one_word(lambda: Thing(all_values(), random_numbers).make("surname"))


def name(label: str, wanted: Wanted) -> list[str]:
    """A name of a place, organisation, work, product or event of so many words."""
    match label:
        case "LOCATION":
            return _place(wanted)
        case "ORGANISATION":
            return _organisation(wanted)
        case "WORK":
            return _several(wanted, "work")
    # Each attempt draws the kind again: few products have three words, so one would reveal another.
    return _several(wanted, "product_or_event")


def _place(wanted: Wanted) -> list[str]:
    """A place of the kind of the original if there is one."""
    short_names, codes = shipped_words()["short_country"], places()["state_code"][1]
    if wanted.count == 1 and wanted.originals:
        word = wanted.originals[0]
        if word.upper() in codes.values and (word.isupper() or not wanted.cased):
            return [codes.draw(wanted.random_numbers)]
        short = bool(_SHORT_NAME.fullmatch(word)) and len(word) < 4
        if not wanted.cased:
            # Rio is a known long name.
            is_long = word in kinds_of_place() and word.upper() not in short_names
            short = not is_long and bool(_SHORT_FOLDED.fullmatch(word))
        if short:
            return [wanted.random_numbers.choice(short_names)]
        if _DOTTED.fullmatch(word):
            return [".".join(wanted.random_numbers.choice(short_names[:5]))]
    kind = kinds_of_place().get(fold(without_article(" ".join(wanted.originals))), "city")
    # A kind with very few such places would reveal the original (the Isle of Skye), so cities replace it.
    pools = (places()[each].get(wanted.count) for each in (kind, "city"))
    pool = next((pool for pool in pools if pool is not None and len(pool.values) >= _FEWEST_PLACES), None)

    def draw() -> str:
        return pool.draw(wanted.random_numbers) if pool else ""

    def part() -> str:
        return places()["city"][1].draw(wanted.random_numbers)

    return _several(wanted, draw, wanted.endings(PLACE_ENDINGS), part)


def _organisation(wanted: Wanted) -> list[str]:
    """An organisation. A short name in capitals becomes another one."""
    short = _SHORT_NAME if wanted.cased else _SHORT_FOLDED
    if wanted.count == 1 and wanted.originals and short.fullmatch(wanted.originals[0]):
        return [other_characters(wanted.originals[0], wanted.random_numbers, letters=True)]
    endings = wanted.endings(ORGANISATION_ENDINGS)
    if not endings and wanted.count > 1 and wanted.random_numbers.random() < _ENDING_SHARE:
        endings = wanted.random_numbers.choice(ORGANISATION_ENDINGS)
    return _several(wanted, "organisation", endings)


def people_of(random_numbers: random.Random, original: str | None) -> str:
    """A nationality, people or belief; of the original's kind if there is an original."""
    by_ending = "nationality_people" if (original or "").endswith("s") else "nationality"
    return random_numbers.choice(group_of(original or "", peoples().values()) or peoples()[by_ending])


def contact(random_numbers: random.Random, original: str | None, before: str = "") -> str:
    """An address, number, link or handle in the form of the original, else by the text before it."""
    thing = Thing(all_values(), random_numbers)
    if original is None and _TELEPHONE_ASKED.search(before):
        return other_characters("555-0100", random_numbers, letters=False)
    if original is None or "@" in original[1:]:
        return thing.make("email_address")
    if original.startswith(("@", "#")):
        return original[0] + thing.make("user_name_plain").strip("_")
    if "/" in original or ("." in original and any(map(str.isalpha, original))):
        start = _LINK.match(original)
        path = "/" + thing.make("user_name_plain") if "/" in original.split("://")[-1] else ""
        return f"{start.group() if start else ''}{thing.make('web_host')}{path}"
    if any(map(str.isalpha, original)):
        return thing.make("user_name_plain").strip("_")
    return other_characters(original, random_numbers, letters=False)


def _several(
    wanted: Wanted, kind: str | Callable[[], str], endings: Sequence[str] = (), part: Callable[[], str] | None = None
) -> list[str]:
    """A value of a kind with so many words. If none is drawn, or for ``endings``, it is composed of single words, by
    default last names."""
    random_numbers = wanted.random_numbers
    if not endings and not any(map(str.isdigit, "".join(wanted.originals))):
        for _ in range(_ATTEMPTS):
            value = Thing(all_values(), random_numbers).make(kind) if isinstance(kind, str) else kind()
            parts = without_article(value).split()
            if len(parts) == wanted.count and all(map(_is_plain_word, parts)):
                return parts
    made = [
        other_characters(original, random_numbers, letters=True)
        if any(map(str.isdigit, original))
        else (_one_word(part) if part else last_name(random_numbers))
        for original in wanted.originals or [""] * wanted.count
    ]
    return [*made[:-1], random_numbers.choice(endings)] if endings else made


def _is_plain_word(text: str) -> bool:
    """Whether a text is a word of ASCII characters. Other characters would expose a surrogate."""
    return text.isascii() and is_one_word(text)


def _one_word(draw: Callable[[], str]) -> str:
    value = next((value for _ in range(_ATTEMPTS) if _is_plain_word(value := draw())), draw())
    return value if is_one_word(value) else next(part for part in re.findall(r"[^\W\d_]+", value))
