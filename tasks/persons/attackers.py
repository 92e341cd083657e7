"""Attackers: which of the candidate values does the text reveal?

An attacker is a function. It names some values of each question, usually one, by their places among the candidates. A
fact is inferred if its true value is named. A better attacker infers more. A new one is a row of ``ATTACKERS``.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tasks.corpora.words import fold, folded_words
from tasks.persons.facts import Document, facts_of
from tasks.persons.questions import Question

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel, Words

_GAP = re.compile(r"(?<=\d)[\s().+-]+(?=\d)")
_FEWEST_DIGITS = 5
_CALLED = {"LOCATION": "place of residence", "RELATIONSHIP": "marital status", "SEX": "gender"}
"""Attributes that a question does not call by the tag."""
_WEIGHT_ALONE = 0.5


def verbatim(asked: Sequence[Question], documents: Sequence[Document], model: object) -> list[set[int]]:
    """Names each value whose words are all in the text, in any order, or whose digits are.

    Case is ignored, and so are signs within numbers. Of a place such as ``Ulm / Germany``, ``Ulm`` is enough.
    """
    words = {text: set(folded_words(text)) for text in {one.text for one in asked}}
    digits = {text: _GAP.sub("", text) for text in words}

    def is_in(value: str, text: str) -> bool:
        own, number = folded_words(value.split(" / ")[0]), re.sub(r"\D", "", value)
        return (bool(own) and words[text].issuperset(own)) or (len(number) >= _FEWEST_DIGITS and number in digits[text])

    return [{place for place, value in enumerate(one.candidates) if is_in(value, one.text)} for one in asked]


def frequency(asked: Sequence[Question], documents: Sequence[Document], model: object) -> list[set[int]]:
    """Names the value that most facts of other documents have; reads no text."""
    own = [Counter(fact.value for fact in facts_of([document])) for document in documents]
    everywhere, found = Counter(fact.value for fact in facts_of(documents)), []
    for one in asked:
        values = [(one.fact.attribute, fold(keyword)) for keyword in one.candidates]
        found.append(_highest([everywhere[value] - own[one.document][value] for value in values]))
    return found


def language_model(asked: Sequence[Question], documents: Sequence[Document], model: "LanguageModel") -> list[set[int]]:
    """Names the value of the highest score: log p(answer | passage) - log p(answer) / 2.

    The second term makes rare and long values comparable with others. With half of it, SmolLM2 inferred 55 % of 186
    facts of raw court decisions, with all of it 35 %, without it 41 %. Equal passages are read once.
    """
    answers = [[_answer(one.fact.attribute, value) for value in one.candidates] for one in asked]
    passages = [tuple(one.passage.split()) for one in asked]
    groups: defaultdict[Words, dict[Words, None]] = defaultdict(dict)
    for passage, given in zip(passages, answers, strict=True):
        for before in ((), passage):
            groups[before].update(dict.fromkeys(given))
    sentences = [[(*passage, *answer) for answer in group] for passage, group in groups.items()]
    scores = dict(zip(groups, model.score_sentences(sentences), strict=True))
    read = {passage: dict(zip(group, scores[passage].tolist(), strict=True)) for passage, group in groups.items()}
    return [
        _highest([read[passage][answer] - _WEIGHT_ALONE * read[()][answer] for answer in given])
        for passage, given in zip(passages, answers, strict=True)
    ]


ATTACKERS: Mapping[str, Callable[[Sequence[Question], Sequence[Document], Any], list[set[int]]]] = {
    each.__name__: each for each in (verbatim, frequency, language_model)
}
"""Functions of questions, all documents of the facts file, and a language model."""


def _highest(scores: list[float]) -> set[int]:
    return {scores.index(max(scores))}


def _answer(attribute: str, value: str) -> "Words":
    name = _CALLED.get(attribute, attribute.lower().replace("_", " "))
    return ("The", *name.split(), "of", "this", "person", "is", *value.split())
