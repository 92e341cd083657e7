"""Attacks on a text: verbatim lines, unmasked identifiers, and guesses of masked words."""

from dataclasses import replace
from random import Random

from tasks.audit.attacked import AttackedText
from tasks.audit.clear_text import missing_words, verbatim_lines
from tasks.audit.figure import Figure
from tasks.audit.linkage import detected_substitutes, found_by_second_fill, linked_mentions
from tasks.audit.reidentification import reidentification
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_documents, read_lines
from tasks.filling.aligned_fills import side_by_side
from tasks.filling.filled_lines import Part
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.language_model.vocabulary import counts_of_words

_FILLED_AGAIN = 300
"""Lines. They give the share of places to within six points; a causal filler takes half a minute."""


def verbatim(attacked: AttackedText) -> dict[str, Figure]:
    """The share of lines that are equal to the private lines."""
    copies = attacked.method.copies if attacked.method is not None else 1
    return {"verbatim_lines": verbatim_lines(attacked.files.private_text, attacked.path, copies)}


def unmasked(attacked: AttackedText) -> dict[str, Figure]:
    """Direct and quasi-identifiers per 1,000 lines that are left in another program's text or in a rewritten text.

    The reference reader finds them in a sample of private lines. Counts are corrected and have the range over kinds of
    text (``tasks.review.reader``).
    """
    settings, files, rewritten = attacked.settings, attacked.files, attacked.is_rewritten
    if not rewritten and (files.masked is not None or attacked.cell.method is not None):
        return {}
    from tasks.masking.every_tagger import EveryTagger
    from tasks.review.reader import ReadText, basis

    hidden = missing_words(read_lines(files.private_text), read_lines(attacked.path), anywhere=rewritten)
    together = list(side_by_side(read_lines(files.private_text), hidden))
    drawn = Random(settings.seed).sample(together, min(settings.tagged_lines, len(together)))
    reader = EveryTagger(kind="every_tagger").build(files.word_counts, attacked.resources.threads)
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


def guesses(attacked: AttackedText) -> dict[str, Figure]:
    """Masked words that are guessed by an attacker who knows the masking and filling methods."""
    if attacked.masked is None:
        return {}
    return reidentification(attacked.places, attacked.guesser, attacked.settings.reranker)


def substitutes(attacked: AttackedText) -> dict[str, Figure]:
    """How well an attacker distinguishes substitutes from words of the text."""
    masked, settings = attacked.masked, attacked.settings
    if masked is None or attacked.method is None:
        return {}
    allowed_words, counts = AllowedWords.read(masked / "allowed_words.txt"), str(attacked.files.word_counts)
    by_rarity = allowed_words, counts_of_words(counts), settings.tagged_lines, settings.seed
    return {"detected_substitutes": detected_substitutes(attacked.fills, *by_rarity)}


def same_entities(attacked: AttackedText) -> dict[str, Figure]:
    """How often equal substitutes reveal equal masked words."""
    masked, documents = attacked.masked, attacked.files.documents
    if masked is None or attacked.method is None:
        return {}
    return {"linked_mentions": linked_mentions(attacked.fills, masked / "sidecar.jsonl", documents)}


def second_fill(attacked: AttackedText) -> dict[str, Figure]:
    """Masked places that differ when some lines are filled again with another seed."""
    masked, files, fills = attacked.masked, attacked.files, attacked.fills
    if masked is None or attacked.method is None:
        return {}
    together = side_by_side(
        fills,
        read_lines(masked / "text.txt"),
        read_sidecar(masked / "sidecar.jsonl"),
        read_documents(files.documents) if files.documents else map(str, range(len(fills))),
    )
    with_markers = [each for each in together if each[2]]
    number = min(_FILLED_AGAIN, len(with_markers))
    chosen = [with_markers[n] for n in sorted(Random(attacked.settings.seed).sample(range(len(with_markers)), number))]
    seed = 1 + (attacked.cell.seed or 0)
    attacker = f"has another fill of {len(chosen)} lines, by seed {seed}; takes words that differ for masked ones"
    if not chosen:
        return {"found_by_second_fill": Figure(None, None, attacker)}
    first, lines, spans, documents = map(list, zip(*chosen, strict=True))
    second = replace(attacked.prepared, seed=seed).fill(Part(1, lines, spans, documents))
    pairs = ((sentence, copies[0], again) for (sentence, copies), again in zip(first, second, strict=True))
    return {"found_by_second_fill": found_by_second_fill(pairs, attacker)}
