"""Masked sentences written as ``{PERSON:Tom} lives in {LOCATION:Paris}``, with or without their sidecar."""

from marked_text import unmarked

from tasks.filling.masked_sentence import MaskedSentence, read_masked_line, with_spans
from tasks.masking.technique import MarkerStyle, masked_spans, write_markers


def masked(
    text: str,
    number: int = 1,
    *,
    style: MarkerStyle = "class",
    sidecar: bool = True,
    merge: bool = False,
    document: str | None = None,
) -> MaskedSentence:
    """The sentence; ``style`` as of masking, ``sidecar``: whether it knows its originals."""
    raw, findings = unmarked(text)
    sentence = read_masked_line(write_markers(raw, findings, style), number, merge_markers=merge, document=document)
    return with_spans(sentence, masked_spans(raw, findings, style)) if sidecar else sentence
