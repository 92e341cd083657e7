"""Masked sentences written as ``{PERSON:Tom} lives in {LOCATION:Paris}``, with or without their sidecar."""

import re

from tasks.filling.masked_sentence import MaskedSentence, read_masked_line, with_spans
from tasks.masking.technique import Finding, masked_spans, write_markers

_SLOT = re.compile(r"\{([A-Z]+):([^}]*)\}")


def masked(
    text: str,
    number: int = 1,
    *,
    style: str = "class",
    sidecar: bool = True,
    merge: bool = False,
    document: str | None = None,
) -> MaskedSentence:
    """The sentence; ``style`` as of masking, ``sidecar``: whether it knows its originals."""
    findings, raw, position = [], "", 0
    for match in _SLOT.finditer(text):
        raw += text[position : match.start()]
        findings.append(Finding(len(raw), len(raw) + len(match[2]), match[1], "test"))
        raw += match[2]
        position = match.end()
    raw += text[position:]
    sentence = read_masked_line(write_markers(raw, findings, style), number, merge_markers=merge, document=document)
    return with_spans(sentence, masked_spans(raw, findings, style)) if sidecar else sentence
