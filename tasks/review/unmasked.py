"""Number of identifiers that each technique leaves unmasked: by a review of the text, else by the reference reader."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasks.audit.clear_text import masked_words
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError
from tasks.filling.aligned_fills import side_by_side
from tasks.masking.every_tagger import EVERY_TAGGER
from tasks.review.estimate import Unmasked, estimate
from tasks.review.reader import ReadText, basis
from tasks.review.record import Review, marks_of, review_of

_MASKED = Path("data/private/masked")


@dataclass(frozen=True, slots=True)
class TechniqueUnmasked:
    """Identifiers that one technique leaves unmasked."""

    by: Literal["review", "reference reader"]
    basis: str
    """One line on the basis of the figures."""
    direct: Unmasked
    quasi: Unmasked
    classes: Mapping[str, Unmasked]


def reader_sidecar(corpus: str) -> Path:
    """The reference reader's sidecar for a corpus' training text: the technique's own if it is compared."""
    compared = _MASKED / corpus / "train" / EVERY_TAGGER / "sidecar.jsonl"
    return compared if compared.exists() else _MASKED / corpus / "reader" / EVERY_TAGGER / "sidecar.jsonl"


def unmasked_by_technique(
    corpus: str, text: Path, sidecars: Mapping[str, Path], reader: Path
) -> dict[str, TechniqueUnmasked]:
    """The result for each technique, by its name in ``sidecars``; ``text`` is the private training text.

    Raises ``CorpusError`` if a review is of another text, a sidecar does not belong to the text, or there is neither a
    review nor the reader's sidecar.
    """
    review = review_of(corpus, text)
    if review is not None and review.lines:
        return {name: _reviewed(review, sidecar) for name, sidecar in sidecars.items()}
    if not reader.exists():
        raise CorpusError(
            f"{corpus!r}: unmasked identifiers cannot be counted. There is no review, and the reference reader has "
            f"not read the text: {str(reader)!r} is missing. Put '{EVERY_TAGGER}: {{kind: {EVERY_TAGGER}}}' under "
            "'masking' in params.yaml and run again."
        )
    read = {name: ReadText() for name in sidecars}
    for line, words, *masked in side_by_side(
        read_lines(text), read_sidecar(reader), *map(masked_words, sidecars.values())
    ):
        for counted, masked_by in zip(read.values(), masked, strict=True):
            counted.add(line, words, masked_by)
    return {
        name: TechniqueUnmasked(
            "reference reader",
            basis(of_reader=sidecars[name].resolve() == reader.resolve()),
            counted.of_sort("direct"),
            counted.of_sort("quasi"),
            counted.by_class(),
        )
        for name, counted in read.items()
    }


def _reviewed(review: Review, sidecar: Path) -> TechniqueUnmasked:
    marks = marks_of(review)
    masked = {number: words for number, words in enumerate(masked_words(sidecar)) if number in marks}
    found = estimate(review.plan, marks, masked)
    reviewers = len({line.reviewer for line in review.lines})
    said = f"{found.lines} lines read by {reviewers} reviewer{'s' if reviewers > 1 else ''}"
    return TechniqueUnmasked("review", said, found.direct, found.quasi, found.classes)
