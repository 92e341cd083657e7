"""What a training run is made of: where it agrees, one run can go on from another's checkpoint."""

import hashlib
from typing import TYPE_CHECKING

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.vocabulary import Vocabulary
from tasks.settings.checks import as_plain
from tasks.training.checkpoints.identity import hash_of, work_key

if TYPE_CHECKING:
    from torch import nn

_LIBRARIES = ("numpy", "torch", "lightning")


def training_identity(
    model: "nn.Module", vocabulary: Vocabulary, text: EncodedText, settings: TrainingSettings, seed: int
) -> dict[str, str]:
    """Hashes by what they are of: vocabulary, architecture, and what the order of batches comes from.

    A checkpoint with others is no state of this run, whatever else may have changed.
    """
    architecture = as_plain(model.architecture)
    return {
        "vocabulary": vocabulary.hash,
        "architecture": hash_of(architecture),
        "order": hash_of([_text_hash(text), seed, settings.batch_tokens, architecture]),
    }


def training_key(
    identity: dict[str, str],
    model: "nn.Module",
    valid: EncodedText | None,
    settings: TrainingSettings,
    log_every_steps: int,
) -> str:
    """The name of the folder of a run's checkpoints: its identity, the weights it begins with, and all else."""
    return work_key(
        identity,
        packages=["language_model"],
        libraries=_LIBRARIES,
        log_every_steps=log_every_steps,
        weights=_weights_hash(model),
        valid=None if valid is None else _text_hash(valid),
        settings=as_plain(settings),
    )


def _text_hash(text: EncodedText) -> str:
    digest = hashlib.sha256(b"markers are targets" if text.markers_are_targets else b"")
    digest.update(text.offsets.tobytes())
    digest.update(text.tokens.tobytes())
    return digest.hexdigest()


def _weights_hash(model: "nn.Module") -> str:
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name}\0".encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
