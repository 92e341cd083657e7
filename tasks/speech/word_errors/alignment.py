"""Reference and hypothesis side by side, by jiwer: the fewest insertions, deletions and substitutions of words."""

from collections.abc import Sequence
from dataclasses import dataclass

import jiwer

EQUAL, SUBSTITUTE, DELETE, INSERT = "equal", "substitute", "delete", "insert"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring units that were recognised in the same way."""

    kind: str
    """``EQUAL``, ``SUBSTITUTE`` (as many on both sides), ``DELETE`` or ``INSERT``."""
    reference: range
    """Places in the reference; empty where words were inserted in front of its start."""
    hypothesis: range
    """Places in the hypothesis; empty where words were deleted."""


def align_words(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> list[list[Stretch]]:
    """The alignment of each pair of normalised words; stretches stand in order and cover both sides."""
    return _align(references, hypotheses, " ", jiwer.ReduceToListOfListOfWords())


def align_characters(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> list[list[Stretch]]:
    """The same for the characters of the words, with one blank between two words."""
    return _align(references, hypotheses, " ", jiwer.ReduceToListOfListOfChars())


def _align(
    references: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
    separator: str,
    units: jiwer.AbstractTransform,
) -> list[list[Stretch]]:
    if not references:
        return []
    # Normalised words hold no blanks, so joining and dividing them again changes nothing.
    output = jiwer.process_words(
        [separator.join(words) for words in references],
        [separator.join(words) for words in hypotheses],
        reference_transform=units,
        hypothesis_transform=units,
    )
    return [
        [
            Stretch(
                chunk.type,
                range(chunk.ref_start_idx, chunk.ref_end_idx),
                range(chunk.hyp_start_idx, chunk.hyp_end_idx),
            )
            for chunk in chunks
        ]
        for chunks in output.alignments
    ]
