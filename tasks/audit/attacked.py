"""What an audit attacks: its files, and how the text and the model were made."""

import os
from typing import Annotated

from pydantic import Field

from tasks.audit.settings import AuditSettings
from tasks.filling.beside_corpus import CorpusFiles
from tasks.filling.fillers.settings import CausalLanguageModelTuning, MaskedLanguageModelTuning
from tasks.filling.methods import AnyMethod
from tasks.language_model.settings import AdaptSettings
from tasks.masking.techniques import AnyTechnique
from tasks.options import READ, READ_MODEL


class AuditFiles(CorpusFiles):
    """What is attacked, and what the attackers know."""

    members: Annotated[str, READ]
    """private text that the text was made from or the model trained on, one sentence a line; or folder of a private
    corpus"""
    text: Annotated[str | None, READ] = None
    """text to attack, made line by line from the private text"""
    masked: Annotated[str | None, READ] = None
    """masked texts made from the private text, a folder for each technique"""
    model: Annotated[str | None, READ_MODEL] = None
    """language model to attack, with --non-members: a folder, hub name or package:NAME/FOLDER"""
    non_members: Annotated[str | None, READ] = None
    """lines of the same sort that the model was not trained on"""
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
    """All of the experiment: a tagger among them that has not masked the text looks for what is left."""
    filling: AnyMethod | None = Field(default=None, exclude=True)
    """``None`` where nothing was filled."""
    tuning: MaskedLanguageModelTuning | CausalLanguageModelTuning | None = Field(default=None, exclude=True)
    """How the filler was tuned on the masked text, with the folder of its base; ``None`` where it was not."""
    adaptation: AdaptSettings | None = Field(default=None, exclude=True)
    """``None`` where no twin is trained."""
