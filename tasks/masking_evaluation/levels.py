"""The levels of the evaluation, from the single word to the whole document.

One rule holds on every level. A unit of gold is *found* if every one of its words is masked. A unit of masking is
*right* if every one of its words is private. Recall is the share of found units, precision the share of right ones. The
class plays no part in them (``typed_scores`` has it): a name masked as a place is protected.

- **token**: units are words. This is the token-level score of presidio-research (which prefers F2, as we do) and of
  the i2b2 de-identification tracks ("HIPAA token"), counted in words instead of a model's tokens.
- **span**: units of gold are spans, those of masking are runs: masked words that only white space separates.
  SemEval-2013 task 9 and nervaluate require equal borders (*exact*) or some overlap (*partial*). For privacy a mask may
  reach farther than the name but not less far, so "every word" lies between the two.
- **entity**: units of gold are entities: spans of the same words (folded) and the same class in one document. An
  entity is found if every mention of it is: one missed mention reveals the others. This is the entity recall of Pilan
  et al. 2022 (Text Anonymization Benchmark), who take identity from annotators; here it is the same words. Units of
  masking are runs of the same words in one document.
- **document**: units of gold are documents with private words, those of masking are documents with masked words. A
  line is a document of its own, unless the file has ids of documents.

Intervals of the token rates come from resampled documents (Efron's percentile bootstrap), since the words of one
document are correlated: a name that is missed once is often missed again. The rates of a draw are ratios of its sums.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from tasks.corpora.masked_text import MASK
from tasks.masking.technique import Finding
from tasks.masking_evaluation.judged_line import BETA, Document, JudgedLine, JudgedSpan, rates, share

Rates = dict[str, float | None]
_CELLS_AT_ONCE = 2_000_000


def _words(lines: Iterable[JudgedLine]) -> Iterator[tuple[JudgedSpan | None, Finding | None]]:
    """The gold span and the finding of each word."""
    for line in lines:
        yield from zip(line.gold, line.findings, strict=True)


def _level(found: Iterable[bool], right: Iterable[bool]) -> Rates:
    """Recall, precision and F2 from whether each unit of gold is found, and each unit of masking right."""
    found, right = list(found), list(right)
    return rates(sum(found), len(found), sum(right), len(right))


def per_type(lines: Sequence[JudgedLine]) -> dict[str, dict[str, Any]]:
    """The recall of each gold label over words and over spans; a word of nested spans belongs to the longest."""
    words = Counter(span.label for span, _ in _words(lines) if span)
    masked_words = Counter(span.label for span, finding in _words(lines) if span and finding)
    spans = [(line, span) for line in lines for span in line.spans]
    count = Counter(span.label for _, span in spans)
    found = Counter(span.label for line, span in spans if line.all_masked(span.words))
    classes = {span.label: span.name for _, span in spans}
    return {
        label: {
            "class": classes[label],
            "token_recall": share(masked_words[label], words[label]),
            "span_recall": share(found[label], count[label]),
            "spans": count[label],
        }
        for label in sorted(count)
    }


def typed_scores(lines: Sequence[JudgedLine]) -> Rates:
    """Recall, precision and F2 over words whose finding has the class of their label.

    A finding of class ``MASK`` (most findings of a list) has no class, and a label without a class requires none: both
    are left out.
    """
    scored = [(span, finding) for span, finding in _words(lines) if not span or span.name]
    gold = sum(span is not None for span, _ in scored)
    masked = sum(finding is not None and finding.label != MASK for _, finding in scored)
    right = sum(bool(span and finding and span.name == finding.label) for span, finding in scored)
    return rates(right, gold, right, masked)


def token_scores(lines: Sequence[JudgedLine], out_of_scope: Iterable[str] = ()) -> dict[str, Any]:
    """Recall, precision and F2 over words, with their counts.

    Masked words of classes ``out_of_scope``, which the gold set does not annotate, are left out unless they are
    private. A gold set of names declares no date private, so a masked date is neither right nor wrong. A finding of
    such a class that covers a private word protects it, and counts as right.
    """
    left_out = frozenset(out_of_scope)
    gold = sum(span is not None for span, _ in _words(lines))
    both = sum(span is not None and finding is not None for span, finding in _words(lines))
    masked = sum(
        finding is not None and (span is not None or finding.label not in left_out) for span, finding in _words(lines)
    )
    return {**rates(both, gold, both, masked), "gold_words": gold, "masked_words": masked, "right_words": both}


def span_scores(lines: Sequence[JudgedLine]) -> Rates:
    """Recall over gold spans and precision over masked runs."""
    return _level(
        (line.all_masked(span.words) for line in lines for span in line.spans),
        (line.all_private(run) for line in lines for run in line.masked_runs()),
    )


def entity_scores(lines: Sequence[JudgedLine]) -> Rates:
    """Recall over entities and precision over distinct masked runs, in each document."""
    entities: dict[Hashable, bool] = {}
    runs: dict[Hashable, bool] = {}
    for line in lines:
        for span in line.spans:
            key = (line.document, line.folded(span.words), span.name or span.label)
            entities[key] = entities.get(key, True) and line.all_masked(span.words)
        for run in line.masked_runs():
            run_key = (line.document, line.folded(run))
            runs[run_key] = runs.get(run_key, True) and line.all_private(run)
    return _level(entities.values(), runs.values())


def document_scores(lines: Sequence[JudgedLine]) -> Rates:
    """Recall over documents with private words and precision over documents with masked words."""
    private: dict[Document, bool] = {}
    masked: dict[Document, bool] = {}
    for line in lines:
        gold_words = [index for index, span in enumerate(line.gold) if span is not None]
        masked_words = [index for index, finding in enumerate(line.findings) if finding is not None]
        if gold_words:
            private[line.document] = private.get(line.document, True) and line.all_masked(gold_words)
        if masked_words:
            masked[line.document] = masked.get(line.document, True) and line.all_private(masked_words)
    return _level(private.values(), masked.values())


def over_masking(lines: Sequence[JudgedLine]) -> dict[str, Any]:
    """The share of words that were masked in lines without a private word."""
    clean = [line for line in lines if not any(line.gold)]
    words = sum(len(line.words) for line in clean)
    masked = sum(finding is not None for _, finding in _words(clean))
    return {"masked_share": share(masked, words), "lines": len(clean), "words": words, "masked_words": masked}


def token_intervals(lines: Sequence[JudgedLine], samples: int, confidence: float, seed: int) -> dict[str, Any]:
    """``recall_ci``, ``precision_ci`` and ``f2_ci`` as ``[low, high]``.

    A draw with an undefined rate is left out for that rate. An interval is ``None`` with fewer than two documents, or
    if the rate is undefined in every draw.
    """
    import numpy as np

    by_document: dict[Document, list[int]] = {}
    for line in lines:
        sums = by_document.setdefault(line.document, [0, 0, 0])
        for span, finding in _words([line]):
            sums[0] += span is not None
            sums[1] += finding is not None
            sums[2] += span is not None and finding is not None
    intervals: dict[str, Any] = dict.fromkeys(("recall_ci", "precision_ci", "f2_ci"))
    documents = len(by_document)
    if documents < 2:
        return intervals
    columns = np.array(list(by_document.values()), dtype=np.float64)  # (documents, 3)
    generator = np.random.default_rng(seed)
    block = max(1, _CELLS_AT_ONCE // documents)
    sums_of_draws = []
    for begin in range(0, samples, block):
        drawn = generator.integers(0, documents, size=(min(block, samples - begin), documents))
        sums_of_draws.append(columns[drawn].sum(axis=1))  # (draws, 3)
    gold, masked, both = np.concatenate(sums_of_draws).T
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    # In words, F2 is a ratio of sums too: recall and precision have the same numerator.
    for name, right, whole in (
        ("recall_ci", both, gold),
        ("precision_ci", both, masked),
        ("f2_ci", (1 + BETA**2) * both, np.where(gold > 0, BETA**2 * gold + masked, 0)),
    ):
        defined = whole > 0
        if defined.any():
            intervals[name] = np.quantile(right[defined] / whole[defined], tails).tolist()
    return intervals
