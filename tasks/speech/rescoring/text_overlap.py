"""How much of the test references a language model has seen in training: numbers, never the words.

Two measures, both after normalisation: references that are a line of the training text, and stretches of eight words of
the references that stand somewhere in it. Stretches are looked for across line ends too, since the same text may be
divided into lines in another way.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.errors import SpeechError
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.settings import OverlapLimits

STRETCH_WORDS = 8


@dataclass(frozen=True)
class TextOverlap:
    """Counts over the references that have a word."""

    references: int
    shared_references: int
    """Those that are a whole line of the training text."""
    stretches: int
    """Distinct stretches of eight words."""
    shared_stretches: int
    """Those that stand in the training text."""

    @property
    def shared_sentence_share(self) -> float | None:
        """``None`` without references."""
        return self.shared_references / self.references if self.references else None

    @property
    def shared_stretch_share(self) -> float | None:
        """``None`` where no reference has eight words."""
        return self.shared_stretches / self.stretches if self.stretches else None

    def as_numbers(self) -> dict[str, Any]:
        """What a report says."""
        return {
            "references": self.references,
            "shared_sentences": self.shared_references,
            "shared_sentence_share": self.shared_sentence_share,
            "eight_grams": self.stretches,
            "shared_8_grams": self.shared_stretches,
            "shared_8_gram_share": self.shared_stretch_share,
        }


def measure_overlap(references: Iterable[str], training_texts: Sequence[str | Path]) -> TextOverlap:
    """Overlap of test references with training texts, which are read once, line by line."""
    sentences: list[str] = []
    stretches: set[tuple[str, ...]] = set()
    for reference in references:
        words = normalise(reference)
        if words:
            sentences.append(" ".join(words))
        stretches.update(tuple(words[place : place + STRETCH_WORDS]) for place in range(len(words) - STRETCH_WORDS + 1))
    wanted = set(sentences)
    seen_sentences: set[str] = set()
    seen_stretches: set[tuple[str, ...]] = set()
    for path in training_texts:
        window: deque[str] = deque(maxlen=STRETCH_WORDS)
        for line in read_compressed_lines(path):
            words = normalise(line)
            joined = " ".join(words)
            if joined in wanted:
                seen_sentences.add(joined)
            for word in words:
                window.append(word)
                if len(window) == STRETCH_WORDS and (stretch := tuple(window)) in stretches:
                    seen_stretches.add(stretch)
    return TextOverlap(
        references=len(sentences),
        shared_references=sum(sentence in seen_sentences for sentence in sentences),
        stretches=len(stretches),
        shared_stretches=len(seen_stretches),
    )


def check_overlap(overlap: TextOverlap, settings: OverlapLimits) -> None:
    """``SpeechError`` where more is shared than the settings allow."""
    for share, limit, what, name in (
        (overlap.shared_sentence_share, settings.maximum_shared_sentences, "references", "maximum_shared_sentences"),
        (overlap.shared_stretch_share, settings.maximum_shared_8_grams, "8-grams", "maximum_shared_8_grams"),
    ):
        if limit is not None and share is not None and share > limit:
            raise SpeechError(
                f"{share:.2%} of the test {what} stand in the training text, and {name} allows {limit:.2%}; "
                "take them out of the training text, or raise the limit"
            )
