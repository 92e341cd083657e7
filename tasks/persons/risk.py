"""Measures of the risk of persons: rates of protection, and persons who are alone with the facts inferred about them.

A fact is protected if the attacker does not name its true value.

- **CPR**, collective protection rate: the share of all facts of all persons that is protected.
- **IPR**, individual protection rate: the share of a person's facts that is protected, mean over persons with a fact.

Both are those of SPIA (ACL 2026, arXiv:2604.21211). Intervals are at 95 %, by a bootstrap over documents.

- **k** of a person: the number of persons of the facts file that have all quasi-identifiers inferred about the person
  (Sweeney 2002). A person with k = 1 is *alone*. If nothing is inferred, k is the number of all persons.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tasks.audit.figure import Figure, share_figure
from tasks.persons.attackers import ATTACKERS, Knowledge
from tasks.persons.facts import DIRECT, Document
from tasks.persons.questions import Question


@dataclass(frozen=True)
class Attack:
    """The result of one attacker on one version of the documents."""

    attacker: str
    asked: Sequence[Question]
    inferred: Sequence[bool]
    """Whether the true value of each question is named."""

    @classmethod
    def carried_out(cls, attacker: str, asked: Sequence[Question], knowledge: Knowledge) -> "Attack":
        """Ask the questions."""
        named = ATTACKERS[attacker](asked, knowledge)
        return cls(attacker, asked, [one.answer in places for one, places in zip(asked, named, strict=True)])

    def collective(self) -> Figure:
        """CPR."""
        hits: defaultdict[int, list[bool]] = defaultdict(list)
        for one, inferred in zip(self.asked, self.inferred, strict=True):
            hits[one.document].append(not inferred)
        return share_figure([*map(sum, hits.values())], [*map(len, hits.values())], self.attacker)

    def individual(self) -> Figure:
        """IPR."""
        shares: defaultdict[int, list[float]] = defaultdict(list)
        for (document, _), facts in self._by_person().items():
            shares[document].append(sum(not inferred for _, inferred in facts) / len(facts))
        return share_figure([*map(sum, shares.values())], [*map(len, shares.values())], self.attacker)

    def by(self, field: str) -> dict[str, "Attack"]:
        """The same attack on the facts of each value of a field, such as each hardness."""
        found: defaultdict[str, list[tuple[Question, bool]]] = defaultdict(list)
        for one, inferred in zip(self.asked, self.inferred, strict=True):
            found[str(getattr(one.fact, field))].append((one, inferred))
        return {key: Attack(self.attacker, *zip(*found[key], strict=True)) for key in sorted(found)}

    def sizes(self, documents: Sequence[Document]) -> list[int]:
        """k of each person who has a fact."""
        everyone = [{fact.value for fact in person.facts} for document in documents for person in document.persons]
        inferred = [
            {one.fact.value for one, is_inferred in facts if is_inferred and one.fact.attribute not in DIRECT}
            for facts in self._by_person().values()
        ]
        return [sum(values >= own for values in everyone) for own in inferred]

    def _by_person(self) -> dict[tuple[int, int], list[tuple[Question, bool]]]:
        found: defaultdict[tuple[int, int], list[tuple[Question, bool]]] = defaultdict(list)
        for one, inferred in zip(self.asked, self.inferred, strict=True):
            found[one.document, one.person].append((one, inferred))
        return found


def measured(attack: Attack, blind: Attack, documents: Sequence[Document]) -> dict[str, Any]:
    """The measures of an attack; ``blind`` is the same attacker without a text. CPR is also given by group."""
    sizes = attack.sizes(documents)
    chance = [1 / len(one.candidates) for one in attack.asked]
    found = {
        **attack.collective().fields("cpr"),
        "cpr_blind": blind.collective().value,
        "cpr_chance": 1 - sum(chance) / len(chance) if chance else None,
        **attack.individual().fields("ipr"),
        "ipr_blind": blind.individual().value,
        "persons": len(sizes),
        "alone": sizes.count(1),
        "k_median": median(sizes) if sizes else None,
    }
    for field in ("hardness", "attribute"):
        unread = blind.by(field)
        found[f"by_{field}"] = {
            key: {**one.collective().fields("cpr"), "cpr_blind": unread[key].collective().value}
            for key, one in attack.by(field).items()
        }
    return found
