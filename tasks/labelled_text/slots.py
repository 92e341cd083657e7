"""Slots filled with made-up values.

Kinds without a label (pronouns, forms of address, jobs, ordinary numbers) vary the text and are private to nobody.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from tasks.labelled_text.template import Slot, Template
from tasks.made_up.made_up import MadeUp
from tasks.made_up.pools import shipped_values, without_article
from tasks.made_up.thing import Thing

SLOT_LABELS: Mapping[str, str | None] = {
    kind: None if label == "-" else label for label, _, kinds in shipped_values("labels") for kind in kinds.split()
}
"""Fine label, a key of ``LABEL_CLASSES``, by kind of slot; ``None`` for a kind without a label."""
_GENDERS = {"_FEMALE": True, "_MALE": False}
"""Endings of kinds that require a gender, and whether it is female."""
_ATTEMPTS = 40
"""Draws of a value with the required number of words, before another number is accepted."""


@dataclass
class Sentence:
    """Values of the slots of one sentence."""

    made_up: MadeUp
    random_numbers: random.Random
    genders: Mapping[int, bool] = field(default_factory=dict)
    """Whether a numbered person is female, if a slot of the template requires a gender."""
    things: dict[int, Thing] = field(default_factory=dict)
    values: dict[tuple[str, int], str] = field(default_factory=dict)

    def value(self, slot: Slot) -> str:
        """The value of one slot in its form; equal slots of one number have equal values."""
        if slot.thing is None:
            value = self._draw(slot)
        else:
            key = (slot.kind, slot.thing)
            value = self.values[key] = self.values.get(key) or self._draw(slot)
        for modifier in slot.modifiers:
            if modifier == "lower":
                value = value.lower()
            elif modifier == "upper":
                value = value.upper()
            elif modifier == "hashtag":
                value = "#" + "".join(filter(str.isalnum, without_article(value)))
        return value

    def _draw(self, slot: Slot) -> str:
        ending, female = next(((e, f) for e, f in _GENDERS.items() if slot.kind.endswith(e)), ("", None))
        kind = slot.kind.removesuffix(ending).lower()
        words = next((int(modifier[6:]) for modifier in slot.modifiers if modifier.startswith("words=")), None)
        for _ in range(_ATTEMPTS):
            value = self._thing(slot, female).make(kind)
            if words is None or len(without_article(value).split()) == words:
                break
            # A person without a name of that many words is replaced by another person.
            self.things.pop(slot.thing or 0, None)
        return value

    def _thing(self, slot: Slot, female: bool | None) -> Thing:
        if slot.thing is None:
            return Thing(self.made_up, self.random_numbers, female)
        if slot.thing not in self.things:
            wanted = self.genders.get(slot.thing, female)
            self.things[slot.thing] = Thing(self.made_up, self.random_numbers, wanted)
        return self.things[slot.thing]


def required_genders(template: Template) -> dict[int, bool]:
    """Whether each numbered person for whom a slot requires a gender is female."""
    return {
        slot.thing: female
        for slot in template.slots
        for ending, female in _GENDERS.items()
        if slot.thing is not None and slot.kind.endswith(ending)
    }
