"""What a text gives away to its readers, and to who guesses what was masked."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tasks.audit.attacked import AttackSettings, AuditFiles
from tasks.audit.clear_text import missing_words, verbatim_lines
from tasks.audit.figure import Figure
from tasks.audit.linkage import same_entity_told, substitutes_told, told_by_second_fill
from tasks.audit.masked_places import masked_places
from tasks.audit.reidentification import reidentification
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_documents, read_lines
from tasks.filling.aligned_fills import filled_lines, side_by_side
from tasks.filling.beside_corpus import context_beside
from tasks.filling.filled_corpus import Shard
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.masked_sentence import MaskedSentence
from tasks.language_model.vocabulary import counts_of_words
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    from tasks.filling.context import FillContext

_FILLED_AGAIN = 300
"""Lines: a share of their places is known to six points or better, and a causal filler takes half a minute."""


def text_figures(
    settings: AttackSettings,
    files: AuditFiles,
    cell: Cell,
    resources: ResourceSettings,
    contexts: "list[FillContext]",
) -> dict[str, Figure]:
    """What the text gives away, to its readers and to who guesses what was masked; what it was filled again with is
    added to ``contexts``.

    A text whose lines were written anew is compared with the private one, as one of another program is; nobody has the
    masked text then. Of such a text the reference reader says how many identifiers it leaves unmasked.
    """
    method = settings.filling
    anew = method is not None and method.rewrites_lines
    text, copies = str(files.text), method.copies if method is not None else 1
    figures = {"verbatim_lines": verbatim_lines(files.private_text, text, copies)}
    if anew or (files.masked is None and cell.method is None):
        figures |= _unmasked(settings, files, text, resources, anywhere=anew)
    if anew or cell.technique is None or files.masked is None:
        return figures
    folder = Path(files.masked) / cell.technique
    return (
        figures
        | _guesses(settings, files, folder, text, resources)
        | (_links(settings, files, cell, resources, folder, text, contexts) if method is not None else {})
    )


def _unmasked(
    settings: AttackSettings, files: AuditFiles, text: str, resources: ResourceSettings, *, anywhere: bool
) -> dict[str, Figure]:
    """Direct and quasi-identifiers per 1,000 lines that the text holds still, by what the reference reader finds in
    lines drawn of the private one; corrected, with the range over kinds of text (``tasks.review.reader``)."""
    from tasks.masking.every_tagger import EveryTagger
    from tasks.review.reader import ReadText, basis

    hidden = missing_words(read_lines(files.private_text), read_lines(text), anywhere=anywhere)
    together = list(side_by_side(read_lines(files.private_text), hidden))
    drawn = Random(settings.seed).sample(together, min(settings.tagged_lines, len(together)))
    reader = EveryTagger(kind="every_tagger").build(files.word_counts, resources.threads)
    read = ReadText()
    for (line, found), (_, words) in zip(reader.findings(line for line, _ in drawn), drawn, strict=True):
        read.add(line, found, words)
    return {
        f"unmasked_{sort}": Figure(
            of_sort.per_thousand.value,
            (of_sort.per_thousand.low, of_sort.per_thousand.high),
            f"per 1,000 lines, of {read.lines:,} read; {basis(of_reader=False)}",
            places=of_sort.found,
        )
        for sort, of_sort in (("direct", read.of_sort("direct")), ("quasi", read.of_sort("quasi")))
    }


def _guesses(
    settings: AttackSettings, files: AuditFiles, masked: Path, text: str, resources: ResourceSettings
) -> dict[str, Figure]:
    """What somebody guesses of the masked words who knows how they were masked and filled."""
    method = settings.filling
    places = masked_places(
        masked / "text.txt",
        masked / "sidecar.jsonl",
        settings.places,
        settings.seed,
        returning_fill=text if method is not None and method.returns_originals else None,
        copies=method.copies if method is not None else 1,
        merge_markers=method.merges_markers if method is not None else True,
        following_fill=text if method is not None and method.tells_forms else None,
        documents=files.documents,
    )
    return reidentification(
        places,
        masked / "kept_words.txt",
        files.word_counts,
        settings.attacker,
        resources.threads,
        settings.reranker,
    )


def _links(
    settings: AttackSettings,
    files: AuditFiles,
    cell: Cell,
    resources: ResourceSettings,
    masked: Path,
    text: str,
    contexts: "list[FillContext]",
) -> dict[str, Figure]:
    """Which words are substitutes, by one fill and by two, and which of them stand for the same thing."""
    method = settings.filling
    assert method is not None, "a text that was filled"

    def fills() -> Iterator[tuple[MaskedSentence, tuple[str, ...]]]:
        return filled_lines(masked / "text.txt", text, method.copies, merge_markers=method.merges_markers)

    kept, counts = KeptWords.read(str(masked / "kept_words.txt")), counts_of_words(str(files.word_counts))
    return {
        "substitutes_told": substitutes_told(fills(), kept, counts, settings.tagged_lines, settings.seed),
        "same_entity_told": same_entity_told(fills(), masked / "sidecar.jsonl", files.documents),
        "told_by_second_fill": _by_second_fill(settings, files, cell, resources, masked, list(fills()), contexts),
    }


def _by_second_fill(
    settings: AttackSettings,
    files: AuditFiles,
    cell: Cell,
    resources: ResourceSettings,
    masked: Path,
    fills: Sequence[tuple[MaskedSentence, tuple[str, ...]]],
    contexts: "list[FillContext]",
) -> Figure:
    """Some lines are filled again, by another seed."""
    method = settings.filling
    assert method is not None, "a text that was filled"
    together = side_by_side(
        fills,
        read_lines(masked / "text.txt"),
        read_sidecar(masked / "sidecar.jsonl"),
        read_documents(files.documents) if files.documents else map(str, range(len(fills))),
    )
    with_markers = [each for each in together if each[2]]
    drawn = Random(settings.seed).sample(range(len(with_markers)), min(_FILLED_AGAIN, len(with_markers)))
    chosen = [with_markers[number] for number in sorted(drawn)]
    seed = 1 + (cell.seed or 0)
    attacker = f"has another fill of {len(chosen)} lines, by seed {seed}; takes words that differ for masked ones"
    if not chosen:
        return Figure(None, None, attacker)
    first, lines, spans, documents = map(list, zip(*chosen, strict=True))
    context = context_beside(method, masked, files, replace(cell, seed=seed), resources.threads)
    contexts.append(context)
    second = context.corpus_filler().fill_shard(Shard(0, 1, lines, spans, documents)).lines
    pairs = ((sentence, copies[0], again) for (sentence, copies), again in zip(first, second, strict=True))
    return told_by_second_fill(pairs, attacker)
