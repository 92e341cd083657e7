"""Alignment of masked and filled text: the position of each fill in a filled line.

A fill replaces words one by one, so the masked line, matched with the filled one, gives the substitutes.
"""

from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError
from tasks.filling.masked_sentence import MaskedSentence, read_masked_line


def side_by_side(*streams: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """The streams line by line. Raises ``CorpusError`` if one has more lines than another."""
    for together in zip_longest(*streams):
        if any(one is None for one in together):
            raise CorpusError(
                "private text, masked text, sidecars, documents and audited text have not equally many lines, so they "
                "are not of one corpus; give files of the same corpus"
            )
        yield together


def filled_lines(
    masked: str | Path, filled: str | Path, copies: int = 1, *, merge_markers: bool = True
) -> Iterator[tuple[MaskedSentence, tuple[str, ...]]]:
    """Each masked line with its fill in every copy of the corpus; ``filled`` has the copies in sequence.

    ``merge_markers``: the method's ``merges_markers``.
    """
    length = sum(1 for _ in read_lines(masked))
    each = [islice(read_lines(filled), copy * length, (copy + 1) * length) for copy in range(copies)]
    for number, (line, *fills) in enumerate(side_by_side(read_lines(masked), *each), start=1):
        yield read_masked_line(line, number, merge_markers=merge_markers), tuple(fills)
