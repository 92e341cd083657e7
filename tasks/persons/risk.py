"""Measures of the risk of persons. A fact is protected if the attacker does not name its true value.

- **CPR**, collective protection rate: the share of all facts of all persons that is protected.
- **IPR**, individual protection rate: the share of a person's facts that is protected, mean over persons with a fact.
  Both are those of SPIA (ACL 2026, arXiv:2604.21211). Intervals are at 95 %, by a bootstrap over documents.
- **k** of a person: the number of persons of the facts file that have all quasi-identifiers inferred about the person
  (Sweeney 2002). A person with k = 1 is *alone*.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import attrgetter
from statistics import fmean, median
from typing import Any

from tasks.audit.figure import Figure, share_figure
from tasks.persons.facts import DIRECT, Document
from tasks.persons.population import Population
from tasks.persons.questions import Question

Answers = Sequence[tuple[Question, bool]]
"""Questions, and whether the attacker names the true value."""
Named = Sequence[set[int]]
"""Places of the named values among the candidates of each question."""


def collective(answers: Answers) -> Figure:
    """CPR."""
    documents = _by(answers, lambda one: one.document).values()
    return share_figure([sum(not named for _, named in each) for each in documents], [*map(len, documents)], "")


def individual(answers: Answers) -> Figure:
    """IPR."""
    shares = defaultdict(list)
    for (document, _), facts in _by(answers, lambda one: (one.document, one.person)).items():
        shares[document].append(fmean(not named for _, named in facts))
    return share_figure([*map(sum, shares.values())], [*map(len, shares.values())], "")


def sizes(answers: Answers, documents: Sequence[Document]) -> list[int]:
    """k of each person who has a fact."""
    everyone = [person for document in documents for person in document.persons]
    having: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for number, person in enumerate(everyone):
        for fact in person.facts:
            having[fact.value].add(number)
    return [
        len(set.intersection(*sorted((having[value] for value in own), key=len))) if own else len(everyone)
        for own in inferred(answers)
    ]


def inferred(answers: Answers) -> list[set[tuple[str, str]]]:
    """The quasi-identifiers that were named of each person who has a fact."""
    return [
        {one.fact.value for one, named in facts if named and one.fact.attribute not in DIRECT}
        for facts in _by(answers, lambda one: (one.document, one.person)).values()
    ]


def measured(
    asked: Sequence[Question],
    named: Named,
    blind: Named,
    documents: Sequence[Document],
    population: Population | None = None,
) -> dict[str, Any]:
    """The measures of one attacker; ``blind``: places that it names without a text. There is at least one question."""
    read, unread = ([(one, one.answer in of) for one, of in zip(asked, each, strict=True)] for each in (named, blind))
    of_persons = sizes(read, documents)
    found = {
        **collective(read).fields("cpr"),
        "cpr_blind": collective(unread).value,
        "cpr_chance": 1 - fmean(1 / len(one.candidates) for one in asked),
        **individual(read).fields("ipr"),
        "ipr_blind": individual(unread).value,
        "persons": len(of_persons),
        "alone": of_persons.count(1),
        "k_median": median(of_persons),
        "candidates": sum(len(one.candidates) for one in asked),
    }
    if population:
        found |= population.measured(inferred(read))
    for name in ("hardness", "attribute"):
        ours, theirs = (_by(each, attrgetter(f"fact.{name}")) for each in (read, unread))
        found[f"by_{name}"] = {
            str(key): collective(ours[key]).fields("cpr") | {"cpr_blind": collective(theirs[key]).value}
            for key in sorted(ours)
        }
    return found


def _by(answers: Answers, key: Callable[[Question], Any]) -> dict[Any, list[tuple[Question, bool]]]:
    found = defaultdict(list)
    for one, named in answers:
        found[key(one)].append((one, named))
    return found
