"""Lines that are masked and filled as a corpus was, beside it: made-up sentences of a page, canaries of an audit.

What a fill learns before its first line, it learns from the corpus, which these lines are no part of.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tasks.corpora.sidecar import MaskedSpan
from tasks.filling.fill import FillFiles, GenericFiles
from tasks.masking.settings import TechniqueSettings
from tasks.options import READ, READ_MODEL
from tasks.records.cell import Cell

if TYPE_CHECKING:
    from tasks.filling.context import FillContext
    from tasks.filling.settings import FillingMethod


@dataclass(frozen=True)
class MaskedLines:
    """Masked lines, and what was masked in each."""

    lines: list[str]
    spans: list[list[MaskedSpan]]


@dataclass(frozen=True)
class PlantedLines(MaskedLines):
    """Lines whose masked words are counted with the corpus's, where a method counts these: for an attack, of which
    numbers alone leave. The counts have noise of their own, are kept nowhere, and spend nothing of the corpus's budget.
    """

    documents: list[str]
    """Of each of them."""
    corpus_documents: str | None
    """File with the document of each line of the corpus."""


class CorpusFiles(GenericFiles):
    """What the corpus was masked and filled with."""

    filler: Annotated[str | None, READ_MODEL] = None
    """filler, as for 'palimpsest fill'"""
    word_counts: Annotated[str | None, READ] = None
    """as for 'palimpsest fill'"""


def mask_beside(
    technique: TechniqueSettings, lines: Sequence[str], word_counts: str | None, threads: int
) -> MaskedLines:
    """Mask lines by a technique."""
    from tasks.masking.technique import MaskingTally

    loaded, markers = technique.build(word_counts, threads), technique.markers
    found = list(loaded.mask(lines, markers.style, MaskingTally(), with_spans=True, merge=markers.merge))
    return MaskedLines([line for line, _ in found], [list(spans) for _, spans in found])


def context_beside(
    method: "FillingMethod",
    masked: Path,
    files: CorpusFiles,
    cell: Cell,
    threads: int,
    like: "FillContext | None" = None,
    planted: PlantedLines | None = None,
) -> "FillContext":
    """That of a fill of the corpus whose masked text lies in the folder ``masked``; ``like`` as for ``FillContext``.

    A method that counts masked words counts the corpus's with those ``planted``, and without any it goes by the
    frequencies of the domain: the sidecar is read for nothing else.
    """
    from tasks.filling.context import FillContext

    counts = method.counts_masked_words and planted is not None
    if method.counts_masked_words and not counts:
        method = method.model_copy(update={"prior": "domain", "counts": None})
    given = FillFiles(
        input=str(masked / "text.txt"),
        output="-",
        filler=files.filler if method.uses_filler else None,
        kept_words=str(masked / "kept_words.txt"),
        word_counts=files.word_counts,
        generic=files.generic,
        sidecar=str(masked / "sidecar.jsonl") if counts else None,
        documents=planted.corpus_documents if planted else None,
    )
    context = FillContext.read(method, given, cell, threads, like=like)
    return replace(context, planted=planted) if counts else context
