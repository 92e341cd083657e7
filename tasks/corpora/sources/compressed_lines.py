"""Lines of text files that are published compressed: Zstandard, gzip, bzip2, xz and the old ``compress`` (LZW).

The first bytes of a file show its compression, not its name. Reading streams: memory does not grow with the file,
except for the window of a Zstandard file, up to 2 GiB in dumps made with ``zstd --long=31``. A small file cannot fill
the window: lines have a longest length, and files a largest ratio (``text_lines.refuse_long``).
"""

import bz2
import gzip
import lzma
import subprocess
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from tasks.corpora.limits import LONGEST_LINE
from tasks.corpora.text_lines import decode_lines, held_lines, refuse_long
from tasks.errors import CorpusError, ResourceError

_CHUNK_BYTES = 1 << 8
"""Bytes of a Zstandard file per read. JSON decompresses to ten to twenty times as much, and any file to at most 11
MiB."""
_LONGEST_WINDOW = 1 << 31
_ZSTANDARD, _SKIPPABLE_FRAME = b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18"
_GZIP, _LZW, _BZIP2, _XZ = b"\x1f\x8b", b"\x1f\x9d", b"BZh", b"\xfd7zXZ\x00"


def read_compressed_lines(path: str | Path) -> Iterator[str]:
    """Each line of a file, decompressed if necessary, without its line end.

    Raises ``CorpusError`` with the line number if the file is missing, damaged, cut off, not UTF-8 or too large
    decompressed.
    """
    if not Path(path).is_file():
        raise CorpusError(f"text file {str(path)!r} does not exist; give its path")
    lines = count()
    with damaged(path, lines), decompressed(Path(path)) as stream:
        for line in decode_lines(refuse_long(stream, str(path), Path(path).stat().st_size), str(path)):
            next(lines)
            yield line


@contextmanager
def damaged(path: str | Path, lines: Iterator[int] | None = None) -> Iterator[None]:
    """Raise ``CorpusError`` if a compressed file is damaged, with the number of lines that were read."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        # gzip and bz2 report bytes that are not theirs with an error of the system without a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        after = f" after line {next(lines)}" if lines else ""
        raise CorpusError(
            f"{str(path)!r} is damaged or cut off{after} ({type(error).__name__}); fetch it again and compare "
            "its checksum with the publisher's"
        ) from None


@contextmanager
def decompressed(path: Path) -> Iterator[Iterable[bytes]]:
    """Open the lines of a file as bytes."""
    with open(path, "rb") as stream:
        magic = stream.read(6)
    if magic.startswith(_ZSTANDARD) or magic[1:4] == _SKIPPABLE_FRAME:
        yield _lines(_zstandard_chunks(path))
    elif magic.startswith(_LZW):
        with _lzw(path) as lines:
            yield lines
    else:
        openers: tuple[tuple[bytes, Any], ...] = ((_GZIP, gzip.open), (_BZIP2, bz2.open), (_XZ, lzma.open), (b"", open))
        with next(opener for start, opener in openers if magic.startswith(start))(path, "rb") as stream:
            yield held_lines(stream.readline)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Chunks of bytes cut at line ends, and at the longest length of a line."""
    rest: list[bytes] = []
    for chunk in chunks:
        if sum(map(len, rest)) > LONGEST_LINE:
            yield b"".join(rest)
            rest.clear()
        *lines, last = chunk.split(b"\n")
        for line in lines:
            rest.append(line)
            yield b"".join(rest)
            rest.clear()
        rest.append(last)
    if last := b"".join(rest):
        yield last


def _zstandard_chunks(path: Path) -> Iterator[bytes]:
    """Decompressed chunks of a Zstandard file of any number of frames; ``EOFError`` if one is cut off."""
    try:
        import zstandard
    except ImportError:
        raise ResourceError(
            f"{str(path)!r} is compressed with Zstandard, and the package 'zstandard' is not installed; "
            "'make install' installs it"
        ) from None
    decompressor = zstandard.ZstdDecompressor(max_window_size=_LONGEST_WINDOW)
    frame = decompressor.decompressobj()
    inside = False
    with open(path, "rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            while chunk:
                try:
                    yield frame.decompress(chunk)
                except zstandard.ZstdError as error:
                    raise EOFError from error
                inside = not frame.eof
                chunk = frame.unused_data
                if frame.eof:
                    frame = decompressor.decompressobj()
    if inside:
        raise EOFError


@contextmanager
def _lzw(path: Path) -> Iterator[Iterable[bytes]]:
    """Open the lines of a file made with ``compress`` (``.Z``); Python has no LZW, so the program gzip reads it."""
    try:
        process = subprocess.Popen(["gzip", "-dc", "--", str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        raise ResourceError(
            f"{str(path)!r} is compressed with the old 'compress', which the program gzip reads, and there is no gzip; "
            "install it, or decompress the file"
        ) from None
    with process:
        assert process.stdout is not None  # it is a pipe
        yield held_lines(process.stdout.readline)
        if process.wait():
            raise EOFError
