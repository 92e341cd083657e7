"""What a text gives away to its readers, and to who guesses what was masked."""

from collections.abc import Iterator
from pathlib import Path

from tasks.audit.attacked import AttackSettings, AuditFiles
from tasks.audit.clear_text import clear_text, other_tagger
from tasks.audit.figure import Figure
from tasks.audit.linkage import same_entity_told, substitutes_told
from tasks.audit.masked_places import masked_places
from tasks.audit.reidentification import reidentification
from tasks.filling.aligned_fills import filled_lines
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.masked_sentence import MaskedSentence
from tasks.language_model.evaluation.reference_text import sidecars_in
from tasks.language_model.vocabulary import counts_of_words
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings


def text_figures(
    settings: AttackSettings, files: AuditFiles, cell: Cell, resources: ResourceSettings
) -> dict[str, Figure]:
    """What the text gives away, to its readers and to who guesses what was masked.

    A text whose lines were written anew is held against the private one, as one of another program is; nobody has the
    masked text then.
    """
    method = settings.filling
    members, text = files.members, str(files.text)
    anew = method is not None and method.rewrites_lines
    own = None if anew else cell.technique
    copies = method.copies if method is not None else 1
    sidecars = sidecars_in(files.masked) if files.masked else {}
    # Of those that have masked the models are there.
    masked_by = {name: settings.techniques[name] for name in sidecars if name in settings.techniques}
    tagger = other_tagger(masked_by, own).build(files.word_counts, resources.threads)
    figures = clear_text(
        members,
        text,
        sidecars,
        own,
        tagger,
        copies=copies,
        documents=files.documents,
        most_lines=settings.tagged_lines,
        seed=settings.seed,
        anywhere=anew,
    )
    if own is None or files.masked is None:
        return figures
    folder = Path(files.masked) / own
    return (
        figures
        | _guesses(settings, files, folder, text, resources)
        | (_links(settings, files, folder, text) if method is not None else {})
    )


def _guesses(
    settings: AttackSettings, files: AuditFiles, masked: Path, text: str, resources: ResourceSettings
) -> dict[str, Figure]:
    """What somebody guesses of the masked words who knows how they were masked and filled."""
    method = settings.filling
    forbids = method is not None and method.forbid_original
    places = masked_places(
        masked / "text.txt",
        masked / "sidecar.jsonl",
        settings.places,
        settings.seed,
        forbidding_fill=text if forbids else None,
        returning_fill=text if method is not None and method.returns_originals else None,
        copies=method.copies if method is not None else 1,
        merge_markers=method.merge_markers if method is not None else True,
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


def _links(settings: AttackSettings, files: AuditFiles, masked: Path, text: str) -> dict[str, Figure]:
    """Which words are substitutes, and which of them stand for the same thing."""
    method = settings.filling
    assert method is not None, "a text that was filled"

    def fills() -> Iterator[tuple[MaskedSentence, tuple[str, ...]]]:
        return filled_lines(masked / "text.txt", text, method.copies, merge_markers=method.merge_markers)

    kept, counts = KeptWords.read(str(masked / "kept_words.txt")), counts_of_words(str(files.word_counts))
    return {
        "substitutes_told": substitutes_told(fills(), kept, counts, settings.tagged_lines, settings.seed),
        "same_entity_told": same_entity_told(fills(), masked / "sidecar.jsonl", files.documents),
    }
