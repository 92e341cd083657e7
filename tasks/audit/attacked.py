"""The text and the model that an audit attacks, its files, and how both were made."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tasks.audit.settings import AuditSettings
from tasks.filling.fill_files import CorpusFiles
from tasks.filling.fillers.settings import CausalLanguageModelTuning, MaskedLanguageModelTuning
from tasks.filling.methods import AnyMethod
from tasks.language_model.settings import AdaptSettings
from tasks.masking.techniques import AnyTechnique
from tasks.options import READ, READ_MODEL
from tasks.records.cell import Cell
from tasks.settings.resources import ResourceSettings

if TYPE_CHECKING:
    import numpy as np

    from tasks.audit.canaries import Canaries
    from tasks.audit.line_scores import LineScores
    from tasks.audit.masked_places import MaskedPlace
    from tasks.audit.reidentification import Guesser
    from tasks.filling.masked_sentence import MaskedSentence
    from tasks.filling.opened_filler import OpenedFiller
    from tasks.filling.prepared_fill import PlantedLines, PreparedFill
    from tasks.filling.settings import FillingMethod
    from tasks.language_model.language_models import LanguageModel


class AuditFiles(CorpusFiles):
    """The attacked text and model, and the files that attackers know."""

    members: Annotated[str, READ]
    """private text that the text was made from or the model trained on, one sentence a line; or folder of a private
    corpus"""
    text: Annotated[str | None, READ] = None
    """text to attack, made line by line from the private text; with --held-out any text made from it"""
    held_out: Annotated[str | None, READ] = None
    """lines of the same sort, or folder of a corpus, that a coin left out before --text was made"""
    masked: Annotated[str | None, READ] = None
    """masked texts made from the private text, a folder for each technique"""
    model: Annotated[str | None, READ_MODEL] = None
    """language model to attack, with --non-members: a folder, hub name or package:NAME/FOLDER"""
    non_members: Annotated[str | None, READ] = None
    """lines of the same sort that the model was not trained on"""
    released_model: Annotated[str | None, READ_MODEL] = None
    """language model adapted on --text, for the rung 'released' of audit.ladder"""
    raw_model: Annotated[str | None, READ_MODEL] = None
    """language model adapted on the private text, for the rung 'raw' of audit.ladder"""
    base: Annotated[str | None, READ_MODEL] = None
    """language model that --model was adapted from; without --model, a twin is adapted from it and attacked"""

    @property
    def private_text(self) -> str:
        """File with the private lines."""
        return os.path.join(self.members, "train.txt") if os.path.isdir(self.members) else self.members

    @property
    def documents(self) -> str | None:
        """File with the document of each private line, where a corpus has one."""
        return self._beside("train.documents")

    @property
    def valid(self) -> str | None:
        """Text that the twin's training measures progress on, as for 'palimpsest adapt'."""
        return self._beside("valid.txt")

    def _beside(self, name: str) -> str | None:
        path = os.path.join(self.members, name)
        return path if os.path.isfile(path) else None


class AttackSettings(AuditSettings):
    """The section ``audit``, and how the attacked text and model were made."""

    techniques: dict[str, AnyTechnique] = Field(default_factory=dict, exclude=True)
    """All techniques of the experiment; taggers that did not mask the text search it for unmasked identifiers."""
    filling: AnyMethod | None = Field(default=None, exclude=True)
    """``None`` if nothing was filled."""
    tuning: MaskedLanguageModelTuning | CausalLanguageModelTuning | None = Field(default=None, exclude=True)
    """Tuning of the filler on the masked text, with its base folder; ``None`` if it was not tuned."""
    adaptation: AdaptSettings | None = Field(default=None, exclude=True)
    """``None`` if no twin is trained."""


@dataclass(frozen=True)
class AttackedText:
    """A text that was made line by line from the private one, and how it was masked and filled."""

    settings: AttackSettings
    files: AuditFiles
    cell: Cell
    resources: ResourceSettings

    @property
    def path(self) -> str:
        """File of the text."""
        return str(self.files.text)

    @property
    def method(self) -> "FillingMethod | None":
        """Filling method; ``None`` if nothing was filled."""
        return self.settings.filling

    @property
    def is_rewritten(self) -> bool:
        """Whether the method writes new lines; then no attacker has the masked text."""
        return self.method is not None and self.method.rewrites_lines

    @property
    def masked(self) -> Path | None:
        """Folder of the masked text that was filled; ``None`` if there is none."""
        if self.is_rewritten or self.cell.technique is None or self.files.masked is None:
            return None
        return Path(self.files.masked) / self.cell.technique

    @cached_property
    def places(self) -> "Sequence[MaskedPlace]":
        """The masked words that are guessed, each with the attacker's knowledge of it; empty without a masked text."""
        from tasks.audit.masked_places import masked_places

        method, masked = self.method, self.masked
        if masked is None:
            return []
        return masked_places(
            masked / "text.txt",
            masked / "sidecar.jsonl",
            self.settings.places,
            self.settings.seed,
            copies=method.copies if method is not None else 1,
            merge_markers=method.merges_markers if method is not None else True,
            following_fill=self.path if method is not None and method.follows_originals else None,
            documents=self.files.documents,
        )

    @cached_property
    def fills(self) -> "Sequence[tuple[MaskedSentence, tuple[str, ...]]]":
        """Each masked line with its fills; empty if nothing was masked and filled."""
        from tasks.filling.aligned_fills import filled_lines

        method, masked = self.method, self.masked
        if method is None or masked is None:
            return []
        merged = method.merges_markers
        return list(filled_lines(masked / "text.txt", self.path, method.copies, merge_markers=merged))

    @cached_property
    def guesser(self) -> "Guesser":
        """The attacker of masked words."""
        from tasks.audit.reidentification import Guesser

        allowed_words = self.masked / "allowed_words.txt" if self.masked is not None else None
        return Guesser(self.settings.attacker, self.resources.threads, allowed_words, self.files.word_counts)

    @cached_property
    def _opened(self) -> "OpenedFiller":
        return self.files.opened(self.resources.threads)

    @cached_property
    def prepared(self) -> "PreparedFill":
        """The cell's fill for other lines, without counts of masked words; learns from the corpus once."""
        return self._prepared(None)

    def with_planted(self, planted: "PlantedLines") -> "PreparedFill":
        """The cell's fill with counts of the masked words, including those of planted lines."""
        return self._prepared(planted) if self.method and self.method.counts_masked_words else self.prepared

    def _prepared(self, planted: "PlantedLines | None") -> "PreparedFill":
        from tasks.filling.prepared_fill import prepare_like_corpus

        assert self.method is not None, "a text that was filled"
        folder = Path(str(self.files.masked)) / str(self.cell.technique)
        return prepare_like_corpus(self.method, folder, self.files, self.cell, self._opened, planted)


@dataclass(frozen=True)
class Shadow:
    """Scores by another model that was trained in the same way on some of the lines."""

    means: "np.ndarray"
    """Mean log-probability of a target (S,), in nats, for each line that has a word."""
    is_member: "np.ndarray"
    """Whether the model was trained on each line (L,), bool."""


@dataclass(frozen=True)
class AttackedModel:
    """A language model, lines that it was trained on, and other lines of the same kind."""

    model: "LanguageModel"
    lines: Sequence[str]
    is_member: "np.ndarray"
    """Whether the model was trained on each line (L,), bool."""
    documents: Sequence[str]
    """Document of each line (L,)."""
    settings: AuditSettings
    threads: int = 1
    base: "LanguageModel | None" = None
    """The model before it was adapted; ``None`` if the attacker does not have it."""
    before: "LineScores | None" = None
    """Scores of the lines under ``base``."""
    shadows: Sequence[Shadow] = ()
    """Shadow models; each line is a member of equally many."""
    canaries: "Canaries | None" = None
    """Sentences that were planted into its text."""
    planted: Sequence[str] = ()
    """The canaries as they are in the text, masked and filled."""
    text: Sequence[str] | None = None
    """The text made from the lines; ``None`` if the model was trained on the lines themselves."""
    public: str | None = None
    """File with public text."""
