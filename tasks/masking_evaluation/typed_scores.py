"""What each label of the gold set and each class of marker contributes.

``per_type`` asks of each gold label how much of it was masked, whatever the class of the markers. ``typed`` asks
whether the class is right too: a word counts where the class of its finding is the class of its label. A finding of
class ``MASK`` (most of a list's) names no class, and a label without a class asks for none: both are left out of the
typed rates and counted.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tasks.corpora.masked_text import MASK
from tasks.masking_evaluation.judged_line import JudgedLine, rates, share

NOT_PRIVATE = "(not private)"
"""Row of the confusion table for masked words outside all gold spans."""
NOT_MASKED = "(not masked)"
"""Column of the confusion table for private words that were missed."""


def per_type(lines: Sequence[JudgedLine]) -> dict[str, dict[str, Any]]:
    """Recall of each gold label over words and over spans; a word of nested spans belongs to the longest."""
    words: Counter[str] = Counter()
    masked_words: Counter[str] = Counter()
    spans: Counter[str] = Counter()
    found_spans: Counter[str] = Counter()
    classes: dict[str, str | None] = {}
    for line in lines:
        for span, finding in zip(line.gold, line.findings, strict=True):
            if span is not None:
                words[span.label] += 1
                masked_words[span.label] += finding is not None
        for span in line.spans:
            classes[span.label] = span.name
            spans[span.label] += 1
            found_spans[span.label] += line.all_masked(span.words)
    return {
        label: {
            "class": classes[label],
            "token_recall": share(masked_words[label], words[label]),
            "span_recall": share(found_spans[label], spans[label]),
            "words": words[label],
            "masked_words": masked_words[label],
            "spans": spans[label],
            "found_spans": found_spans[label],
        }
        for label in sorted(spans)
    }


def confusion(lines: Sequence[JudgedLine]) -> dict[str, dict[str, int]]:
    """Words by gold label and, within it, by class of the finding."""
    counts: Counter[tuple[str, str]] = Counter(
        (NOT_PRIVATE if span is None else span.label, NOT_MASKED if finding is None else finding.label)
        for line in lines
        for span, finding in zip(line.gold, line.findings, strict=True)
        if span is not None or finding is not None
    )
    table: dict[str, dict[str, int]] = {}
    for (label, name), count in sorted(counts.items()):
        table.setdefault(label, {})[name] = count
    return table


def typed_scores(lines: Sequence[JudgedLine]) -> dict[str, Any]:
    """Recall, precision and F2 over words where the class has to be right, in all and for each class."""
    gold: Counter[str] = Counter()
    masked: Counter[str] = Counter()
    right: Counter[str] = Counter()
    without_class = unnamed = 0
    for line in lines:
        for span, finding in zip(line.gold, line.findings, strict=True):
            # A word whose label has no class says nothing about the class of its finding.
            if span is not None and span.name is None:
                without_class += 1
                continue
            if span is not None and span.name is not None:
                gold[span.name] += 1
            if finding is not None and finding.label == MASK:
                unnamed += 1
            elif finding is not None:
                masked[finding.label] += 1
                right[finding.label] += span is not None and span.name == finding.label
    return {
        **rates(right.total(), gold.total(), right.total(), masked.total()),
        "per_class": {
            name: {
                **rates(right[name], gold[name], right[name], masked[name]),
                "gold_words": gold[name],
                "masked_words": masked[name],
                "right_words": right[name],
            }
            for name in sorted({*gold, *masked})
        },
        "gold_words_without_class": without_class,
        "masked_words_without_class": unnamed,
    }
