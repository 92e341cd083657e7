"""Values of surrogates: names of people by gender, of places and organisations by kind and number of words."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tasks.corpora.words import fold
from tasks.filling.surrogates.characters import other_characters
from tasks.filling.surrogates.groups import ORGANISATION_ENDINGS, PLACE_ENDINGS, group_of, no_list
from tasks.filling.surrogates.known import Known, is_one_word
from tasks.made_up.made_up import MadeUp
from tasks.made_up.pools import shipped_words, without_article
from tasks.made_up.thing import Thing

_ATTEMPTS = 60
_ENDING_SHARE = 0.3
"""Share of freely drawn organisations of several words that end with a word of ``ORGANISATION_ENDINGS``. Without them,
such an ending would reveal that the original has one of the same group."""
_SHORT_NAME = re.compile(r"[A-Z]{2,5}")
_SHORT_FOLDED = re.compile(r"[a-z]{2,3}")
_DOTTED = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_LINK = re.compile(r"(?:https?://)?(?:www\.)?", re.IGNORECASE)
_TELEPHONE_ASKED = re.compile(r"\b(?:call|phone|tel|telephone|text|mobile|cell|fax|number)\b[^.]*$", re.IGNORECASE)


@dataclass(frozen=True)
class Wanted:
    """The form of a name of one or several words."""

    originals: Sequence[str]
    """The original words; empty if they are unknown."""
    count: int
    """Number of words."""
    cased: bool = True
    """False: originals are folded. One of two or three letters then counts as a short name."""
    on_list: Callable[[str], bool] = no_list
    """Whether a word is never masked."""

    def endings(self, groups: Sequence[Sequence[str]]) -> Sequence[str]:
        """The words that may replace the last original word."""
        return group_of(self.originals[-1], groups, self.on_list) if len(self.originals) == self.count else []


@dataclass
class SurrogateValues:
    """Draws values by class."""

    known: Known = field(default_factory=Known)

    @cached_property
    def _made_up(self) -> MadeUp:
        return MadeUp()

    def _thing(self, random_numbers: random.Random, female: bool | None = None) -> Thing:
        return Thing(self._made_up, random_numbers, female)

    def first_name(self, random_numbers: random.Random, female: bool | None) -> str:
        """A first name of one word."""
        return _one_word(lambda: self._thing(random_numbers, female).make("first"))

    def last_name(self, random_numbers: random.Random) -> str:
        """A last name of one word."""
        return _one_word(lambda: self._thing(random_numbers).make("surname"))

    def name(self, label: str, random_numbers: random.Random, wanted: Wanted) -> list[str]:
        """A name of a place, organisation, work, product or event of so many words."""
        if label == "LOCATION":
            return self._place(random_numbers, wanted)
        if label == "ORGANISATION":
            return self._organisation(random_numbers, wanted)

        def draw() -> str:
            # Each attempt draws the kind again: few products have three words, so one would reveal another.
            kind = "work" if label == "WORK" else "product" if random_numbers.random() < 0.7 else "event"
            return self._thing(random_numbers).make(kind)

        return self._several(draw, [], wanted, random_numbers, lambda: self.last_name(random_numbers))

    def _place(self, random_numbers: random.Random, wanted: Wanted) -> list[str]:
        """A place of the kind of the original if there is one."""
        known, short_names = self.known, shipped_words()["short_country"]
        if wanted.count == 1 and wanted.originals:
            word = wanted.originals[0]
            if word.upper() in known.places["code"][1].values and (word.isupper() or not wanted.cased):
                return [known.places["code"][1].draw(random_numbers)]
            short = bool(_SHORT_NAME.fullmatch(word)) and len(word) < 4
            if not wanted.cased:
                # Rio is a known long name.
                is_long = word in known.kinds_of_place and word.upper() not in short_names
                short = not is_long and bool(_SHORT_FOLDED.fullmatch(word))
            if short:
                return [random_numbers.choice(short_names)]
            if _DOTTED.fullmatch(word):
                return [".".join(random_numbers.choice(short_names[:5]))]
        pool = known.pool_of_places(
            known.kinds_of_place.get(fold(without_article(" ".join(wanted.originals))), "city"), wanted.count
        )
        return self._several(
            lambda: pool.draw(random_numbers) if pool is not None else "",
            wanted.endings(PLACE_ENDINGS),
            wanted,
            random_numbers,
            lambda: known.places["city"][1].draw(random_numbers),
        )

    def _organisation(self, random_numbers: random.Random, wanted: Wanted) -> list[str]:
        """An organisation. A short name in capitals becomes another one."""
        short = _SHORT_NAME if wanted.cased else _SHORT_FOLDED
        if wanted.count == 1 and wanted.originals and short.fullmatch(wanted.originals[0]):
            return [other_characters(wanted.originals[0], random_numbers, letters=True)]
        endings = wanted.endings(ORGANISATION_ENDINGS)
        if not endings and wanted.count > 1 and random_numbers.random() < _ENDING_SHARE:
            endings = random_numbers.choice(ORGANISATION_ENDINGS)
        return self._several(
            lambda: self._thing(random_numbers).make("organisation"),
            endings,
            wanted,
            random_numbers,
            lambda: self.last_name(random_numbers),
        )

    def people_of(self, random_numbers: random.Random, original: str | None) -> str:
        """A nationality, people or belief; of the original's kind if there is an original."""
        peoples = self.known.peoples
        of_kind = group_of(original or "", peoples)
        return random_numbers.choice(of_kind or peoples[1 if (original or "").endswith("s") else 0])

    def contact(self, random_numbers: random.Random, original: str | None, before: str) -> str:
        """An address, number, link or handle in the form of the original, else by the text before it."""
        thing = self._thing(random_numbers)
        if original is None and _TELEPHONE_ASKED.search(before):
            return other_characters("555-0100", random_numbers, letters=False)
        if original is None or "@" in original[1:]:
            return thing.make("email_address")
        if original.startswith("@"):
            return "@" + thing.make("user_name_plain")
        if original.startswith("#"):
            return "#" + thing.make("user_name_plain").strip("_")
        if "/" in original or ("." in original and any(map(str.isalpha, original))):
            start = _LINK.match(original)
            path = "/" + thing.make("user_name_plain") if "/" in original.split("://")[-1] else ""
            return f"{start.group() if start else ''}{thing.make('web_host')}{path}"
        if any(map(str.isalpha, original)):
            return thing.make("user_name_plain").strip("_")
        return other_characters(original, random_numbers, letters=False)

    def _several(
        self,
        draw: Callable[[], str],
        endings: Sequence[str],
        wanted: Wanted,
        random_numbers: random.Random,
        word: Callable[[], str],
    ) -> list[str]:
        """A value of so many words. If none is drawn, or ``endings`` show its kind (Street, Inc), it is composed of
        single words."""
        if not endings and not any(map(str.isdigit, "".join(wanted.originals))):
            for _ in range(_ATTEMPTS):
                parts = without_article(draw()).split()
                if len(parts) == wanted.count and all(map(_is_plain_word, parts)):
                    return parts
        made = [
            other_characters(original, random_numbers, letters=True)
            if any(map(str.isdigit, original))
            else _one_word(word)
            for original in wanted.originals or [""] * wanted.count
        ]
        return [*made[:-1], random_numbers.choice(endings)] if endings else made


def _is_plain_word(text: str) -> bool:
    """Whether a text is a word of ASCII characters. Other characters would expose a surrogate."""
    return text.isascii() and is_one_word(text)


def _one_word(draw: Callable[[], str]) -> str:
    value = next((value for _ in range(_ATTEMPTS) if _is_plain_word(value := draw())), draw())
    return value if is_one_word(value) else next(part for part in re.findall(r"[^\W\d_]+", value))
