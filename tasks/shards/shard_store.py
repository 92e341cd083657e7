"""The finished shards of one piece of work: private files that survive a kill.

They lie in a ``WorkFolder`` under a key of everything that decides the result, so a shard of other work is never used.
A shard is one file, complete or not there. Shards hold private text: files have mode 0600, folders 0700.
"""

import os
import pickle
from pathlib import Path
from typing import Any
from uuid import uuid4

from tasks.files.atomic_file import PRIVATE_MODE
from tasks.files.work_folder import LOCK, WorkFolder


class ShardStore:
    """The shards of one piece of work; nobody else uses them while it is open."""

    def __init__(self, work_folder: str | Path, output: str | Path, key: str, *, resume: bool) -> None:
        """Open or make the folder; without ``resume`` what an earlier run left in it is removed.

        Raises what ``WorkFolder`` does.
        """
        self._work = WorkFolder(work_folder, output, key)
        self.folder = self._work.path
        for file in self.folder.iterdir():
            # What a process that was killed was writing at that moment.
            if file.name != LOCK and (file.suffix != ".shard" or not resume):
                file.unlink()

    def load(self, index: int) -> Any:  # noqa: ANN401 - what was saved
        """A finished shard, or ``None`` where there is none."""
        try:
            return read_pickle(shard_path(self.folder, index))
        except FileNotFoundError:
            return None

    def save(self, index: int, result: object) -> None:
        """Write a shard: after this call it will not be computed again."""
        write_pickle(shard_path(self.folder, index), result)

    def remove(self) -> None:
        """Remove the folder: the output is complete."""
        self._work.remove()

    def close(self) -> None:
        """Leave the folder to the next run."""
        self._work.close()


def shard_path(folder: Path, index: int) -> Path:
    """The file of a finished shard."""
    return folder / f"{index:08d}.shard"


def write_pickle(path: Path, value: object) -> None:
    """Private, and complete or not there.

    Unlike ``atomic_writer`` it does not look for what killed writers have left, which among ten thousand shards would
    be most of the work: ``ShardStore`` does so once.
    """
    partial = path.with_name(f".{path.name}.{uuid4().hex}.partial")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE), "wb") as stream:
            pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # a full disk: of which file
        raise


def read_pickle(path: Path) -> Any:  # noqa: ANN401 - what was written
    """What ``write_pickle`` wrote: nobody else can write into a private folder."""
    return pickle.loads(path.read_bytes())
