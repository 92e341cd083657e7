"""Train, valid and test files of labelled text, filled from templates.

A hash of a template's folded text decides its part. So a template stays in its part, with any other templates, files or
seeds. Near duplicates (other case, punctuation or digits) are in one part.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tasks.corpora.sources.document import PARTS, Part
from tasks.errors import CorpusError
from tasks.labelled_text.filling import fill_template
from tasks.labelled_text.labelled_lines import LabelledLine, write_labelled
from tasks.labelled_text.settings import LabelledTextSettings
from tasks.labelled_text.slots import SLOT_LABELS
from tasks.labelled_text.template import Template
from tasks.labelled_text.variants import joined, lower_cased, spaced, unpunctuated, upper_cased
from tasks.made_up.made_up import MadeUp

_LEARNED_SHARE = 0.5
"""Share of the lines from learned templates, if there are other templates too."""
_LOWER_VALUES_SHARE = 0.5
"""Among templates without capitals of their own, the share of lines whose values have none either."""
_UNPUNCTUATED_SHARE = 0.1
"""Share of the lines that lose the full stop, question or exclamation mark at their end."""
_SPACED_SHARE = 0.1
"""Share of the lines with spaces around punctuation, as in tokenised text."""
_ATTEMPTS = 4
"""Draws of a line whose text is in the part already, before a repetition is accepted."""
_SENTENCE_ENDS = (".", "!", "?", "…", ")")


@dataclass(frozen=True, slots=True)
class TemplateFile:
    """Templates of one register: two sentences of a line come from one such file."""

    templates: Sequence[Template]
    learned: bool = False


@dataclass
class GenerationTally:
    """Counts of the generated lines."""

    templates: dict[str, int] = field(default_factory=dict)
    """Different templates by part."""
    lines: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(PARTS, 0)))
    """Lines by part."""
    spans: Counter[str] = field(default_factory=Counter)
    """Spans by label."""


def part_of(template: Template, valid_share: float, test_share: float) -> Part:
    """The part of a template; the shares are of the templates, not of the sentences."""
    digest = hashlib.sha256(b"part\0" + template.folded.encode("utf-8")).digest()
    place = int.from_bytes(digest[:8]) / 2**64
    if place < test_share:
        return "test"
    return "valid" if place < test_share + valid_share else "train"


def write_generated(
    folder: Path, files: Sequence[TemplateFile], settings: LabelledTextSettings, *, private: bool = False
) -> GenerationTally:
    """Write ``train.jsonl``, ``valid.jsonl`` and ``test.jsonl``; the same settings write the same bytes.

    Raises ``CorpusError`` if a part with lines in the settings has no template.
    """
    tally = GenerationTally()
    valid, test = (round(settings.sentences * share) for share in (settings.valid_share, settings.test_share))
    sizes: dict[Part, int] = {"train": settings.sentences - valid - test, "valid": valid, "test": test}
    by_part = {part: _of_part(part, files, settings) for part in PARTS}
    for part in PARTS:
        tally.templates[part] = len({template.identity for file in by_part[part] for template in file.templates})
        if sizes[part] and not tally.templates[part]:
            less = "" if part == "train" else f", or set {part}_share to 0"
            raise CorpusError(f"no template falls into the {part} part; bring more templates{less}")
    for part in PARTS:
        lines = _Generator(part, by_part[part], settings, tally).lines(sizes[part])
        write_labelled(folder / f"{part}.jsonl", lines, private=private)
    return tally


def _of_part(part: Part, files: Sequence[TemplateFile], settings: LabelledTextSettings) -> list[TemplateFile]:
    """The files with their different templates of one part."""
    found = []
    for file in files:
        different = {str(template): template for template in file.templates}.values()
        own = [each for each in different if part_of(each, settings.valid_share, settings.test_share) == part]
        found += [replace(file, templates=own)] if own else []
    return found


class _Generator:
    """Makes the lines of one part. Templates are drawn by origin and by labelled slots, then evenly."""

    def __init__(
        self, part: Part, files: Sequence[TemplateFile], settings: LabelledTextSettings, tally: GenerationTally
    ) -> None:
        self._part, self._settings, self._tally = part, settings, tally
        # A text seed is hashed with SHA-512, the same in every process.
        self._random_numbers = random.Random(f"{settings.seed} {part}")
        self._made_up = MadeUp(part)
        self._groups: dict[tuple[bool, bool], list[tuple[TemplateFile, Template]]] = {}
        for file in files:
            for template in file.templates:
                self._groups.setdefault((file.learned, _is_negative(template)), []).append((file, template))

    def lines(self, size: int) -> Iterator[LabelledLine]:
        """So many lines; their counts go to the tally."""
        seen: set[str] = set()
        for number in range(1, size + 1):
            learned = self._random_numbers.random() < _LEARNED_SHARE
            negative = self._random_numbers.random() < self._settings.negative_share
            for _ in range(_ATTEMPTS):
                line = self._line(learned, negative, number)
                if line.text not in seen:
                    break
            seen.add(line.text)
            self._tally.lines[self._part] += 1
            self._tally.spans.update(span.label for span in line.spans)
            yield line

    def _template(self, learned: bool, negative: bool) -> tuple[TemplateFile, Template]:
        """A template and its file. A missing kind is replaced: first negative or positive, then the origin."""
        wishes = ((learned, negative), (learned, not negative), (not learned, negative), (not learned, not negative))
        return self._random_numbers.choice(next(self._groups[wish] for wish in wishes if wish in self._groups))

    def _line(self, learned: bool, negative: bool, number: int) -> LabelledLine:
        settings, draw = self._settings, self._random_numbers.random
        file, template = self._template(learned, negative)
        line = fill_template(template, self._made_up, self._random_numbers, number)
        literal = template.literal
        if draw() < settings.joined_share:
            other = self._random_numbers.choice(file.templates)
            # A line without private values gets none.
            fits = other.identity != template.identity and (_is_negative(other) or not _is_negative(template))
            if fits and line.text.rstrip().endswith(_SENTENCE_ENDS):
                line = joined(line, fill_template(other, self._made_up, self._random_numbers, number))
                literal += other.literal
        labelled = tuple(span for span in line.spans if span.label not in settings.unlabelled)
        line = replace(line, spans=labelled)
        # Each number is drawn even if unused, so that one share does not change the other draws.
        case, values_case, mark, space = (draw() for _ in range(4))
        if mark < _UNPUNCTUATED_SHARE:
            line = unpunctuated(line)
        if space < _SPACED_SHARE:
            line = spaced(line)
        small = literal == literal.lower()
        lowers_values = small and any(map(str.isalpha, literal)) and values_case < _LOWER_VALUES_SHARE
        if case > 1 - settings.upper_case_share:
            return upper_cased(line)
        return lower_cased(line) if case < settings.lower_case_share or lowers_values else line


def _is_negative(template: Template) -> bool:
    return all(SLOT_LABELS[slot.kind] is None for slot in template.slots)
