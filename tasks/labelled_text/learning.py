"""Templates learned from a labelled corpus: spans become slots of their kind, in the form of the original.

Unlabelled e-mail addresses, web addresses, ``@names`` and long numbers become slots too. So a learned template has no
value that is labelled or recognisable by its form. The gender of a name follows pronouns near it if they agree; they
may refer to another person. The other words are the corpus's own: an unlabelled name stays in its template. So learned
templates, and text generated from them, are as private as the corpus.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tasks.errors import CorpusError, ParameterError
from tasks.labelled_text.labelled_lines import LabelledLine, LabelledSpan, read_labelled
from tasks.labelled_text.slots import SLOT_LABELS
from tasks.labelled_text.template import Slot, Template
from tasks.labelled_text.value_forms import slot_for
from tasks.made_up.pools import shipped_values
from tasks.spelling import nearest

MIXED_KINDS = ("LOCATION", "GROUP_NAME", "POSITION")
"""Kinds that only a mapping of labels uses: the form of each value decides its kind of slot."""
KNOWN_LABELS: Mapping[str, str] = {kind: kind for kind in SLOT_LABELS} | {
    label: kind for kind, labels in shipped_values("labels_of_corpora") for label in labels.split()
}
"""Kinds by labels of common corpora, and by this package's own labels."""
_FOUND = re.compile(
    r"(?P<URL>(?:https?://|www\.)\S+)"
    r"|(?P<EMAIL_ADDRESS>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<USER_NAME>(?<!\w)@\w+)"
    r"|(?P<WEB_HOST>(?<![\w.@])[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|co\.uk|de|fr|io|info|ly|me|tv)\b(?:/\S*)?)"
    r"|(?P<IP_ADDRESS>(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]))"
    # A run of seven digits or more that is neither a sum nor a date with its time.
    r"|(?P<NUMBER>(?<![\w$€£./:-])(?!\d{1,2}[./-]\d{1,2}[./-]\d{2}|\d{4}[./-]\d{1,2}[./-])"
    r"\+?(?:\( ?)?\d(?:[ .()-]{0,3}\d){6,}(?![\w:/]|[.,]\d))"
)


@dataclass
class LearnedTemplates:
    """Result of learning from a corpus."""

    templates: list[Template] = field(default_factory=list)
    """Different templates, in the order of the corpus."""
    labels: set[str] = field(default_factory=set)
    """Labels of the corpus."""


def _check_label_map(label_map: Mapping[str, str], path: str | Path) -> None:
    allowed = [*MIXED_KINDS, *SLOT_LABELS]
    problems = [
        f"{label!r} maps to {kind!r}, which is no kind of slot{nearest(kind, allowed)}"
        for label, kind in label_map.items()
        if kind not in allowed
    ]
    if problems:
        raise ParameterError(f"labels for {str(path)!r}: {'; '.join(problems)}; allowed: {', '.join(allowed)}")


def learn_templates(path: str | Path, label_map: Mapping[str, str] | None = None) -> LearnedTemplates:
    """The templates of a labelled file.

    ``label_map`` (label to kind of slot, or one of ``MIXED_KINDS``) comes before ``KNOWN_LABELS``. Raises
    ``CorpusError`` that names all labels without a mapping, and ``ParameterError`` for a mapping to an unknown kind.
    """
    _check_label_map(label_map or {}, path)
    mapping = {**KNOWN_LABELS, **(label_map or {})}
    learned = LearnedTemplates()
    templates: dict[str, Template] = {}
    unmapped: Counter[str] = Counter()
    for line in read_labelled(path):
        labels = [span.label for span in line.spans]
        learned.labels.update(labels)
        unmapped.update(label for label in labels if label not in mapping)
        if not unmapped and line.text.strip():
            template = _learn(line, mapping)
            templates.setdefault(str(template), template)
    if unmapped:
        named = ", ".join(f"{label!r} ({count} spans)" for label, count in sorted(unmapped.items()))
        raise CorpusError(
            f"{str(path)!r}: no kind of slot for the labels {named}; give each one with --label-map LABEL=KIND or "
            f"labels: in params.yaml; kinds: {', '.join([*MIXED_KINDS, *SLOT_LABELS])}"
        )
    learned.templates = list(templates.values())
    return learned


def _learn(line: LabelledLine, mapping: Mapping[str, str]) -> Template:
    spans = _outermost(line.spans)
    starts, ends = [0, *(span.end for span in spans)], [*(span.start for span in spans), len(line.text)]
    between = [line.text[start:end] for start, end in zip(starts, ends, strict=True)]
    originals = [line.text[span.start : span.end] for span in spans]
    repeated = [text for text, count in Counter(map(str.casefold, originals)).items() if count > 1]
    pieces = _literal(between[0])
    for span, original, after in zip(spans, originals, between[1:], strict=True):
        kind, modifiers = slot_for(mapping[span.label], original, "".join(between))
        thing = repeated.index(original.casefold()) + 1 if original.casefold() in repeated else None
        pieces += [Slot(kind, thing, modifiers), *_literal(after)]
    return Template(tuple(pieces))


def _outermost(spans: Iterable[LabelledSpan]) -> list[LabelledSpan]:
    """The longest of overlapping spans, in order of the text."""
    chosen: list[LabelledSpan] = []
    for span in sorted(spans, key=lambda span: (span.start - span.end, span.start)):
        if all(span.end <= other.start or span.start >= other.end for other in chosen):
            chosen.append(span)
    return sorted(chosen, key=lambda span: span.start)


def _literal(text: str) -> list[str | Slot]:
    """Text between spans; values with a recognisable form become slots."""
    pieces: list[str | Slot] = []
    position = 0
    for match in _FOUND.finditer(text):
        kind = str(match.lastgroup)
        pieces += [text[position : match.start()], Slot(_number_kind(match.group()) if kind == "NUMBER" else kind)]
        position = match.end()
    return [piece for piece in [*pieces, text[position:]] if piece]


def _number_kind(text: str) -> str:
    digits = sum(map(str.isdigit, text))
    if digits in (15, 16):
        return "CREDIT_CARD"
    return "ACCOUNT_NUMBER" if text.isdigit() and digits != 10 else "PHONE_NUMBER"
