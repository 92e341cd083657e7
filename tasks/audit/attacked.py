"""What an audit attacks: its files, and how the text and the model were made."""

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
    """private text that the text was made from, or the model was trained on, one sentence a line"""
    text: Annotated[str | None, READ] = None
    """text to attack, made from the private one line by line"""
    documents: Annotated[str | None, READ] = None
    """the document of each private line, by any name, one a line, or Parquet with a column document"""
    masked: Annotated[str | None, READ] = None
    """masked texts of the private one, a folder for each technique"""
    model: Annotated[str | None, READ_MODEL] = None
    """language model to attack, with --non-members: a folder, hub name or package:NAME/FOLDER"""
    non_members: Annotated[str | None, READ] = None
    """lines of the same sort that the model was not trained on"""
    base: Annotated[str | None, READ_MODEL] = None
    """language model that it was adapted from; without --model a twin is adapted from it, and attacked"""
    valid: Annotated[str | None, READ] = None
    """text that the twin's training measures progress on, as for 'palimpsest adapt'"""


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
