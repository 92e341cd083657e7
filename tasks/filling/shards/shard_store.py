"""Finished shards of a fill that may be interrupted, so that the next run goes on where this one ended.

They lie in a ``WorkFolder``, in ``.palimpsest/fills`` unless told otherwise. Its key is a hash of everything that
decides the result: text, sidecar, kept words, word counts, filler, settings, seed, code and versions. A shard of
another key is never used.

A shard is one file: a line of JSON with its counts and the hash of its text, and the filled lines. It is complete or
not there. Filled text may still hold private words that were not masked, so files have mode 0600 and folders 0700.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError
from tasks.files.atomic_file import atomic_writer
from tasks.files.work_folder import LOCK, WorkFolder
from tasks.filling.filled_corpus import FilledShard


class ShardStore:
    """The finished shards of one fill; nobody else uses them while it is open."""

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
        self._work.remove()

    def close(self) -> None:
        """Leave the folder to the next run."""
        self._work.close()

    def _path(self, index: int) -> Path:
        return self.folder / f"{index:08d}.shard"
