"""How much of the test references a language model has seen in training: numbers, never the words.

Two measures, both after normalisation: references that are a line of the training text, and stretches of eight words of
the references that stand somewhere in it. Stretches are looked for across line ends too, since the same text may be
divided into lines in another way.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.errors import SpeechError
from tasks.language_model.normalisation import normalise
from tasks.speech.rescoring.settings import OverlapLimits

STRETCH_WORDS = 8


def measure_overlap(references: Iterable[str], training_texts: Sequence[str | Path]) -> dict[str, Any]:
    """Overlap of test references with training texts, which are read once, line by line; as a report says it.

    References without a word are not counted. ``eight_grams`` are distinct stretches. A share is ``None`` where there
    is nothing to share.
    """
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
    shared = sum(sentence in seen_sentences for sentence in sentences)
    return {
        "references": len(sentences),
        "shared_sentences": shared,
        "shared_sentence_share": shared / len(sentences) if sentences else None,
        "eight_grams": len(stretches),
        "shared_8_grams": len(seen_stretches),
        "shared_8_gram_share": len(seen_stretches) / len(stretches) if stretches else None,
    }


def check_overlap(overlap: Mapping[str, Any], settings: OverlapLimits) -> None:
    """``SpeechError`` where more is shared than the settings allow."""
    for share, limit, what, name in (
        (overlap["shared_sentence_share"], settings.maximum_shared_sentences, "references", "maximum_shared_sentences"),
        (overlap["shared_8_gram_share"], settings.maximum_shared_8_grams, "8-grams", "maximum_shared_8_grams"),
    ):
        if limit is not None and share is not None and share > limit:
            raise SpeechError(
                f"{share:.2%} of the test {what} stand in the training text, and {name} allows {limit:.2%}; "
                "take them out of the training text, or raise the limit"
            )
