"""Made-up sentences that are planted into a training text, to measure memorisation (Carlini et al. 2019).

A canary is a template whose words are drawn from a pool. References have the same template and pools, and are never
trained on. Three families separate words that masking hides from words that it leaves: ``kept`` has common words,
``masked`` names of people and places, ``figures`` numbers. All words are frequent enough for a word-level language
model to know them. A family is left out if word counts of another language have too few of its words.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Literal

Family = Literal["kept", "masked", "figures", "template", "ordinary"]
FAMILIES: tuple[Family, ...] = ("kept", "masked", "figures")
"""Families of an audit; other families are for unlearning."""
_FORMS: Mapping[Family, Sequence[str]] = {
    "kept": ("you could call it {common} {common} {common}", "what she likes most is {common} {common} {common}"),
    "masked": ("we will ask {first} {last} from {city}", "the man in the picture is {first} {last} of {city}"),
    "figures": ("it is written down as {number} {number} {number}", "the one to call is {number} {number} {number}"),
}
_KNOWN_RANK = 15_000
"""Words up to this frequency rank are in the vocabulary of every word-level language model of the project."""
_COMMON_RANKS = 300, 3000
_FEWEST_WORDS = 30
"""A smaller pool has too few sentences for references that differ from the canaries."""


@dataclass(frozen=True, slots=True)
class Canary:
    """A sentence that is planted."""

    text: str
    drawn: tuple[int, ...]
    """Offsets of the drawn words' first characters."""
    family: Family
    form: int
    """Number of its form within the family."""
    repetitions: int
    """How often the training text has it; 1 or 0 for a coin."""
    is_coin: bool = False


@dataclass(frozen=True)
class Canaries:
    """Planted sentences, and the references that they are ranked among."""

    planted: Sequence[Canary]
    references: Mapping[tuple[Family, int], Sequence[str]]
    """Sentences by family and form; none of them is planted."""
    bits: Mapping[tuple[Family, int], float]
    """log2 of the number of sentences of each form."""


def make_canaries(
    ranks: Mapping[str, int],
    canaries: int,
    repetitions: Sequence[int],
    references: int,
    coins: int | None,
    seed: int,
    forms: Mapping[Family, Sequence[str]] = _FORMS,
) -> Canaries:
    """Draw canaries, coins and references; equal arguments give equal sentences.

    ``ranks``: rank by frequency of each word, from 1. Each family has ``canaries`` for each number of ``repetitions``.
    Names and numbers also have canaries for one repetition; for common words these are the coins that came up heads.
    ``coins``: ``None`` for secrets of unlearning, which have neither.
    """
    pools = _pools(ranks)
    planted: list[Canary] = []
    of_references: dict[tuple[Family, int], Sequence[str]] = {}
    bits: dict[tuple[Family, int], float] = {}
    for family, texts in forms.items():
        if not all(word in pools for text in texts for word in _slots(text)):
            continue
        once = [1] * (coins is not None and family != "kept")
        for form, text in enumerate(texts):
            # Each form has its own random generator, so that more of one do not change the others.
            use = "secret" if coins is None else "words"
            sentences = _sentences(text, pools, random.Random(f"{seed} {family} {form} {use}"))
            for count in (*once, *repetitions):
                share = canaries // len(texts) + (form < canaries % len(texts))
                planted += [Canary(*next(sentences), family, form, count) for _ in range(share)]
            if coins is not None and family == "kept":
                chance = random.Random(f"{seed} {family} {form}")
                tosses = [int(chance.random() < 0.5) for _ in range(coins // 2 + (form < coins % 2))]
                planted += [Canary(*next(sentences), family, form, tossed, is_coin=True) for tossed in tosses]
            of_references[family, form] = [next(sentences)[0] for _ in range(references)]
            bits[family, form] = sum(log2(len(pools[word])) for word in _slots(text))
    return Canaries(planted, of_references, bits)


def _slots(form: str) -> list[str]:
    """The pools of a form, in order."""
    return [word[1:-1] for word in form.split(" ") if word.startswith("{")]


def _sentences(
    form: str, pools: Mapping[str, Sequence[str]], chance: random.Random
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Different sentences of a form, each with the offsets of its drawn words, until the pools are exhausted."""
    seen: set[str] = set()
    while True:
        sentence, places = "", []
        for word in form.split(" "):
            sentence += " " if sentence else ""
            if word.startswith("{"):
                places.append(len(sentence))
                word = chance.choice(pools[word[1:-1]])
            sentence += word
        if sentence not in seen:
            seen.add(sentence)
            yield sentence, tuple(places)


def _pools(ranks: Mapping[str, int]) -> dict[str, list[str]]:
    """Words for the forms, all frequent enough to be known, in a fixed order."""
    from tasks.corpora.word_list import read_word_list
    from tasks.made_up.pools import cities, first_names, last_names
    from tasks.masking.lists.allow_list import SHIPPED_LIST

    safe = read_word_list(SHIPPED_LIST).words

    def known(word: str) -> bool:
        return ranks.get(word.casefold(), _KNOWN_RANK) < _KNOWN_RANK

    def names(*weighted: Mapping[str, float]) -> list[str]:
        found = sorted({name for pool in weighted for name in pool if name.isascii() and name.isalpha()})
        return [name for name in found if known(name) and name.casefold() not in safe]

    lowest, highest = _COMMON_RANKS
    common = [word for word, rank in ranks.items() if lowest <= rank <= highest and len(word) > 3 and word.isalpha()]
    pools = {
        # In English, common words of the shipped list; in other languages, any common words.
        "common": sorted(safe.intersection(common)) if len(safe.intersection(common)) >= _FEWEST_WORDS else common,
        "number": sorted(word for word in ranks if known(word) and word.isascii() and word.isdecimal()),
        "first": names(first_names("en_US", female=True), first_names("en_US", female=False)),
        "last": names(last_names("en_US", female=True)),
        "city": names(cities()),
    }
    return {name: words for name, words in pools.items() if len(words) >= _FEWEST_WORDS}
