"""One moment of a training run on disk: tensors in safetensors, everything else in JSON, nothing pickled.

``step-N.safetensors`` holds weights, optimiser state, generator states and, with early stopping, the best weights so
far. ``step-N.json`` is written after it and holds its hash: a checkpoint without that file is not there. Both have
mode 0600, since a model may have learned private text by heart.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from tasks.errors import ModelError
from tasks.files.atomic_file import atomic_writer

FORMAT = 1


@dataclass(frozen=True)
class Checkpoint:
    """A moment of a training run."""

    state: dict[str, Any]
    """Everything that is no tensor; ``step`` is the number of optimiser steps done."""
    tensors: dict[str, Tensor]
    """On the processor."""

    @property
    def step(self) -> int:
        """Optimiser steps done."""
        return int(self.state["step"])


class DamagedCheckpointError(ModelError):
    """A checkpoint is truncated, corrupt, or no checkpoint."""


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint; what was there before stays whatever happens. Returns the path of its JSON."""
    from safetensors.torch import save

    content = save({name: value.contiguous() for name, value in checkpoint.tensors.items()})
    path = folder / f"step-{checkpoint.step:08d}.json"
    with atomic_writer(path.with_suffix(".safetensors"), private=True, binary=True) as stream:
        stream.write(content)
    document = {"format": FORMAT, "tensors": hashlib.sha256(content).hexdigest(), **checkpoint.state}
    text = json.dumps(document, allow_nan=False)
    with atomic_writer(path, private=True) as stream:
        stream.write(json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest()}) + "\n" + text + "\n")
    return path


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint by the path of its JSON.

    Raises ``DamagedCheckpointError`` where a part is missing, truncated or changed, and ``ModelError`` where it is of
    another format.
    """
    from safetensors.torch import load

    tensors = path.with_suffix(".safetensors")
    try:
        first, _, text = path.read_text(encoding="utf-8").partition("\n")
        if json.loads(first)["sha256"] != hashlib.sha256(text.rstrip("\n").encode()).hexdigest():
            raise ValueError("its hash is another one")
        document = json.loads(text)
    except FileNotFoundError:
        raise DamagedCheckpointError(
            f"checkpoint {str(path)!r} does not exist; give the .json of a checkpoint, or leave out --resume-from"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise DamagedCheckpointError(f"checkpoint {str(path)!r} is damaged") from None
    if document.pop("format", None) != FORMAT:
        raise ModelError(f"checkpoint {str(path)!r} is not of format {FORMAT}, which this version reads")
    try:
        content = tensors.read_bytes()
    except FileNotFoundError:
        raise DamagedCheckpointError(f"checkpoint {str(path)!r} lacks its file {tensors.name!r}") from None
    if hashlib.sha256(content).hexdigest() != document.pop("tensors"):
        raise DamagedCheckpointError(
            f"checkpoint {str(tensors)!r} is damaged: its hash is not the one it was saved with"
        )
    return Checkpoint(document, load(content))


def checkpoints_in(folder: Path) -> list[Path]:
    """Paths of the checkpoints of a folder, the latest first."""
    return sorted(folder.glob("step-*.json"), reverse=True)


def remove_checkpoint(path: Path) -> None:
    """Remove a checkpoint: its JSON first, so that no half of it looks whole."""
    path.unlink(missing_ok=True)
    path.with_suffix(".safetensors").unlink(missing_ok=True)
