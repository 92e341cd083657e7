"""Attackers: which of the candidate values does the text reveal?

An attacker is a function. It names some values of each question, usually one, by their places among the candidates. A
fact is inferred if its true value is named. A better attacker infers more. A new one is a row of ``ATTACKERS``.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
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
_PROMPT = """A passage about a person:

{passage}

Which of these values is the {attribute} of this person?

{values}

Choose the most probable one, even if you are not sure. Answer with its number alone."""
Answering = Callable[[Sequence[str]], Iterable[str]]
"""The answers of a chat model to prompts."""


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


def endpoint(asked: Sequence[Question], documents: Sequence[Document], model: Answering) -> list[set[int]]:
    """Names the value that a chat model chooses by its number or word for word; of any other answer, none."""
    prompts = [
        _PROMPT.format(
            passage=one.passage or "(no text)",
            attribute=_called(one.fact.attribute),
            values="\n".join(f"{number}. {value}" for number, value in enumerate(one.candidates, start=1)),
        )
        for one in asked
    ]
    return [_chosen(answer, one.candidates) for answer, one in zip(model(prompts), asked, strict=True)]


def _chosen(answer: str, candidates: Sequence[str]) -> set[int]:
    """The place of the number in the last line of an answer, else of the only value that is all of this line."""
    last = (answer.strip().splitlines() or [""])[-1]
    numbers = {int(number) for number in re.findall(r"(?<!\w)[0-9]{1,4}(?!\w)", last)}
    if len(numbers) == 1 and 1 <= min(numbers) <= len(candidates):
        return {min(numbers) - 1}
    same = {place for place, value in enumerate(candidates) if fold(value) == fold(last.strip(" .\"'"))}
    return same if len(same) == 1 else set()


ATTACKERS: Mapping[str, Callable[[Sequence[Question], Sequence[Document], Any], list[set[int]]]] = {
    each.__name__: each for each in (verbatim, frequency, language_model, endpoint)
}
"""Functions of questions, all documents of the facts file, and the attacker's model, if it has one."""


def _highest(scores: list[float]) -> set[int]:
    return {scores.index(max(scores))}


def _called(attribute: str) -> str:
    return _CALLED.get(attribute, attribute.lower().replace("_", " "))


def _answer(attribute: str, value: str) -> "Words":
    return ("The", *_called(attribute).split(), "of", "this", "person", "is", *value.split())
