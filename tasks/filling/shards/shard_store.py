"""Finished shards of a fill that may be interrupted, so that the next run goes on where this one ended.

They lie outside the outputs, in ``.palimpsest/fills/OUTPUT-KEY`` unless told otherwise, because DVC deletes the outputs
of a stage before it runs. OUTPUT names the output file, KEY is a hash of everything that decides the result: text,
sidecar, kept words, word counts, filler, settings, seed, code and versions. A shard of another key is never used.

A shard is one file: a line of JSON with its counts and the hash of its text, and the filled lines. It is complete or
not there. Filled text may still hold private words that were not masked, so files have mode 0600 and folders 0700.

Folders of the same output with another key are of no use any more and are removed, as are those that nobody has asked
for in 30 days. A folder in use is locked; the system lifts the lock when its process ends, however it ends.
"""

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.atomic_file import PRIVATE_FOLDER_MODE, atomic_writer, make_folder
from tasks.errors import CorpusError, ParameterError, ResourceError
from tasks.filling.filled_corpus import FilledShard

_DAYS_KEPT = 30
_LOCK = "lock"


class ShardStore:
    """The finished shards of one fill; nobody else uses them while it is open."""

    def __init__(self, work_folder: str | Path, output: str | Path, key: str, *, resume: bool) -> None:
        """Open or make the folder; without ``resume`` what an earlier run left in it is removed.

        Raises ``ResourceError`` where another process fills the same output, and ``ParameterError`` where the work
        folder is a file.
        """
        if Path(work_folder).is_file():
            raise ParameterError(f"--work-folder {str(work_folder)!r} is a file; name a folder")
        name = hashlib.sha256(str(Path(output).resolve()).encode()).hexdigest()[:12]
        self.folder = Path(work_folder) / f"{name}-{key[:32]}"
        self._lock = _locked_folder(self.folder)
        if self._lock is None:
            raise ResourceError(f"another process is filling {str(output)!r}; wait for it, or end it first")
        _remove_stale(Path(work_folder), name, self.folder)
        for file in self.folder.iterdir():
            # What a process that was killed was writing at that moment.
            if file.name != _LOCK and (file.suffix != ".shard" or not resume):
                file.unlink()

    def load(self, index: int) -> FilledShard | None:
        """A finished shard, or ``None`` where there is none or its file is damaged."""
        try:
            content = self._path(index).read_bytes()
        except FileNotFoundError:
            return None
        header, _, text = content.partition(b"\n")
        try:
            record: dict[str, Any] = json.loads(header)
            whole = record["sha256"] == hashlib.sha256(text).hexdigest()
        except (ValueError, KeyError, TypeError):
            return None
        if not whole:
            return None
        return FilledShard(index, text.decode("utf-8").split("\n")[:-1], record["tally"], resumed=True)

    def save(self, shard: FilledShard) -> None:
        """Write a shard: after this call it will not be computed again."""
        text = "".join(f"{line}\n" for line in shard.lines)
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        with atomic_writer(self._path(shard.index), private=True) as stream:
            stream.write(json.dumps({"sha256": digest, "tally": shard.tally}) + "\n")
            stream.write(text)

    def lines(self, shards: int) -> Iterator[str]:
        """The filled lines of so many shards from the first on; ``CorpusError`` where one has gone."""
        for index in range(shards):
            shard = self.load(index)
            if shard is None:
                raise CorpusError(f"{str(self._path(index))!r} has gone or is damaged; run the same command again")
            yield from shard.lines

    def remove(self) -> None:
        """Remove the folder: the output is complete."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Leave the folder to the next run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _path(self, index: int) -> Path:
        return self.folder / f"{index:08d}.shard"


def _locked_folder(folder: Path) -> int | None:
    """Make the folder and lock it; ``None`` where another process holds the lock."""
    while True:
        make_folder(folder, private=True)
        folder.chmod(PRIVATE_FOLDER_MODE)
        path = folder / _LOCK
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue  # removed in between, by a process that had just finished with it
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        try:
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                os.utime(folder)
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)  # a lock on a file that has been removed keeps nobody out


def _remove_stale(work_folder: Path, output_name: str, own: Path) -> None:
    oldest = time.time() - _DAYS_KEPT * 24 * 3600
    for folder in work_folder.iterdir():
        if folder == own or not (folder / _LOCK).is_file():
            continue
        try:
            stale = folder.name.startswith(f"{output_name}-") or folder.stat().st_mtime < oldest
        except FileNotFoundError:
            continue
        if not stale:
            continue
        handle = _locked_folder(folder)
        if handle is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)
