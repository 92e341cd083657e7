"""The four levels of the evaluation, from the single word to the whole document.

One rule holds on every level. A unit of gold is *found* if every one of its words is masked. A unit of masking is
*right* if every one of its words is private. Recall is the share of found units, precision the share of right ones. The
class plays no part in them (``typed_scores`` has it): a name masked as a place is protected.

- **token**: units are words. This is the token-level score of presidio-research (which prefers F2, as we do) and of
  the i2b2 de-identification tracks ("HIPAA token"), counted in words instead of a model's tokens.
- **span**: units of gold are spans, those of masking are runs: masked words that only white space separates. The
  partial rates take "any" for "every". SemEval-2013 task 9 and nervaluate require equal borders (*exact*) or some
  overlap (*partial*). For privacy a mask may reach farther than the name but not less far, so "every word" lies between
  the two. Borders that are too wide cost precision only if they include a word that is not private.
- **entity**: units of gold are entities: spans of the same words (folded) and the same class in one document. An
  entity is found if every mention of it is: one missed mention reveals the others. This is the entity recall of Pilan
  et al. 2022 (Text Anonymization Benchmark), who take identity from annotators; here it is the same words. Units of
  masking are runs of the same words in one document. ``entity_in_corpus`` takes the whole gold set as one document.
- **document**: units of gold are documents with private words, those of masking are documents with masked words. A
  line is a document of its own, unless the file has ids of documents.

Intervals of the token rates come from resampled documents (Efron's percentile bootstrap), since the words of one
document are correlated: a name that is missed once is often missed again. The rates of a draw are ratios of its sums.

``per_type`` is the masked share of each gold label, for any class of the markers. ``typed`` also requires the right
class: a word counts if the class of its finding is the class of its label. A finding of class ``MASK`` (most findings
of a list) has no class, and a label without a class requires none: the typed rates leave both out and count them.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from tasks.corpora.masked_text import MASK
from tasks.masking.technique import Finding
from tasks.masking_evaluation.judged_line import BETA, Document, JudgedLine, JudgedSpan, rates, share

NOT_PRIVATE = "(not private)"
"""Row of the confusion table for masked words outside all gold spans."""
NOT_MASKED = "(not masked)"
"""Column of the confusion table for private words that were missed."""


def _words(lines: Iterable[JudgedLine]) -> Iterator[tuple[JudgedSpan | None, Finding | None]]:
    """The gold span and the finding of each word."""
    for line in lines:
        yield from zip(line.gold, line.findings, strict=True)


def _level(found: Iterable[bool], right: Iterable[bool], names: str) -> dict[str, Any]:
    """Recall, precision and F2 from whether each unit of gold is found, and each unit of masking right.

    ``names``: of the numbers of gold units, found ones, masked units and right ones.
    """
    found, right = list(found), list(right)
    gold_units, found_units, masked_units, right_units = names.split()
    return {
        **rates(sum(found), len(found), sum(right), len(right)),
        gold_units: len(found),
        found_units: sum(found),
        masked_units: len(right),
        right_units: sum(right),
    }


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
            "words": words[label],
            "masked_words": masked_words[label],
            "spans": count[label],
            "found_spans": found[label],
        }
        for label in sorted(count)
    }


def confusion(lines: Sequence[JudgedLine]) -> dict[str, dict[str, int]]:
    """Words by gold label and, within it, by class of the finding."""
    counts = Counter(
        (span.label if span else NOT_PRIVATE, finding.label if finding else NOT_MASKED)
        for span, finding in _words(lines)
        if span or finding
    )
    table: dict[str, dict[str, int]] = {}
    for (label, name), count in sorted(counts.items()):
        table.setdefault(label, {})[name] = count
    return table


def typed_scores(lines: Sequence[JudgedLine]) -> dict[str, Any]:
    """Recall, precision and F2 over words with the right class, in all and for each class."""
    # A word whose label has no class does not score the class of its finding.
    scored = [(span, finding) for span, finding in _words(lines) if not span or span.name]
    gold = Counter(span.name for span, _ in scored if span and span.name)
    masked = Counter(finding.label for _, finding in scored if finding and finding.label != MASK)
    right = Counter(finding.label for span, finding in scored if span and finding and span.name == finding.label)
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
        "gold_words_without_class": sum(span is not None and span.name is None for span, _ in _words(lines)),
        "masked_words_without_class": sum(finding is not None and finding.label == MASK for _, finding in scored),
    }


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


def span_scores(lines: Sequence[JudgedLine]) -> dict[str, Any]:
    """Recall over gold spans and precision over masked runs, strict ("every word") and partial ("any word")."""
    spans = [(line, span.words) for line in lines for span in line.spans]
    runs = [(line, run) for line in lines for run in line.masked_runs()]
    touched = (any(line.findings[index] is not None for index in words) for line, words in spans)
    touching = (any(line.gold[index] is not None for index in run) for line, run in runs)
    partial = _level(touched, touching, "gold_spans partly_found_spans masked_runs partly_right_runs")
    return {
        **{f"partial_{name}": partial.pop(name) for name in ("recall", "precision", "f2")},
        **partial,
        **_level(
            (line.all_masked(words) for line, words in spans),
            (line.all_private(run) for line, run in runs),
            "gold_spans found_spans masked_runs right_runs",
        ),
    }


def entity_scores(lines: Sequence[JudgedLine], *, whole_corpus: bool = False) -> dict[str, Any]:
    """Recall over entities and precision over distinct masked runs, in each document or in the whole gold
    set."""
    entities: dict[Hashable, bool] = {}
    runs: dict[Hashable, bool] = {}
    for line in lines:
        where = None if whole_corpus else line.document
        for span in line.spans:
            key = (where, line.folded(span.words), span.name or span.label)
            entities[key] = entities.get(key, True) and line.all_masked(span.words)
        for run in line.masked_runs():
            run_key = (where, line.folded(run))
            runs[run_key] = runs.get(run_key, True) and line.all_private(run)
    names = "entities protected_entities distinct_masked_runs right_distinct_masked_runs"
    mentions = sum(len(line.spans) for line in lines)
    return {**_level(entities.values(), runs.values(), names), "mentions": mentions}


def document_scores(lines: Sequence[JudgedLine]) -> dict[str, Any]:
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
    names = "private_documents protected_documents masked_documents rightly_masked_documents"
    documents = len({line.document for line in lines})
    return {**_level(private.values(), masked.values(), names), "documents": documents}


def over_masking(lines: Sequence[JudgedLine]) -> dict[str, Any]:
    """The share of words that were masked in lines without a private word."""
    clean = [line for line in lines if not any(line.gold)]
    words = sum(len(line.words) for line in clean)
    masked = sum(finding is not None for _, finding in _words(clean))
    return {"masked_share": share(masked, words), "lines": len(clean), "words": words, "masked_words": masked}


_CELLS_AT_ONCE = 2_000_000


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
