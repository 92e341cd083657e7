"""What is packed in a piece of data: compressed streams wherever they begin, archives, databases, git's objects."""

import bz2
import io
import lzma
import re
import sqlite3
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

LEVELS = 5
"""How deep packed data in packed data is followed."""
_Open = Callable[[memoryview], bytes]
_STREAMS: dict[bytes, _Open] = {
    b"\x1f\x8b\x08": lambda data: zlib.decompressobj(31).decompress(data),
    b"\x78[\x01\x5e\x9c\xda]": lambda data: zlib.decompressobj(15).decompress(data),
    b"BZh[1-9]1AY&SY": lambda data: bz2.BZ2Decompressor().decompress(data),
    b"\xfd7zXZ\\x00": lambda data: lzma.LZMADecompressor().decompress(data),
    b"\\x5d\\x00\\x00[\x00-\xff]{2}\xff{8}": lambda data: lzma.LZMADecompressor().decompress(data),
    b"\\x28\xb5\\x2f\xfd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}
"""The first bytes of each kind, and what reads it."""
_BEGINNINGS = re.compile(b"|".join(b"(%s)" % magic for magic in _STREAMS), re.DOTALL)
_OPENERS = list(_STREAMS.values())


def unpacked(content: bytes, levels: int = LEVELS) -> Iterator[bytes]:
    """The content, and that of everything packed in it. Members of a tar stand in it as they are."""
    yield content
    if levels:
        for part in _parts(content):
            yield from unpacked(part, levels - 1)


def _parts(content: bytes) -> Iterator[bytes]:
    view = memoryview(content)
    for beginning in _BEGINNINGS.finditer(content):
        try:
            part = _OPENERS[beginning.lastindex - 1](view[beginning.start() :])
        except (zlib.error, lzma.LZMAError, OSError, EOFError, MemoryError, zstandard.ZstdError):
            # Bytes that only look like a beginning.
            continue
        if part:
            yield part
    yield from _deflated(content)
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield archive.read(name)
    if content.startswith(b"SQLite format 3\0"):
        yield from _cells(content)


def _deflated(content: bytes) -> Iterator[bytes]:
    """Data without a header tells what it is only by being whole."""
    reader = zlib.decompressobj(-15)
    try:
        part = reader.decompress(content)
    except zlib.error:
        return
    if reader.eof and part:
        yield part


def _cells(content: bytes) -> Iterator[bytes]:
    """The cells of each table of a database: a page may cut a long one in two."""
    # Bytes 18 and 19 say that there is a log beside the file, which a copy in memory has not.
    store = sqlite3.connect(":memory:")
    store.deserialize(content[:18] + b"\x01\x01" + content[20:])
    store.text_factory = bytes
    tables = [row[0].decode() for row in store.execute("select name from sqlite_master where type = 'table'")]
    for table in tables:
        rows = store.execute(f'select * from "{table}"')
        yield b"\n".join(cell if isinstance(cell, bytes) else str(cell).encode() for row in rows for cell in row)
    store.close()


def git_objects(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of every object of a repository, loose or packed, whether anything refers to it or not."""
    command = ["git", "-C", str(folder), "cat-file", "--batch-all-objects", "--unordered", "--batch"]
    stream = io.BytesIO(subprocess.run(command, check=True, capture_output=True).stdout)
    while header := stream.readline():
        name, kind, size = header.split()
        yield f"git's {kind.decode()} {name.decode()}", stream.read(int(size))
        stream.readline()


def pieces(folder: Path, allowed: tuple[str, ...] = ()) -> Iterator[tuple[str, bytes]]:
    """Each file below a folder, and each object of a repository in it: its name and content, packed as it is.

    ``allowed``: beginnings of paths, relative to the folder, that are left out.
    """
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if f"{name}/".startswith(allowed):
            continue
        if path.name == ".git" and path.is_dir():
            yield from git_objects(path)
        elif path.is_file() and ".git/objects/" not in name:
            yield name, path.read_bytes()
