"""Linkage attacks on fills: which words are substitutes, and which substitutes hide the same word.

A fill replaces words one by one, so an alignment of the masked and the filled line gives its substitutes. Lines without
such an alignment (``free`` writes the whole sentence again) are left out; ``places`` counts the rest.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np

from tasks.audit.clear_text import missing_words
from tasks.audit.figure import Figure, share_figure
from tasks.audit.membership import areas, auc
from tasks.audit.resampling import bootstrap
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_documents
from tasks.corpora.words import fold, word_spans
from tasks.filling.aligned_fills import side_by_side
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.masked_sentence import MaskedSentence, fills_of, originals_of_slots, with_spans
from tasks.language_model.evaluation.bootstrap import percentile_interval

_SAMPLES, _CONFIDENCE, _SEED = 200, 0.95, 1


def detected_substitutes(
    fills: Iterable[tuple[MaskedSentence, Sequence[str]]],
    allowed_words: AllowedWords,
    counts: Mapping[str, int],
    most_lines: int = 1000,
    seed: int = 1,
) -> Figure:
    """AUC of distinguishing substitutes from words of the text: the probability that a random substitute is more
    suspicious than a random word of the text. Most suspicious is a word that another copy lacks, then a word that is
    not on the list of unmasked words (if there is one), then a rare word.

    ``counts``: of folded words in public text. Lines with a marker are drawn by ``seed``; the interval is a bootstrap
    over them.
    """
    lines = [(sentence, copies) for sentence, copies in fills if sentence.slots]
    rarity, is_substitute, line_of, aligned = [], [], [], 0
    for sentence, copies in Random(seed).sample(lines, min(most_lines, len(lines))):
        line = copies[0]
        spans = fills_of(sentence, line)
        if spans is None:
            continue
        others = [next(missing_words([line], [other])) for other in copies[1:]]
        for start, end in word_spans(line):
            word = fold(line[start:end])
            differs = any((start, end) in missing for missing in others)
            rarity.append((differs, bool(allowed_words) and not allowed_words.holds(word), -counts.get(word, 0)))
            is_substitute.append(any(first < end and start < last for first, last in spans))
            line_of.append(aligned)
        aligned += 1
    known = (
        "word counts of public text and the list of never-masked words"
        if allowed_words
        else "word counts of public text"
    )
    attacker = f"{known}; fills of one text: {len(lines[0][1]) if lines else 0}"
    substitutes, of_line = np.array(is_substitute, dtype=bool), np.array(line_of, dtype=np.int64)
    if not substitutes.any() or substitutes.all():
        return Figure(None, None, attacker, blind=0.5)
    order = {score: rank for rank, score in enumerate(sorted(set(rarity)))}
    ranks = np.array([order[score] for score in rarity])
    drawn = bootstrap(lambda counts: areas(ranks, substitutes, counts, of_line), aligned, _SAMPLES, _SEED)
    ends = percentile_interval(drawn, _CONFIDENCE) if aligned > 1 else None
    return Figure(auc(ranks, substitutes), (ends[0], ends[1]) if ends else None, attacker, 0.5, int(substitutes.sum()))


def found_by_second_fill(lines: Iterable[tuple[MaskedSentence, str, str]], attacker: str) -> Figure:
    """Share of masked places where a second fill of the line has another word: a reader of both fills knows that a word
    was masked there. Blind: the share of other words that differ, such as articles that agree with a substitute.

    ``lines``: each with its two fills. The interval is over lines.
    """
    differing, places, clear, clear_differing = [], [], 0, 0
    for sentence, first, second in lines:
        one, other = fills_of(sentence, first), fills_of(sentence, second)
        if not one or not other:
            continue
        pairs = zip(one, other, strict=True)
        differing.append(sum(fold(first[a:b]) != fold(second[c:d]) for (a, b), (c, d) in pairs))
        places.append(len(one))
        words = {
            (start, end)
            for start, end in word_spans(first)
            if not any(start < last and begin < end for begin, last in one)
        }
        clear += len(words)
        clear_differing += len(words & next(missing_words([first], [second])))
    return share_figure(differing, places, attacker, clear_differing / clear if clear else None)


def linked_mentions(
    fills: Iterable[tuple[MaskedSentence, Sequence[str]]],
    sidecar: str | Path,
    documents: str | Path | None = None,
) -> Figure:
    """Share of place pairs with equal masked words in a document that have equal substitutes; blind: the same share of
    pairs with different masked words. The difference lets an attacker follow a person through a document.

    ``documents``: the name of each line's document; without it each line is a document. Words and substitutes are
    folded. Several masked words in one slot count as one. The interval is over documents.
    """
    places: dict[str, Counter[tuple[tuple[str, ...], str]]] = {}
    streams = [fills, read_sidecar(sidecar), *([read_documents(documents)] if documents else [])]
    for (sentence, copies), spans, *name in side_by_side(*streams):
        found = fills_of(sentence, copies[0]) if sentence.slots else None
        if found is None:
            continue
        substitutes = [fold(copies[0][start:end]) for start, end in found]
        originals = [tuple(sorted(words)) for words in originals_of_slots(with_spans(sentence, spans))]
        document = name[0] if name else str(sentence.number)
        places.setdefault(document, Counter()).update(zip(originals, substitutes, strict=True))
    same, same_equal, other, other_equal = [], [], 0, 0
    for counted in places.values():
        by_original, by_substitute = Counter[tuple[str, ...]](), Counter[str]()
        for (original, substitute), number in counted.items():
            by_original[original] += number
            by_substitute[substitute] += number
        same.append(_pairs(by_original.values()))
        same_equal.append(_pairs(counted.values()))
        other += _pairs([counted.total()]) - same[-1]
        other_equal += _pairs(by_substitute.values()) - same_equal[-1]
    attacker = "equal substitutes within a document are taken for one and the same masked word"
    return share_figure(same_equal, same, attacker, other_equal / other if other else None)


def _pairs(sizes: Iterable[int]) -> int:
    """Number of pairs within groups of these sizes."""
    return sum(size * (size - 1) // 2 for size in sizes)
