"""A corpus on disk: UTF-8 text, one sentence a line, the line number (from 1) its stable sentence id.

``-`` is standard input or standard output. A pipe or a device is a stream too: read once and never hashed. Lines end at
``\\n`` only: other Unicode line separators belong to the sentence. A path that ends in ``.parquet`` is a folder of
Parquet files with the same lines (``parquet_lines``). Reading streams: memory does not grow with the corpus.

The module also reads single lines of JSON, and numbers in users' files.
"""

import codecs
import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tasks.corpora.forms import FIRST_BYTES, refuse_binary, refuse_records
from tasks.corpora.limits import LARGEST_RATIO, LONGEST_LINE
from tasks.errors import CorpusError
from tasks.files.atomic_file import PARQUET, atomic_writer, is_parquet, is_pipe_or_device, refuse_folder
from tasks.files.separate_paths import STANDARD_STREAM

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_stream(path: str | Path) -> bool:
    """Whether a path is ``-``, a pipe or a device: its data can be read or written only once."""
    return str(path) == STANDARD_STREAM or is_pipe_or_device(path)


def refuse_stream(path: str | Path, why: str) -> None:
    """Raise ``CorpusError`` if a path is a stream; ``why`` names the step that reads it more than once."""
    if is_stream(path):
        raise CorpusError(
            f"{str(path)!r} can be read only once, and {why}; write it to a file first, and give the file"
        )


def read_lines(path: str | Path, what: str = "text file", *, column: str = "text") -> Iterator[str]:
    """Each line without its line end (``\\n`` or ``\\r\\n``); a leading byte order mark is removed.

    A file that begins with the byte order mark of UTF-16 is read as UTF-16.

    ``what`` names the file in errors: ``word list``, ``sidecar``; ``column`` is the column of Parquet. Raises
    ``CorpusError`` if the file is missing, is a folder, does not begin as text, or has a line that is not UTF-8. The
    error has file, line and byte, and never quotes the text. The errors of ``parquet_rows`` are passed on.
    """
    if str(path) == STANDARD_STREAM:
        yield from decode_lines(refuse_long(held_lines(sys.stdin.buffer.readline), "standard input"), "standard input")
        return
    if not Path(path).exists():
        raise CorpusError(f"{what} {str(path)!r} does not exist; give the path of a UTF-8 text file")
    if is_parquet(path):
        from tasks.corpora.parquet_lines import parquet_rows

        yield from decode_lines(refuse_long(parquet_rows(path, column), str(path)), str(path))
        return
    if Path(path).is_dir():
        raise CorpusError(f"{what} {str(path)!r} is a folder; give a UTF-8 text file, or a folder NAME{PARQUET}")
    with open(path, "rb") as stream:
        head = stream.peek(FIRST_BYTES)[:FIRST_BYTES]
        refuse_binary(path, head)
        if head.startswith(UTF16_MARKS):
            yield from encoded_lines(stream, str(path), "utf-16")
        else:
            # Data on each word of a line, as in a sidecar, may be longer than the line.
            lines = refuse_long(held_lines(stream.readline), str(path)) if what == "text file" else stream
            yield from decode_lines(lines, str(path))


def encoded_lines(stream: IO[bytes], name: str, encoding: str) -> Iterator[str]:
    """The lines of a stream in an encoding, without line ends."""
    number = 0
    try:
        for line in io.TextIOWrapper(stream, encoding=encoding, newline="\n"):
            number += 1
            yield line.removeprefix("\ufeff" if number == 1 else "").removesuffix("\n").removesuffix("\r")
    except UnicodeError:
        raise CorpusError(
            f"{name}: it is not {encoding.upper()} after line {number}; save it as UTF-8, or name its encoding"
        ) from None


def refuse_no_sentences(path: str | Path) -> None:
    """Raise ``CorpusError`` if a file holds records, mail or another form instead of one sentence a line."""
    if not is_stream(path) and not is_parquet(path) and Path(path).is_file():
        refuse_records(path)


def read_documents(path: str | Path) -> Iterator[str]:
    """The document name of each line: one a line, or the column ``document`` of Parquet."""
    return read_lines(path, "documents file", column="document")


def held_lines(readline: Callable[[int], bytes]) -> Iterator[bytes]:
    """The lines of a stream by its ``readline``, cut after ``LONGEST_LINE`` bytes to bound the memory."""
    return iter(lambda: readline(LONGEST_LINE + 1), b"")


def refuse_long(lines: Iterable[bytes], name: str, compressed_bytes: int | None = None) -> Iterator[bytes]:
    """The lines, decompressed from so many bytes if ``compressed_bytes`` are given.

    Raises ``CorpusError`` with the number of the line that is longer than ``LONGEST_LINE``, or at which the
    decompressed size exceeds ``LARGEST_RATIO``: a small file must not fill memory or disk.
    """
    most = math.inf if compressed_bytes is None else LARGEST_RATIO * compressed_bytes + LONGEST_LINE
    size = 0
    for number, line in enumerate(lines, start=1):
        size += len(line)
        if len(line) > LONGEST_LINE:
            raise CorpusError(
                f"{name}: line {number} is longer than {LONGEST_LINE >> 20} MiB; if it is text, decompress or divide it"
            )
        if size > most:
            raise CorpusError(
                f"{name}: line {number} is where more than {LARGEST_RATIO} times the file's size has come out; "
                "if it is text, decompress the file yourself"
            )
        yield line


def decode_lines(
    stream: Iterable[bytes], name: str, fallback: Callable[[bytes], str | None] | None = None
) -> Iterator[str]:
    """Lines of bytes as text without line ends; ``name`` names the stream in error messages.

    ``fallback`` returns the encoding of the first line that is not UTF-8, if all earlier ones are ASCII.
    """
    encoding, is_ascii = "utf-8", True
    for number, raw in enumerate(stream, start=1):
        if number == 1:
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
        try:
            line = raw.decode(encoding)
        except UnicodeDecodeError as error:
            found = fallback(raw) if fallback and is_ascii and encoding == "utf-8" else None
            if found is None:
                raise CorpusError(
                    f"{name}: line {number}: byte {error.start + 1} (0x{raw[error.start]:02x}) is not "
                    f"{encoding.upper()}; convert the file, for example with "
                    "'iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW'"
                ) from None
            encoding, line = found, raw.decode(found)
        is_ascii = is_ascii and line.isascii()
        yield line.removesuffix("\n").removesuffix("\r")


def read_corpus(path: str | Path) -> list[str]:
    """All lines of a corpus that must not be empty.

    Raises ``CorpusError`` if no line has a word character, and the errors of ``read_lines`` and
    ``refuse_no_sentences``.
    """
    refuse_no_sentences(path)
    lines = list(read_lines(path))
    if not any(map(str.strip, lines)):
        raise empty_text(path)
    return lines


def refuse_empty(path: str | Path) -> None:
    """Raise the errors of ``read_corpus``, which reads on to the first line that is not empty."""
    refuse_no_sentences(path)
    if not any(map(str.strip, read_lines(path))):
        raise empty_text(path)


def empty_text(path: str | Path) -> CorpusError:
    """The error for a text without a sentence."""
    name = "standard input" if str(path) == STANDARD_STREAM else f"text {str(path)!r}"
    return CorpusError(f"{name} is empty; it needs at least one sentence")


def standard_output() -> IO[str]:
    """The stream of ``-``; ``CorpusError`` if the caller has closed standard output."""
    if sys.stdout is None:
        raise CorpusError("standard output is closed; open it, or name a file for the output")
    return sys.stdout


@contextmanager
def line_writer(path: str | Path, *, private: bool = False) -> Iterator[IO[str]]:
    """Open a text stream to ``path`` (complete or absent), or to standard output, a pipe or a device.

    A path that ends in ``.parquet`` becomes a folder of Parquet files; ``ParameterError`` if another folder exists
    there.
    """
    if str(path) == STANDARD_STREAM:
        output = standard_output()
        # Text mode would fail on surrogates and translate line ends by locale.
        output.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[attr-defined]
        yield output
        output.flush()
        return
    if is_parquet(path):
        from tasks.corpora.parquet_lines import parquet_writer

        refuse_folder(path, of_lines=True)
        with parquet_writer(path, private=private) as stream:
            yield stream
        return
    with atomic_writer(path, private=private) as stream:
        yield stream


def write_lines(path: str | Path, lines: Iterable[str], *, private: bool = False) -> int:
    """Write one sentence a line and return their number; a line end inside a sentence raises ``ValueError``."""
    count = 0
    with line_writer(path, private=private) as stream:
        for line in lines:
            if "\n" in line:
                raise ValueError("a sentence holds a line end")
            stream.write(line)
            stream.write("\n")
            count += 1
    return count


class NoJson(ValueError):
    """A line is not JSON; the message has the reason without a quotation."""


def read_json_line(line: str) -> Any:  # noqa: ANN401 - what JSON can hold
    """The value of a JSON line; ``NoJson`` if it is no JSON, is nested too deeply, or repeats a key."""
    try:
        return json.loads(line, object_pairs_hook=_without_repetition)
    except NoJson:
        raise
    except json.JSONDecodeError as error:
        raise NoJson(f"is not JSON (column {error.colno})") from None
    except (ValueError, RecursionError):
        # A number of thousands of digits, or brackets by the thousand.
        raise NoJson("is not JSON") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise NoJson(f"has the key {twice!r} twice")
    return found


_MOST_DIGITS = 18
"""Most digits of a whole number: each is below 2 to the power of 63."""


def whole_number(text: str) -> int | None:
    """The number of at most 18 digits 0 to 9; ``None`` for anything else."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else None


def finite_number(value: object) -> float | None:
    """A number of JSON; ``None`` for NaN, infinity, overflow, truth values and other types."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
