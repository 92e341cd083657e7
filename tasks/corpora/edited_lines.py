"""Lines that are the same but for spaces, case, punctuation and tokenisation, and lines that were edited.

Two lines are the same where their folded words have the same letters. A line is *edited* where half of the runs of
letters of the shorter one are those of the other: as with a footer, or another word here and there.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import accumulate, pairwise

import numpy as np

from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold, word_spans

_RUN = 20
"""Letters of a run, some five words; each word begins one."""
_FEWEST_RUNS = 3
"""Of a line that may be an edited one: two lines of a few words have some in common by chance."""


class LineLetters:
    """A line by the letters of its folded words."""

    __slots__ = ("_starts", "digest", "form", "places", "text")

    def __init__(self, line: str, spans: Sequence[MaskedSpan]) -> None:
        """``spans``: what is masked in it, in order."""
        words = word_spans(line)
        letters = ["".join(filter(str.isalnum, fold(line[start:end]))) for start, end in words]
        self.text = "".join(letters)
        self.digest = _digest(self.text)
        """The same for lines of the same letters."""
        self._starts = [0, *accumulate(map(len, letters))]
        begun = [start for start, _ in words]
        ends = ((bisect_left(begun, span.start), bisect_left(begun, span.end)) for span in spans)
        self.places = [(self._starts[first], self._starts[last]) for first, last in ends]
        """Those of the spans: first letter, and the one past the last."""
        cuts = [0, *(place for span in spans for place in (span.start, span.end)), len(line)]
        pieces = [line[start:end] for start, end in pairwise(cuts)]
        # Masked text does not say what white space was between merged markers.
        self.form = _digest(repr([" " if piece.isspace() else piece for piece in pieces]))
        """The same for lines of the same characters and spans."""

    def runs(self) -> np.ndarray:
        """Hashes of its runs (R,), int64: the same in one process."""
        whole = [start for start, _ in pairwise(self._starts) if start + _RUN <= len(self.text)]
        return np.array([hash(self.text[start : start + _RUN]) for start in whole], dtype=np.int64)


def edited_lines(ours: Iterable[np.ndarray], theirs: Iterable[np.ndarray]) -> dict[int, int]:
    """Which lines are edited lines of others, and of which most: indices by index; all are given by their runs."""
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
    # The likest is the last one, which stays.
    like = like[np.argsort(hits[like], kind="stable")]
    return dict(pairs[:, like].T.tolist())


def _digest(line: str) -> bytes:
    return blake2b(line.encode(), digest_size=16).digest()
