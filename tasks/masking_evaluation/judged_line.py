"""One line of gold with the findings of a technique: which words are private, and which were masked.

All levels of the evaluation count from this. A word is one of ``tasks.corpora.words``, so every technique and every
gold set has the same units, independent of a model's tokens. A word is private if a private gold span covers at least
one of its characters. A span that covers no word (an emoji, punctuation) can be neither masked nor missed; it is
counted separately.

Recall, precision and F2: missing a private word is worse than masking one too many.

F2 = 5 P R / (4 P + R) is van Rijsbergen's F with beta 2: recall counts twice as much as precision. An undefined rate is
``None``, never 0: recall without anything private, precision without anything masked. F2 is 0 if recall is 0, for any
precision (so a technique that masks nothing has 0, not ``None``), and undefined if recall is.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tasks.corpora.words import fold, word_spans
from tasks.errors import ModelError
from tasks.labelled_text.labelled_lines import LabelledLine
from tasks.masking.technique import Finding
from tasks.masking_evaluation.label_classes import LabelMapping

Document = tuple[int, str | int]
"""Document: the gold file's index among the files, and the document's id or the line's number."""


@dataclass(frozen=True, slots=True)
class JudgedSpan:
    """A private gold span that covers at least one word."""

    words: range
    """Indices of the words that the span covers, whole or in part."""
    label: str
    """Label in the gold file."""
    name: str | None
    """Marker class; ``None`` for a label without one."""


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """A line's words, its private spans and the findings of a technique. Contains private text."""

    text: str
    number: int
    """Line of its file, counted from 1."""
    document: Document
    words: Sequence[tuple[int, int]]
    """Start and end of each word."""
    spans: Sequence[JudgedSpan]
    findings: Sequence[Finding | None]
    """Finding of each word; ``None`` if it was not masked."""
    gold: Sequence[JudgedSpan | None]
    """Span of each word: the longest that covers it, of equally long ones the first; ``None``: not private."""
    ignored_spans: Counter[str]
    """Spans with a label that the user declares not private, by label."""
    spans_without_words: int

    def folded(self, words: Iterable[int]) -> str:
        """The folded words, separated by spaces, so that equal ones compare equal: private text."""
        return " ".join(fold(self.text[slice(*self.words[index])]) for index in words)

    def masked_runs(self) -> list[range]:
        """Maximal runs of masked words that only white space separates."""
        runs: list[range] = []
        for index, finding in enumerate(self.findings):
            if finding is None:
                continue
            if runs and runs[-1].stop == index and not self.text[self.words[index - 1][1] : finding.start].strip():
                runs[-1] = range(runs[-1].start, index + 1)
            else:
                runs.append(range(index, index + 1))
        return runs

    def all_masked(self, words: Iterable[int]) -> bool:
        """Whether every one of these words was masked."""
        return all(self.findings[index] is not None for index in words)

    def all_private(self, words: Iterable[int]) -> bool:
        """Whether every one of these words is private."""
        return all(self.gold[index] is not None for index in words)


def judge(line: LabelledLine, findings: Sequence[Finding], mapping: LabelMapping, file: int = 0) -> JudgedLine:
    """Assign the gold spans and the findings of a line to its words.

    Raises ``ModelError`` if a finding is not a word of the line.
    """
    words = word_spans(line.text)
    starts, ends = [start for start, _ in words], [end for _, end in words]
    spans: list[JudgedSpan] = []
    ignored: Counter[str] = Counter()
    without_words = 0
    gold: list[JudgedSpan | None] = [None] * len(words)
    # Stable: of equally long spans the first in the file comes first.
    for span in sorted(line.spans, key=lambda span: span.start - span.end):
        if not mapping.is_private(span.label):
            ignored[span.label] += 1
            continue
        covered = range(bisect_right(ends, span.start), bisect_left(starts, span.end))
        if not covered:
            without_words += 1
            continue
        judged = JudgedSpan(covered, span.label, mapping.class_of(span.label))
        spans.append(judged)
        for index in covered:
            gold[index] = gold[index] or judged
    return JudgedLine(
        text=line.text,
        number=line.number,
        document=(file, line.document or line.number),
        words=words,
        spans=spans,
        findings=_by_word(line, words, findings),
        gold=gold,
        ignored_spans=ignored,
        spans_without_words=without_words,
    )


def _by_word(line: LabelledLine, words: list[tuple[int, int]], findings: Sequence[Finding]) -> list[Finding | None]:
    by_word = dict.fromkeys(words, None) | {(finding.start, finding.end): finding for finding in findings}
    if len(by_word) > len(words) or len({(finding.start, finding.end) for finding in findings}) < len(findings):
        raise ModelError(f"line {line.number}: techniques mask whole words, each once, and this one did not")
    return list(by_word.values())


def judged_lines(
    gold: Sequence[LabelledLine],
    found: Sequence[tuple[str, Sequence[Finding]]],
    mapping: LabelMapping,
    file: int = 0,
) -> Iterator[JudgedLine]:
    """Judge line by line; ``ModelError`` if the technique did not return every line in its order."""
    if [text for text, _ in found] != [line.text for line in gold]:
        raise ModelError(
            f"the technique gave back {len(found)} lines for {len(gold)}, or others; it must give each one"
        )
    for line, (_, findings) in zip(gold, found, strict=True):
        yield judge(line, findings, mapping, file)


BETA = 2


def share(part: int, whole: int) -> float | None:
    """``part / whole``; ``None`` if the whole is 0."""
    return part / whole if whole else None


def f2(recall: float | None, precision: float | None) -> float | None:
    """F2 of a recall and a precision."""
    if recall is None or recall == 0:
        return recall
    # A recall above 0 means that something was masked, so there is a precision.
    if precision is None:
        return None
    return (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)


def rates(found: int, gold: int, right: int, masked: int) -> dict[str, float | None]:
    """Recall ``found / gold``, precision ``right / masked`` and their F2."""
    recall, precision = share(found, gold), share(right, masked)
    return {"recall": recall, "precision": precision, "f2": f2(recall, precision)}
