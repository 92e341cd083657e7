"""DVC's own files, put in place whole: whoever is killed while one is written leaves the old one.

Imports nothing of this project: the supervisor loads it by its path.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PARTIAL = ".partial"
"""Ending of a file of DVC's that is being written."""


def replace_files_whole() -> None:
    """Let DVC write ``dvc.lock``, and its list of locks, beside the old file and then put it in place.

    DVC 3.67 truncates the file and then fills it. A kill in between would lose the record of every stage of the graph,
    or leave a list of locks that stops every further stage of the run.
    """
    from dvc import rwlock
    from dvc.utils.serialize import _common

    def dump(path: Any, data: Any, dumper: Any, fs: Any = None, **options: Any) -> None:
        text = io.StringIO()
        dumper(data, text, **options)
        write_whole(os.fspath(path), text.getvalue())

    _common._dump_data = dump
    edit = rwlock._edit_rwlock
    rwlock._edit_rwlock = lambda folder, fs, hardlink: edit(folder, WholeFiles(fs), hardlink)


class WholeFiles:
    """A file system of DVC's whose files are replaced when they are written; only what the list of locks needs."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs
        self.join = fs.join

    @contextmanager
    def open(self, path: str, mode: str = "r", **options: Any) -> Iterator[Any]:
        """As ``open``; a file that is written takes its place when it is closed without an error."""
        with self._fs.open(path if mode == "r" else path + PARTIAL, mode, **options) as stream:
            yield stream
        if mode != "r":
            os.replace(path + PARTIAL, path)


def write_whole(target: str, text: str) -> None:
    """Put a text in the place of a file: whoever reads it sees the old one or the new one."""
    partial = target + PARTIAL
    with open(partial, "w", encoding="utf-8") as stream:
        stream.write(text)
    os.chmod(partial, os.stat(target).st_mode & 0o777 if os.path.exists(target) else 0o644)
    os.replace(partial, target)
