"""Questions about facts: which of these values is the person's?

The values are those of the attribute in the whole facts file: the true one at a random place among others. A question
does not describe the person, since a description repeats facts. A passage leads the attacker to the person.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from random import Random

from tasks.corpora.words import folded_words
from tasks.persons.facts import Document, Fact, facts_of

_SENTENCE_END = re.compile(r"(?<=[.!?”])(?<!\b\w\.)(?<!\b\w\w\.)(?<!\bMrs\.)\s+|\n+")  # not after Mr. or J.
LONGEST = 60
"""Most words of a passage."""
_SHORTEST = 3  # letters of a word of a description that selects sentences


@dataclass(frozen=True, slots=True)
class Question:
    """One fact of one person, to be found among other values."""

    document: int
    person: int
    fact: Fact
    candidates: tuple[str, ...]
    answer: int
    """Place of the true value among the candidates."""
    text: str = ""
    """Text of the document that the attacker reads; empty for a blind attacker."""
    passage: str = ""
    """Sentences of the text about the person."""


def questions(
    documents: Sequence[Document], texts: Sequence[str], chosen: Sequence[int], most: int, seed: int
) -> list[Question]:
    """A question about each fact of the ``chosen`` documents, with at most ``most`` candidates.

    Candidates depend on the seed and not on the texts: all versions are asked the same.
    """
    values: dict[str, dict[str, str]] = {}
    for fact in facts_of(documents):
        values.setdefault(fact.attribute, {}).setdefault(fact.value[1], fact.keyword)
    keywords = {attribute: list(found.values()) for attribute, found in values.items()}
    places = {attribute: {value: place for place, value in enumerate(found)} for attribute, found in values.items()}
    draw, asked = Random(seed), []
    for document in chosen:
        text = texts[document]
        for number, person in enumerate(documents[document].persons):
            passage = passage_about(person.description, text)
            for fact in person.facts:
                every, own = keywords[fact.attribute], places[fact.attribute][fact.value[1]]
                others = draw.sample(range(len(every) - 1), min(most, len(every)) - 1)
                candidates = [every[place + (place >= own)] for place in others]
                answer = draw.randint(0, len(candidates))
                candidates.insert(answer, fact.keyword)
                asked.append(Question(document, number, fact, tuple(candidates), answer, text, passage))
    return asked


def passage_about(description: str, text: str) -> str:
    """Whole sentences that share most words with a description, in the order of the text; at most ``LONGEST`` words.
    A shared word counts more, the fewer sentences have it. If the best sentence is longer, it is cut."""
    sentences, places_of, shortest = _sentences(text)
    shared: defaultdict[int, float] = defaultdict(float)
    for word in sorted({word for word in folded_words(description) if len(word) >= _SHORTEST}):
        for place in places_of.get(word, ()):
            shared[place] += 1 / len(places_of[word])
    best = sorted(sorted(shared), key=lambda place: -shared[place])
    chosen: list[int] = []
    length = 0
    for place in chain(best, (place for place in range(len(sentences)) if place not in shared)):
        if not chosen or length + len(sentences[place]) <= LONGEST:
            chosen.append(place)
            length += len(sentences[place])
        if length + shortest > LONGEST:
            break
    return " ".join([word for place in sorted(chosen) for word in sentences[place]][:LONGEST])


@lru_cache(maxsize=2)
def _sentences(text: str) -> tuple[list[list[str]], dict[str, list[int]], int]:
    """The words of each sentence, the places of the sentences with a folded word, and the fewest words of one."""
    sentences = [sentence.split() for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    places: dict[str, list[int]] = {}
    for place, sentence in enumerate(sentences):
        for word in set(folded_words(" ".join(sentence))):
            places.setdefault(word, []).append(place)
    return sentences, places, min(map(len, sentences), default=0)
