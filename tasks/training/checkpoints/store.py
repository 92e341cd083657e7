"""The checkpoints of one training run: when one is due, where they lie, and which one the next run goes on from."""

import sys
import time
from pathlib import Path

from tasks.errors import ModelError, ResourceError
from tasks.files.work_folder import LOCK, WorkFolder
from tasks.training.checkpoints.checkpoint import (
    Checkpoint,
    DamagedCheckpointError,
    checkpoints_in,
    read_checkpoint,
    remove_checkpoint,
    write_checkpoint,
)

_KEPT = 2
"""So many are kept: where the latest turns out to be damaged, the one before it is there."""


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

        Without ``resume`` what an earlier run left in the folder is removed. ``resume_from`` names the JSON of a
        checkpoint to begin with in place of the folder's.
        """
        self.identity = identity
        self.folder = folder
        self._every_steps, self._every_seconds = every_steps, every_seconds
        self._resume_from = Path(resume_from) if resume_from else None
        self._last = time.monotonic()
        self._written = self._clean(resume) if folder else []

    def _clean(self, resume: bool) -> list[Path]:
        """Remove what is no checkpoint, or no longer wanted."""
        assert self.folder is not None
        found = checkpoints_in(self.folder.path) if resume or self._resume_from else []
        if self._resume_from is not None:
            found = [path for path in found if path.resolve() == self._resume_from.resolve()]
        kept = {LOCK, *(name for path in found for name in (path.name, path.with_suffix(".safetensors").name))}
        for file in self.folder.path.iterdir():
            # What a process that was killed was writing at that moment, among others.
            if file.name not in kept:
                file.unlink()
        return found

    @property
    def last_good(self) -> str:
        """Words for a message: the step of the latest checkpoint and where it is."""
        if not self._written:
            return "there is no checkpoint yet"
        return f"the last good checkpoint is {str(self._written[0])!r}"

    def latest(self) -> Checkpoint | None:
        """What to go on from, on the first rank; ``None`` to begin anew.

        A damaged checkpoint is named on standard error and the one before it is taken. Raises ``ModelError`` where
        ``resume_from`` is damaged or belongs to another vocabulary, model or text.
        """
        if self._resume_from is not None:
            checkpoint = read_checkpoint(self._resume_from)
            self._check_identity(checkpoint, self._resume_from)
            return checkpoint
        for path in list(self._written):
            try:
                checkpoint = read_checkpoint(path)
            except DamagedCheckpointError as error:
                self._written.remove(path)
                remove_checkpoint(path)
                follower = "the one before it is taken" if self._written else "training begins anew"
                print(f"warning: {error}; {follower}", file=sys.stderr)
                continue
            self._check_identity(checkpoint, path)
            return checkpoint
        return None

    def _check_identity(self, checkpoint: Checkpoint, path: Path) -> None:
        of_checkpoint = checkpoint.state["identity"]
        anew = "leave out --resume-from" if self._resume_from else "train anew with --no-resume"
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
        """Write a checkpoint and remove those that are too old.

        Raises ``ResourceError`` where the disk is full; earlier checkpoints stay.
        """
        assert self.folder is not None
        try:
            path = write_checkpoint(self.folder.path, checkpoint)
        except OSError as error:
            raise ResourceError(
                f"the checkpoint of step {checkpoint.step} cannot be written to {str(self.folder.path)!r} "
                f"({error.strerror}); {self.last_good}: free some space and run the same command again"
            ) from None
        self._written = [path, *(other for other in self._written if other != path)]
        for other in self._written[_KEPT:]:
            remove_checkpoint(other)
        del self._written[_KEPT:]
        self._last = time.monotonic()

    def remove(self) -> None:
        """Remove all: the model is complete."""
        if self.folder is not None:
            self.folder.remove()

    def close(self) -> None:
        """Leave them to the next run."""
        if self.folder is not None:
            self.folder.close()
