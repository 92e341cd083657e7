"""What ``pretrain`` and ``adapt`` read and write, whatever the kind of model."""

from typing import Annotated

from tasks.command import READ, READ_MODEL
from tasks.language_model.settings import MarkerUse
from tasks.training.stage import TrainedFolder


class PretrainFiles(TrainedFolder):
    """What pretraining reads and writes."""

    text: Annotated[str | None, READ] = None
    """text to train on, one sentence a line; kind causal_lm reads none"""
    vocabulary: Annotated[str | None, READ] = None
    """vocabulary file, made by the vocabulary command; kind causal_lm has its own"""
    valid: Annotated[str | None, READ] = None
    """plain text to measure progress on; a result depends on it with patience"""


class AdaptFiles(TrainedFolder):
    """What an adaptation reads and writes."""

    model: Annotated[str, READ_MODEL]
    """model to begin with: a folder, or a causal language model by its hub name or as package:NAME/FOLDER"""
    text: Annotated[str, READ]
    """text to train on, one sentence a line"""
    valid: Annotated[str | None, READ] = None
    """plain text to measure progress on; a result depends on it with patience, and in an n-gram model's weight"""
    generic_text: Annotated[str | None, READ] = None
    """generic text that is mixed in where generic_share is above 0, one sentence a line"""
    markers: MarkerUse | None = None
    """how markers in the text are treated: none (the text is plain), token or ignore; without it as --method says"""
    private: bool = False
    """make the model readable by its owner alone"""
