"""Which private words a text hides, and which of its lines equal private lines.

A word is *hidden* if the other text does not have it. For a text that palimpsest masked, the sidecar says which words
are hidden. A fill that happens to equal the masked word counts as hidden: no reader knows that it is equal. For other
texts, hidden words come from an alignment of each line with its private line. ``tasks.review`` measures how many
identifiers are not hidden.
"""

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path

from tasks.audit.figure import Figure
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.corpora.words import fold, word_spans
from tasks.filling.aligned_fills import side_by_side

Words = frozenset[tuple[int, int]]
"""Words of one private line, by start and end offset."""


def masked_words(sidecar: str | Path) -> Iterator[Words]:
    """The words of each line that are masked."""
    for spans in read_sidecar(sidecar):
        yield frozenset((span.start, span.end) for span in spans)


def missing_words(raw: Iterable[str], text: Iterable[str], *, anywhere: bool = False) -> Iterator[Words]:
    """The words of each private line that its other line lacks, in the same order or ``anywhere``; case is ignored."""
    for line, other in side_by_side(raw, text):
        if line == other:
            yield frozenset()
            continue
        spans = word_spans(line)
        ours, theirs = ([fold(one[start:end]) for start, end in word_spans(one)] for one in (line, other))
        if anywhere:
            yield frozenset(span for span, word in zip(spans, ours, strict=True) if word not in theirs)
            continue
        missing = set(spans)
        for block in SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks():
            missing -= set(spans[block.a : block.a + block.size])
        yield frozenset(missing)


def verbatim_lines(raw: str | Path, text: str | Path, copies: int = 1) -> Figure:
    """Share of lines equal to the private line; ``text`` has ``copies`` fills, one after the other."""
    equal = lines = 0
    repeated = chain.from_iterable(read_lines(raw) for _ in range(copies))
    for one, other in side_by_side(repeated, read_lines(text)):
        lines += 1
        equal += one == other
    return Figure(equal / lines if lines else None, None, "a reader of the text", places=lines)
