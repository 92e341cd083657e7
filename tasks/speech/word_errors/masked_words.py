"""Which words of the references a technique masks.

The references are masked like any other text: 'palimpsest reference-text' writes them one a line, 'palimpsest mask
--sidecar' says what it masks of them, and a word counts as masked where a masked span touches it, as for perplexities.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tasks.language_model.evaluation.reference_text import reference_text_of
from tasks.speech.word_errors.word_errors import MaskedPlaces


def reference_lines(references: Mapping[str, str]) -> list[str]:
    """The references as lines of a text, in their order: line ends inside a reference become blanks."""
    return [" ".join(text.splitlines()) for text in references.values()]


def masked_places(references: Mapping[str, str], sidecars: Mapping[str, str | Path], name: str | Path) -> MaskedPlaces:
    """By technique and utterance id, which words of the reference are masked; ``name`` is what messages call the text.

    Raises ``CorpusError`` where a sidecar is not one of these references in this order.
    """
    if not sidecars:
        return {}
    text = reference_text_of(reference_lines(references), name, sidecars)
    ids = list(references)
    is_word = ~text.is_end()
    lengths = np.bincount(text.sentence[is_word], minlength=text.sentences)
    ends = np.cumsum(lengths)
    return {
        technique: {
            ids[line - 1]: marks
            for line, marks in zip(text.lines.tolist(), np.split(masked[is_word], ends[:-1]), strict=True)
        }
        for technique, masked in text.masked.items()
    }
