"""Attackers: which of the candidate values does the text reveal?

An attacker is a function. It names some values of each question, usually one, by their places among the candidates. A
fact is inferred if its true value is named. A better attacker infers more. A new one is a row of ``ATTACKERS``.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tasks.corpora.words import fold, folded_words
from tasks.persons.facts import Document, Value, facts_of
from tasks.persons.questions import Question

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel, Words

_GAP = re.compile(r"(?<=\d)[\s().+-]+(?=\d)")
_FEWEST_DIGITS = 5
_NAMES = {"LOCATION": "place of residence", "RELATIONSHIP": "marital status", "SEX": "gender"}
"""How a question calls an attribute, if it is not the tag in lower case."""
_WEIGHT_ALONE = 0.5


@dataclass
class Knowledge:
    """What attackers know without the texts."""

    documents: Sequence[Document]
    model: str
    """Causal language model by folder, hub name or ``package:NAME``."""
    alone: "dict[Words, float]" = field(default_factory=dict)
    """Log-probability of each answer without a passage, in nats."""

    @cached_property
    def language_model(self) -> "LanguageModel":
        """The model, loaded once."""
        from tasks.language_model.causal_lm.scoring import CausalScorer

        return CausalScorer.load(self.model)

    @cached_property
    def counts(self) -> tuple[Counter[Value], list[Counter[Value]]]:
        """Numbers of facts with a value: of all documents, and of each."""
        own = [Counter(fact.value for fact in facts_of([document])) for document in self.documents]
        return Counter(fact.value for fact in facts_of(self.documents)), own


Attacker = Callable[[Sequence[Question], Knowledge], list[set[int]]]


def verbatim(asked: Sequence[Question], knowledge: Knowledge) -> list[set[int]]:
    """Names each value whose words are all in the text, in any order, or whose digits are.

    Case is ignored, and so are signs within numbers. Of a place such as ``Ulm / Germany``, ``Ulm`` is enough.
    """
    words = {text: set(folded_words(text)) for text in {one.text for one in asked}}
    digits = {text: _GAP.sub("", text) for text in words}

    def is_in(value: str, text: str) -> bool:
        own, number = folded_words(value), re.sub(r"\D", "", value)
        return (bool(own) and words[text].issuperset(own)) or (len(number) >= _FEWEST_DIGITS and number in digits[text])

    return [
        {place for place, value in enumerate(one.candidates) if is_in(value.split(" / ")[0], one.text)} for one in asked
    ]


def frequency(asked: Sequence[Question], knowledge: Knowledge) -> list[set[int]]:
    """Names the value that most facts of other documents have; reads no text."""
    (everywhere, own), found = knowledge.counts, []
    for one in asked:
        values = [(one.fact.attribute, fold(keyword)) for keyword in one.candidates]
        counts = [everywhere[value] - own[one.document][value] for value in values]
        found.append({counts.index(max(counts))})
    return found


def language_model(asked: Sequence[Question], knowledge: Knowledge) -> list[set[int]]:
    """Names the value of the highest score: log p(answer | passage) - log p(answer) / 2.

    The second term makes rare and long values comparable with others. With half of it, SmolLM2 inferred 55 % of 186
    facts of raw court decisions, with all of it 35 %, without it 41 %. Questions with the same passage are read at once.
    """
    answers = [[_answer(one.fact.attribute, value) for value in one.candidates] for one in asked]
    passages = [tuple(one.passage.split()) for one in asked]
    groups: defaultdict[Words, dict[Words, float]] = defaultdict(dict)
    for passage, given in zip(passages, answers, strict=True):
        groups[()] |= {answer: 0.0 for answer in given if answer not in knowledge.alone}
        groups[passage] |= dict.fromkeys(given if passage else [], 0.0)
    unread = {passage: group for passage, group in groups.items() if group}
    sentences = [[(*passage, *answer) for answer in group] for passage, group in unread.items()]
    for (passage, group), scores in zip(
        unread.items(), knowledge.language_model.score_sentences(sentences), strict=True
    ):
        (group if passage else knowledge.alone).update(zip(group, scores.tolist(), strict=True))
    found = []
    for passage, given in zip(passages, answers, strict=True):
        read = groups[passage] if passage else knowledge.alone
        values = [read[answer] - _WEIGHT_ALONE * knowledge.alone[answer] for answer in given]
        found.append({values.index(max(values))})
    return found


ATTACKERS: Mapping[str, Attacker] = {each.__name__: each for each in (verbatim, frequency, language_model)}


def _answer(attribute: str, value: str) -> "Words":
    name = _NAMES.get(attribute, attribute.lower().replace("_", " "))
    return ("The", *name.split(), "of", "this", "person", "is", *value.split())
