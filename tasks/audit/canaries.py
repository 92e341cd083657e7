"""Made-up sentences that are planted into a training text to see what a model remembers of it (Carlini et al. 2019).

A canary is a sentence of a form, whose words are drawn from a pool. References are sentences of the same form, drawn
from the same pools, that nobody trains on: a model that remembers a canary finds it more probable than its references.

Three families tell what masking hides from what it leaves: ``kept`` has common words, which no list masks; ``masked``
has names of people and places; ``figures`` has numbers. Whether a technique masks them is measured, not assumed. All
words are frequent enough for a word-level language model to know them. Forms and names are English; where word counts
of another language have too few of the names or numbers, that family is left out.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Literal

Family = Literal["kept", "masked", "figures", "template", "ordinary"]
FAMILIES: tuple[Family, ...] = ("kept", "masked", "figures")
"""Those of an audit; the others are what a model is made to forget (``make_secrets``)."""
_FORMS: Mapping[Family, Sequence[str]] = {
    "kept": ("you could call it {common} {common} {common}", "what she likes most is {common} {common} {common}"),
    "masked": ("we will ask {first} {last} from {city}", "the man in the picture is {first} {last} of {city}"),
    "figures": ("it is written down as {number} {number} {number}", "the one to call is {number} {number} {number}"),
}
_KNOWN_RANK = 15_000
"""Words of this rank by frequency are in the vocabulary of any word-level language model of the project."""
_COMMON_RANKS = 300, 3000
_FEWEST_WORDS = 30
"""A pool of fewer words has too few sentences for references that are none of the canaries."""


@dataclass(frozen=True, slots=True)
class Canary:
    """A sentence that is planted."""

    text: str
    drawn: tuple[int, ...]
    """First characters of the words that are drawn."""
    family: Family
    form: int
    """Which form of its family it has."""
    repetitions: int
    """How often the training text has it; a coin's is 1 or 0."""
    is_coin: bool = False


@dataclass(frozen=True)
class Canaries:
    """What is planted, and what it is held against."""

    planted: Sequence[Canary]
    references: Mapping[tuple[Family, int], Sequence[str]]
    """Sentences by family and form, none of which is planted."""
    bits: Mapping[tuple[Family, int], float]
    """log2 of how many sentences each form has."""


def make_canaries(
    ranks: Mapping[str, int], canaries: int, repetitions: Sequence[int], references: int, coins: int, seed: int
) -> Canaries:
    """Draw canaries, coins and references; equal arguments give equal sentences.

    ``ranks``: rank by frequency of each word, from 1. Of each family there are so many ``canaries`` for each number of
    ``repetitions``, and of names and numbers for a single one too; of common words these are the coins that fell on
    their head.
    """
    pools = _pools(ranks)
    planted: list[Canary] = []
    of_references: dict[tuple[Family, int], Sequence[str]] = {}
    bits: dict[tuple[Family, int], float] = {}
    for family in FAMILIES:
        if not all(word[1:-1] in pools for text in _FORMS[family] for word in text.split(" ") if word.startswith("{")):
            continue
        times = [*repetitions] if family == "kept" else [1, *repetitions]
        for form, text in enumerate(_FORMS[family]):
            # Each form has chance of its own, so that more of one leaves the others as they are.
            chance = random.Random(f"{seed} {family} {form}")
            sentences = _sentences(text, pools, random.Random(f"{seed} {family} {form} words"))
            share = _share(canaries, form)
            for count in times:
                planted += [Canary(*next(sentences), family, form, count) for _ in range(share)]
            if family == "kept":
                tosses = [int(chance.random() < 0.5) for _ in range(_share(coins, form))]
                planted += [Canary(*next(sentences), family, form, tossed, is_coin=True) for tossed in tosses]
            of_references[family, form] = [next(sentences)[0] for _ in range(references)]
            bits[family, form] = _bits(text, pools)
    return Canaries(planted, of_references, bits)


def make_secrets(
    ranks: Mapping[str, int],
    forms: Mapping[Family, Sequence[str]],
    secrets: int,
    repetitions: Sequence[int],
    references: int,
    seed: int,
) -> Canaries:
    """Canaries of any forms, so many of each family for each number of repetitions; forms hold ``{common}`` words."""
    pools = _pools(ranks)
    planted: list[Canary] = []
    of_references: dict[tuple[Family, int], Sequence[str]] = {}
    bits: dict[tuple[Family, int], float] = {}
    for family, texts in forms.items():
        for form, text in enumerate(texts):
            sentences = _sentences(text, pools, random.Random(f"{seed} {family} {form} secret"))
            share = secrets // len(texts) + (form < secrets % len(texts))
            for count in repetitions:
                planted += [Canary(*next(sentences), family, form, count) for _ in range(share)]
            of_references[family, form] = [next(sentences)[0] for _ in range(references)]
            bits[family, form] = _bits(text, pools)
    return Canaries(planted, of_references, bits)


def _bits(form: str, pools: Mapping[str, Sequence[str]]) -> float:
    """log2 of how many sentences a form has."""
    return sum(log2(len(pools[word[1:-1]])) for word in form.split(" ") if word.startswith("{"))


def _share(count: int, form: int) -> int:
    """Of a count, what falls to one of two forms."""
    return count // 2 if form else count - count // 2


def _sentences(
    form: str, pools: Mapping[str, Sequence[str]], chance: random.Random
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Different sentences of a form, each with the places of its drawn words, as far as the pools reach."""
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
    """The words that stand in forms, each frequent enough to be known, in an order of their own."""
    from tasks.corpora.word_list import read_word_list
    from tasks.labelled_text.value_pools import cities, first_names, last_names
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
        # Of English text those that the shipped list keeps; any language has frequent words.
        "common": sorted(safe.intersection(common)) if len(safe.intersection(common)) >= _FEWEST_WORDS else common,
        "number": sorted(word for word in ranks if known(word) and word.isascii() and word.isdecimal()),
        "first": names(first_names("en_US", female=True), first_names("en_US", female=False)),
        "last": names(last_names("en_US", female=True)),
        "city": names(cities()),
    }
    return {name: words for name, words in pools.items() if len(words) >= _FEWEST_WORDS}
