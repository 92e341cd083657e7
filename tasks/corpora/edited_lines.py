"""Lines that are equal except for spaces, case, punctuation and tokenisation, and lines that were edited.

Two lines are equal if their folded words have the same letters. A line is *edited* if half of the letter runs of the
shorter line are runs of the other. Examples are an added footer, or a few changed words.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise

import numpy as np

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold, word_spans

_RUN = 20
"""Letters of a run, about five words; a run begins at each word."""
_FEWEST_RUNS = 3
"""Fewest runs of an edited line: two lines of a few words have some in common by chance."""


class LineLetters:
    """A line by the letters of its folded words."""

    __slots__ = ("_starts", "digest", "form", "places", "text")

    def __init__(self, line: str, spans: Sequence[MaskedSpan]) -> None:
        """``spans``: the masked spans of the line, in order."""
        words = word_spans(line)
        letters = ["".join(filter(str.isalnum, fold(line[start:end]))) for start, end in words]
        self.text = "".join(letters)
        self.digest = _digest(self.text)
        """Digest that lines with the same letters share."""
        self._starts = [0, *accumulate(map(len, letters))]
        begun = [start for start, _ in words]
        ends = ((bisect_left(begun, span.start), bisect_left(begun, span.end)) for span in spans)
        self.places = [(self._starts[first], self._starts[last]) for first, last in ends]
        """Places of the spans in letters: first letter, and one past the last."""
        cuts = [0, *(place for span in spans for place in (span.start, span.end)), len(line)]
        pieces = [line[start:end] for start, end in pairwise(cuts)]
        # Masked text lacks the white space between merged markers.
        self.form = _digest(repr([" " if piece.isspace() else piece for piece in pieces]))
        """Digest that lines with the same characters and spans share."""

    def runs(self) -> np.ndarray:
        """The hashes of the line's runs (R,), int64; they are stable within one process."""
        whole = [start for start, _ in pairwise(self._starts) if start + _RUN <= len(self.text)]
        return np.array([hash(self.text[start : start + _RUN]) for start in whole], dtype=np.int64)


def edited_lines(ours: Iterable[np.ndarray], theirs: Iterable[np.ndarray]) -> dict[int, int]:
    """The most similar of ``theirs`` for each edited line of ``ours``, index by index, judged by their runs."""
    ours, theirs = list(ours), list(theirs)
    our_sizes, sizes = (np.array(list(map(len, lines)), dtype=np.int64) for lines in (ours, theirs))
    if not sizes.any() or not our_sizes.any():
        return {}
    asked, every = np.concatenate(ours), np.concatenate(theirs)
    order = np.argsort(every, kind="stable")
    at = order[np.minimum(np.searchsorted(every, asked, sorter=order), len(order) - 1)]
    hit = every[at] == asked
    owners, their_owners = np.repeat(np.arange(len(ours)), our_sizes), np.repeat(np.arange(len(theirs)), sizes)
    pairs, hits = np.unique(np.stack([owners[hit], their_owners[at[hit]]]), axis=1, return_counts=True)
    shorter = np.minimum(our_sizes[pairs[0]], sizes[pairs[1]])
    like = np.flatnonzero((shorter >= _FEWEST_RUNS) & (2 * hits >= shorter))
    # The most similar line comes last and stays.
    like = like[np.argsort(hits[like], kind="stable")]
    return dict(pairs[:, like].T.tolist())


def _digest(line: str) -> bytes:
    return blake2b(line.encode(), digest_size=16).digest()
