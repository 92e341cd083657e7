"""Train, valid and test files of labelled text, filled from templates.

A hash of a template's folded text decides its part. So a template stays in its part, with any other templates, files or
seeds. Near duplicates (other case, punctuation or digits) are in one part.
"""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count as count_from
from itertools import pairwise
from pathlib import Path

from tasks.corpora.sources.document import PARTS, Part
from tasks.errors import CorpusError
from tasks.labelled_text.articles import agree
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, write_labelled
from tasks.labelled_text.settings import LabelledTextSettings
from tasks.labelled_text.slots import SLOT_KINDS, Gazetteer, Sentence, fill_slot
from tasks.labelled_text.template import Template

RESERVED_SHARE = 0.15
"""Share of the names, cities, companies and other long lists of values that only the test part has."""
_LEARNED_SHARE = 0.5
"""Share of the lines from learned templates, if there are other templates too."""
_LOWER_VALUES_SHARE = 0.5
"""Among templates without capitals of their own, the share of lines whose values have none either."""
_UNPUNCTUATED_SHARE = 0.1
"""Share of the lines that lose the full stop, question or exclamation mark at their end."""
_SPACED_SHARE = 0.1
"""Share of the lines with spaces around punctuation, as in tokenised text."""
_FINAL = re.compile(r"[.!?…]+\s*\Z")
_SPACED = re.compile(
    r"(?<=\S)(?=[,;:!?)\]\"…](?:[\s,.;:)]|\Z))"  # before a mark that ends a word
    r"|(?<=[(\[\"])(?=\w)"  # after an opening mark
    r"|(?<=\w)(?=\.\Z|\.\s+[A-Z\"])"  # before the full stop of a sentence
    r"|(?<=\w)(?=['’](?:s|m|d|re|ve|ll)\b)|(?<=\w)(?=n['’]t\b)"  # before a clitic
    r"|(?<=[$€£])(?=\d)"  # after a sign of currency
)


def lower_cased(line: LabelledLine) -> LabelledLine:
    """The line in lower case."""
    return _mapped(line, str.lower)


def upper_cased(line: LabelledLine) -> LabelledLine:
    """The line in capitals."""
    return _mapped(line, str.upper)


def unpunctuated(line: LabelledLine) -> LabelledLine:
    """The line without the marks at its end, unless they belong to a value."""
    match = _FINAL.search(line.text)
    if not match or not match.start():
        return line
    end = max([match.start(), *(span.end for span in line.spans)])
    return LabelledLine(line.text[:end], line.spans, line.number, line.template)


def spaced(line: LabelledLine) -> LabelledLine:
    """The line in tokenised form: ``Ben 's here , is n't he ?``; spaces never enter a span at its edge."""
    places = [match.start() for match in _SPACED.finditer(line.text) if 0 < match.start() < len(line.text)]
    if not places:
        return line
    text = "".join(
        line.text[start:end] + " " for start, end in zip([0, *places], [*places, len(line.text)], strict=True)
    )[:-1]
    spans = tuple(
        LabelledSpan(
            span.start + sum(place <= span.start for place in places),
            span.end + sum(place < span.end for place in places),
            span.label,
        )
        for span in line.spans
    )
    return LabelledLine(text, spans, line.number, line.template)


def joined(first: LabelledLine, second: LabelledLine) -> LabelledLine:
    """Two sentences as one line."""
    shift = len(first.text) + 1
    moved = tuple(LabelledSpan(span.start + shift, span.end + shift, span.label) for span in second.spans)
    return LabelledLine(
        f"{first.text} {second.text}", first.spans + moved, first.number, f"{first.template}+{second.template}"
    )


def _mapped(line: LabelledLine, change: Callable[[str], str]) -> LabelledLine:
    """Change the pieces between span edges one by one: a change of case can change the length."""
    edges = sorted({0, len(line.text), *(edge for span in line.spans for edge in (span.start, span.end))})
    moved = {0: 0}
    text = ""
    for start, end in pairwise(edges):
        text += change(line.text[start:end])
        moved[end] = len(text)
    spans = tuple(LabelledSpan(moved[span.start], moved[span.end], span.label) for span in line.spans)
    return LabelledLine(text, spans, line.number, line.template)


_ENDS_SENTENCE = re.compile(r"(?:^|[.!?:]\s+|[.!?:][\"”']\s+|\n|^[\"“'(]|[.!?:]\s+[\"“'(])\Z")
_CAPITALISED = (None, "DATE", "TIME", "MONEY")
"""Labels whose values are common words or figures; they get a capital at the start of a sentence."""
_ENDS_WITH_ARTICLE = re.compile(r"\b(?:the|a|an|his|her|our|my|their|your) \Z", re.IGNORECASE)


def fill_template(
    template: Template, gazetteer: Gazetteer, random_numbers: random.Random, number: int = 1
) -> LabelledLine:
    """One sentence of a template.

    Every span is exactly the value that was filled in. Two words accompany a value outside its span. One is the article
    of a name ("the Alps"), dropped after an article or a possessive of the template ("our Alps"). The other is the noun
    of a people without a word of its own ("a Swiss citizen").
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
    """Article, value and noun; article and noun may be empty."""
    before = "the " if value.startswith("the ") and len(value) > 4 else ""
    behind = " citizen" if value.endswith(" citizen") else ""
    return before, value[len(before) : len(value) - len(behind)], behind


def _starts_with_capitals(template: Template) -> bool:
    """Whether a template has capitals at the start of its sentences."""
    literals = [piece for piece in template.pieces if isinstance(piece, str)]
    if not isinstance(template.pieces[0], str):
        return any(character.isupper() or character in ".?!" for literal in literals for character in literal)
    return template.pieces[0][:1].isupper() or any(re.search(r"[.!?] [A-Z]", literal) for literal in literals)


def _genders(template: Template) -> dict[int, bool]:
    """The gender of each numbered person for whom a slot requires one."""
    return {
        slot.thing: female
        for slot in template.slots
        if slot.thing is not None and (female := SLOT_KINDS[slot.kind].female) is not None
    }


def part_of(template: Template, valid_share: float, test_share: float) -> Part:
    """The part of a template; the shares are of the templates, not of the sentences."""
    digest = hashlib.sha256(b"part\0" + template.folded.encode("utf-8")).digest()
    place = int.from_bytes(digest[:8]) / 2**64
    if place < test_share:
        return "test"
    return "valid" if place < test_share + valid_share else "train"


_ATTEMPTS = 4
"""Draws of a line whose text is in the part already, before a repetition is accepted."""
_SENTENCE_ENDS = (".", "!", "?", "…", ")")


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """Templates of one register: two sentences of a line come from one such file."""

    name: str
    templates: Sequence[Template]
    learned: bool = False


@dataclass
class GenerationTally:
    """Counts of the generated lines, by part."""

    templates: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    lines: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    lines_without_span: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    spans: Counter[str] = field(default_factory=Counter)
    lower_cased: int = 0
    """Lines that were lower-cased although their template has capitals."""
    lower_values: int = 0
    """Lines of templates without capitals whose values were lower-cased."""
    upper_cased: int = 0
    joined: int = 0
    repeated: int = 0
    """Lines whose text is in the part already: a template without slots always gives the same text."""


def write_generated(
    folder: Path, files: Sequence[TemplateFile], settings: LabelledTextSettings, *, private: bool = False
) -> GenerationTally:
    """Write ``train.jsonl``, ``valid.jsonl`` and ``test.jsonl``; the same settings write the same bytes.

    Raises ``CorpusError`` if a part with lines in the settings has no template.
    """
    tally = GenerationTally()
    by_part = _divided(files, settings)
    sizes = _sizes(settings)
    for part in PARTS:
        tally.templates[part] = len({template.identity for file in by_part[part] for template in file.templates})
        if sizes[part] and not by_part[part]:
            raise CorpusError(
                f"no template falls into the {part} part; bring more templates, or set {part}_share to 0"
                if part != "train"
                else "no template falls into the train part; bring more templates"
            )
    for part in PARTS:
        lines = _lines(part, by_part[part], sizes[part], settings, tally)
        write_labelled(folder / f"{part}.jsonl", lines, private=private)
    return tally


def _sizes(settings: LabelledTextSettings) -> dict[Part, int]:
    valid, test = round(settings.sentences * settings.valid_share), round(settings.sentences * settings.test_share)
    return {"train": settings.sentences - valid - test, "valid": valid, "test": test}


def _divided(files: Sequence[TemplateFile], settings: LabelledTextSettings) -> dict[Part, list[TemplateFile]]:
    parts: dict[Part, list[TemplateFile]] = {part: [] for part in PARTS}
    for file in files:
        templates: dict[Part, dict[str, Template]] = {part: {} for part in PARTS}
        for template in file.templates:
            templates[part_of(template, settings.valid_share, settings.test_share)][str(template)] = template
        for part in PARTS:
            if templates[part]:
                parts[part].append(TemplateFile(file.name, list(templates[part].values()), file.learned))
    return parts


class _Choice:
    """Draws templates of one part: by origin, by whether they have labelled slots, then evenly."""

    def __init__(self, files: Sequence[TemplateFile], settings: LabelledTextSettings) -> None:
        self._settings = settings
        self._groups: dict[tuple[bool, bool], list[tuple[TemplateFile, Template]]] = {}
        for file in files:
            for template in file.templates:
                key = (file.learned, _is_negative(template))
                self._groups.setdefault(key, []).append((file, template))

    def kind_of_line(self, random_numbers: random.Random) -> tuple[bool, bool]:
        """Whether a line's templates are learned ones, and whether they have no labelled slot."""
        learned = random_numbers.random() < _LEARNED_SHARE
        negative = random_numbers.random() < self._settings.negative_share
        # A missing kind is replaced: first negative or positive, then the origin.
        wishes = ((learned, negative), (learned, not negative), (not learned, negative), (not learned, not negative))
        return next(wish for wish in wishes if wish in self._groups)

    def draw(self, kind: tuple[bool, bool], random_numbers: random.Random) -> tuple[TemplateFile, Template]:
        """A template of a kind, and its file."""
        return random_numbers.choice(self._groups[kind])


def _is_negative(template: Template) -> bool:
    return all(SLOT_KINDS[slot.kind].label is None for slot in template.slots)


def _lines(
    part: Part, files: Sequence[TemplateFile], size: int, settings: LabelledTextSettings, tally: GenerationTally
) -> Iterator[LabelledLine]:
    # A text seed is hashed with SHA-512, the same in every process.
    random_numbers = random.Random(f"{settings.seed} {part}")
    choice = _Choice(files, settings) if size else None
    gazetteer = Gazetteer(part, RESERVED_SHARE)
    seen: set[str] = set()
    for number in count_from(1):
        if choice is None or number > size:
            return
        kind = choice.kind_of_line(random_numbers)
        for _ in range(_ATTEMPTS):
            line, notes = _one_line(choice, kind, gazetteer, random_numbers, settings, number)
            if line.text not in seen:
                break
        else:
            notes["repeated"] += 1
        seen.add(line.text)
        for name, added in notes.items():
            setattr(tally, name, getattr(tally, name) + added)
        tally.lines[part] += 1
        tally.lines_without_span[part] += not line.spans
        tally.spans.update(span.label for span in line.spans)
        yield line


def _one_line(
    choice: _Choice,
    kind: tuple[bool, bool],
    gazetteer: Gazetteer,
    random_numbers: random.Random,
    settings: LabelledTextSettings,
    number: int,
) -> tuple[LabelledLine, Counter[str]]:
    """A line, and the counts of its changes."""
    notes: Counter[str] = Counter()
    file, template = choice.draw(kind, random_numbers)
    line = fill_template(template, gazetteer, random_numbers, number)
    literal = "".join(piece for piece in template.pieces if isinstance(piece, str))
    if random_numbers.random() < settings.joined_share:
        other = random_numbers.choice(file.templates)
        # A line without private values gets none.
        fits = other.identity != template.identity and not (kind[1] and not _is_negative(other))
        if fits and line.text.rstrip().endswith(_SENTENCE_ENDS):
            line = joined(line, fill_template(other, gazetteer, random_numbers, number))
            literal += "".join(piece for piece in other.pieces if isinstance(piece, str))
            notes["joined"] += 1
    if settings.unlabelled:
        kept = tuple(span for span in line.spans if span.label not in settings.unlabelled)
        line = LabelledLine(line.text, kept, number, line.template)
    # Each number is drawn even if unused, so that one share does not change the other draws.
    case, values_case, mark, space = (random_numbers.random() for _ in range(4))
    if mark < _UNPUNCTUATED_SHARE:
        line = unpunctuated(line)
    if space < _SPACED_SHARE:
        line = spaced(line)
    if case < settings.lower_case_share:
        line = lower_cased(line)
        notes["lower_cased"] += literal != literal.lower()
        notes["lower_values"] += literal == literal.lower()
    elif case > 1 - settings.upper_case_share:
        line = upper_cased(line)
        notes["upper_cased"] += 1
    elif literal == literal.lower() and any(map(str.isalpha, literal)) and values_case < _LOWER_VALUES_SHARE:
        line = lower_cased(line)
        notes["lower_values"] += 1
    return line, notes
