"""What a training run is made of: where it agrees, one run can go on from another's checkpoint."""

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tasks
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.settings import TrainingSettings
from tasks.language_model.vocabulary import Vocabulary
from tasks.params import as_plain

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
        "architecture": _hash_of(architecture),
        "order": _hash_of([_text_hash(text), seed, settings.batch_tokens, architecture]),
    }


def training_key(
    identity: dict[str, str],
    model: "nn.Module",
    valid: EncodedText | None,
    settings: TrainingSettings,
    log_every_steps: int,
) -> str:
    """One hash of everything that decides what a training run comes to: the name of its checkpoints' folder.

    Besides the identity that is the weights it begins with, all settings, the valid text, the code and the versions of
    the libraries. Not in it: devices, threads and compilation, which change last digits only.
    """
    from tasks.torch_setup import has_bfloat16

    return _hash_of(
        {
            **identity,
            "weights": _weights_hash(model),
            "valid": None if valid is None else _text_hash(valid),
            "settings": as_plain(settings),
            "bfloat16": has_bfloat16(),
            "log_every_steps": log_every_steps,
            "code": _code_hash(),
            "versions": {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}},
        }
    )


def _hash_of(document: Any) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


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


def _code_hash() -> str:
    folder = Path(tasks.__file__).parent / "language_model"
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(f"{file.relative_to(folder).as_posix()}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
