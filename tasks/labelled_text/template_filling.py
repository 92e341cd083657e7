"""Filling a template: text and spans at the same time."""

import random
import re

from tasks.labelled_text.articles import agree
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan
from tasks.labelled_text.slots import SLOT_KINDS, Gazetteer, Sentence, fill_slot
from tasks.labelled_text.template import Template

_ENDS_SENTENCE = re.compile(r"(?:^|[.!?:]\s+|[.!?:][\"”']\s+|\n|^[\"“'(]|[.!?:]\s+[\"“'(])\Z")
_CAPITALISED = (None, "DATE", "TIME", "MONEY")
"""Labels whose values are common words or figures, and get a capital where a sentence starts."""
_ENDS_WITH_ARTICLE = re.compile(r"\b(?:the|a|an|his|her|our|my|their|your) \Z", re.IGNORECASE)


def fill_template(
    template: Template, gazetteer: Gazetteer, random_numbers: random.Random, number: int = 1
) -> LabelledLine:
    """One sentence of a template.

    Every span is exactly the value that was filled in. Two words go with a value and stay outside its span: the
    article of a name ("the Alps"), which falls away behind an article or a possessive of the template ("our Alps"), and
    the noun of a people that has no word for one of its own ("a Swiss citizen").
    """
    sentence = Sentence(gazetteer, random_numbers, genders=_genders(template))
    capitals = _starts_with_capitals(template)
    text = ""
    spans: list[LabelledSpan] = []
    for piece in template.pieces:
        if isinstance(piece, str):
            text += piece
            continue
        value, label = fill_slot(piece, sentence), SLOT_KINDS[piece.kind].label
        before, value, behind = _split_value(value) if label else ("", value, "")
        if before and _ENDS_WITH_ARTICLE.search(text):
            before = ""
        if not before:
            text = agree(text, value)
        if capitals and "lower" not in piece.modifiers and _ENDS_SENTENCE.search(text):
            if before:
                before = before.capitalize()
            elif label in _CAPITALISED:
                value = value[:1].upper() + value[1:]
        text += before
        if label is not None:
            spans.append(LabelledSpan(len(text), len(text) + len(value), label))
        text += value + behind
    return LabelledLine(text, tuple(spans), number, template.identity)


def _split_value(value: str) -> tuple[str, str, str]:
    """Article, value and noun; each of the outer ones may be empty."""
    before = "the " if value.startswith("the ") and len(value) > 4 else ""
    behind = " citizen" if value.endswith(" citizen") else ""
    return before, value[len(before) : len(value) - len(behind)], behind


def _starts_with_capitals(template: Template) -> bool:
    """Whether a template is written with capitals at the start of its sentences."""
    literals = [piece for piece in template.pieces if isinstance(piece, str)]
    if not isinstance(template.pieces[0], str):
        return any(character.isupper() or character in ".?!" for literal in literals for character in literal)
    return template.pieces[0][:1].isupper() or any(re.search(r"[.!?] [A-Z]", literal) for literal in literals)


def _genders(template: Template) -> dict[int, bool]:
    """The gender of each numbered person, where any of its slots asks for one."""
    return {
        slot.thing: female
        for slot in template.slots
        if slot.thing is not None and (female := SLOT_KINDS[slot.kind].female) is not None
    }
