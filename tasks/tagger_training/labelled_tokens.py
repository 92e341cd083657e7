"""Labelled lines as tokens with ``B-``, ``I-`` and ``O`` labels (Ramshaw and Marcus 1995), for sequence models."""

from collections.abc import Callable

from tasks.labelled_text.labelled_lines import LabelledLine
from tasks.masking.taggers.crf_features import Token, tokens_of
from tasks.masking.taggers.crf_tagger import OUTSIDE


def tokens_and_labels(line: LabelledLine, class_of: Callable[[str], str | None]) -> tuple[list[Token], list[str]]:
    """The tokens of a line and their labels; ``class_of`` gives the class of a span's label, ``None`` for outside.

    A token that a span touches belongs to it; where spans overlap, the longest one has it.
    """
    tokens = tokens_of(line.text)
    labels = [OUTSIDE] * len(tokens)
    taken = [False] * len(tokens)
    for span in sorted(line.spans, key=lambda span: (span.start - span.end, span.start)):
        name = class_of(span.label)
        if name is None:
            continue
        first = True
        for index, (start, end, _) in enumerate(tokens):
            if span.start < end and start < span.end and not taken[index]:
                labels[index] = f"{'B' if first else 'I'}-{name}"
                taken[index] = True
                first = False
    return tokens, labels
