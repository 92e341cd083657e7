"""The checkpoints of one training run: what one is on disk, when one is due, and which one the next run goes on from.

``step-N.checkpoint`` is one file: the SHA-256 of the rest in its first line, then tensors and state as safetensors has
them, nothing pickled. The tensors are weights, optimiser state, generator states and, with early stopping, the best
weights so far; everything else is in the state. It has mode 0600, since a model may have learned private text by heart.
"""

import hashlib
import json
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tasks
from tasks.errors import ModelError, ResourceError
from tasks.files.atomic_file import atomic_writer
from tasks.files.work_folder import LOCK, WorkFolder

if TYPE_CHECKING:
    from torch import Tensor

DEFAULT_WORK_FOLDER = ".palimpsest/checkpoints"
"""Where checkpoints lie: outside the outputs, because DVC deletes the outputs of a stage before it runs."""
FORMAT = 2


@dataclass(frozen=True)
class Checkpoint:
    """A moment of a training run."""

    state: dict[str, Any]
    """Everything that is no tensor; ``step`` is the number of optimiser steps done."""
    tensors: "dict[str, Tensor]"
    """On the processor."""

    @property
    def step(self) -> int:
        """Optimiser steps done."""
        return int(self.state["step"])


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint; what was there before stays whatever happens. Returns its path."""
    from safetensors.torch import save

    state = json.dumps({"format": FORMAT, **checkpoint.state}, allow_nan=False)
    content = save({name: value.contiguous() for name, value in checkpoint.tensors.items()}, {"state": state})
    path = folder / f"step-{checkpoint.step:08d}.checkpoint"
    with atomic_writer(path, private=True, binary=True) as stream:
        stream.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    return path


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; ``ModelError`` where it is missing, truncated, changed or of another format."""
    from safetensors.torch import load

    try:
        expected, _, content = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        raise ModelError(
            f"checkpoint {str(path)!r} does not exist; give a file step-N.checkpoint, or no resources.resume_from"
        ) from None
    if not content or hashlib.sha256(content).hexdigest().encode() != expected:
        raise ModelError(f"checkpoint {str(path)!r} is damaged: its hash is not the one it was saved with")
    # Eight bytes say how long the description of the tensors is, which holds the state.
    description = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    state = json.loads(description["__metadata__"]["state"])
    if state.pop("format") != FORMAT:
        raise ModelError(f"checkpoint {str(path)!r} is not of format {FORMAT}, which this version reads")
    return Checkpoint(state, load(content))


def checkpoints_in(folder: Path) -> list[Path]:
    """Paths of the checkpoints of a folder, the latest first."""
    return sorted(folder.glob("step-*.checkpoint"), reverse=True)


class CheckpointStore:
    """Writes, finds and removes the checkpoints of one run."""

    def __init__(
        self,
        identity: dict[str, str],
        folder: WorkFolder | None,
        *,
        every_steps: int = 0,
        every_seconds: float = 0.0,
        resume: bool = True,
        resume_from: str | Path | None = None,
    ) -> None:
        """``folder`` is ``None`` on all ranks but the first, which neither write nor read.

        Without ``resume`` what an earlier run left in the folder is removed. ``resume_from`` names a checkpoint to
        begin with in place of the folder's.
        """
        self.identity = identity
        self.folder = folder
        self._every_steps, self._every_seconds = every_steps, every_seconds
        self._resume_from = Path(resume_from) if resume_from else None
        self._last = time.monotonic()
        self._latest = self._clean(resume) if folder else None

    def _clean(self, resume: bool) -> Path | None:
        """Remove what is no checkpoint, or no longer wanted; the one that is left, if any."""
        assert self.folder is not None
        found = checkpoints_in(self.folder.path) if resume or self._resume_from else []
        if self._resume_from is not None:
            found = [path for path in found if path.resolve() == self._resume_from.resolve()]
        for file in self.folder.path.iterdir():
            # What a process that was killed was writing at that moment, among others.
            if file.name != LOCK and file not in found[:1]:
                file.unlink()
        return found[0] if found else None

    @property
    def last_good(self) -> str:
        """Words for a message: the step of the latest checkpoint and where it is."""
        if self._latest is None:
            return "there is no checkpoint yet"
        return f"the last good checkpoint is {str(self._latest)!r}"

    def latest(self) -> Checkpoint | None:
        """What to go on from, on the first rank; ``None`` to begin anew.

        Raises ``ModelError`` where it is damaged, or belongs to another vocabulary, model or text.
        """
        path = self._resume_from or self._latest
        if path is None:
            return None
        checkpoint = read_checkpoint(path)
        self._check_identity(checkpoint, path)
        return checkpoint

    def _check_identity(self, checkpoint: Checkpoint, path: Path) -> None:
        of_checkpoint = checkpoint.state["identity"]
        anew = (
            "leave out resources.resume_from" if self._resume_from else "train anew with --set resources.resume=false"
        )
        remedies = {
            "vocabulary": f"give the model that it belongs to, or {anew}",
            "architecture": f"give the same architecture, or {anew}",
            "order": f"give the same text, markers, seed and batch_tokens, or {anew}",
        }
        for part, remedy in remedies.items():
            if of_checkpoint[part] != self.identity[part]:
                name = "text and order of batches" if part == "order" else part
                raise ModelError(
                    f"checkpoint {str(path)!r} is of another {name}: its hash is {of_checkpoint[part][:12]}, that of "
                    f"this run is {self.identity[part][:12]}; {remedy}"
                )

    def is_due(self, step: int) -> bool:
        """Whether a checkpoint is to be written after so many steps; asked on the first rank."""
        if self._every_steps and step % self._every_steps == 0:
            return True
        return bool(self._every_seconds) and time.monotonic() - self._last >= self._every_seconds

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint and remove the one before it.

        Raises ``ResourceError`` where the disk is full; the earlier checkpoint stays.
        """
        assert self.folder is not None
        try:
            path = write_checkpoint(self.folder.path, checkpoint)
        except OSError as error:
            raise ResourceError(
                f"the checkpoint of step {checkpoint.step} cannot be written to {str(self.folder.path)!r} "
                f"({error.strerror}); {self.last_good}: free some space and run the same command again"
            ) from None
        if self._latest is not None and self._latest != path:
            self._latest.unlink(missing_ok=True)
        self._latest = path
        self._last = time.monotonic()

    def remove(self) -> None:
        """Remove all: the model is complete."""
        if self.folder is not None:
            self.folder.remove()

    def close(self) -> None:
        """Leave them to the next run."""
        if self.folder is not None:
            self.folder.close()


def hash_of(document: object) -> str:
    """Hash of what JSON can hold."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def work_key(
    identity: dict[str, str],
    *,
    packages: Sequence[str],
    libraries: Sequence[str],
    log_every_steps: int,
    **decisive: object,
) -> str:
    """One hash of everything that decides what a training run comes to: the name of its checkpoints' folder.

    Besides the identity, without which a checkpoint is no state of this run, that is what ``decisive`` names, such as
    the settings, the code of ``packages`` (folders of ``tasks``; this one is always among them) and the versions of the
    libraries. Not in it: devices, threads and compilation, which change last digits only.
    """
    from tasks.torch_setup import has_bfloat16

    return hash_of(
        {
            **identity,
            **decisive,
            "bfloat16": has_bfloat16(),
            "log_every_steps": log_every_steps,
            "code": _code_hash(["training", *packages]),
            "versions": {"python": platform.python_version(), **{name: version(name) for name in libraries}},
        }
    )


def _code_hash(packages: Sequence[str]) -> str:
    root = Path(tasks.__file__).parent
    digest = hashlib.sha256()
    for package in packages:
        for file in sorted((root / package).rglob("*.py")):
            digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
