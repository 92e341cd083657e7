"""Lines as a folder of Parquet files, for paths that end in ``.parquet``.

One row is one line. Written columns are ``id``, the line number from 1, and ``text``, in files
``lines-00000-of-00003.parquet``. So other tools (Hugging Face ``datasets``, DuckDB, Spark) can join text, masked text,
sidecar and fill by ``id``. Reading takes one column of a single file, or of a folder's files in the order of their
names; any writer will do. The column ``document`` is read if documents are needed. It is never written: it would name
the author next to the masked text.

Memory does not grow with the text: a file holds row groups of at most ``GROUP_LINES`` lines, and is read in smaller
pieces. ``pyarrow`` takes a quarter of a second to import, so only functions import it.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from tasks.corpora.limits import LARGEST_RATIO, LONGEST_LINE
from tasks.errors import CorpusError
from tasks.files.atomic_file import PARQUET, PRIVATE_MODE, PUBLIC_MODE, atomic_folder

if TYPE_CHECKING:
    from pyarrow import Array, DataType, RecordBatch
    from pyarrow.parquet import ParquetFile, ParquetWriter

TEXT, DOCUMENT = "text", "document"
"""Columns that are read; ``document`` may hold numbers too."""
FILE_LINES, FILE_BYTES = 100_000, 32 << 20
"""Lines and bytes of a file; it ends after the row group that reaches one of these."""
GROUP_LINES, GROUP_BYTES = 10_000, 1 << 20
"""Lines and bytes of a row group and of a writer's memory; more only for a longer line."""
_READ_ROWS, _READ_BYTES = 4096, 1 << 20
"""Rows, and compressed bytes of each column, that a reader holds in memory."""
_ONE_OF_SEVERAL = re.compile(r"(.*)-(\d+)-of-(\d+)\.parquet")


def parquet_files(path: str | Path) -> list[Path]:
    """The files of a folder in order of their names, or the one file.

    Raises ``CorpusError`` if there is none, or if names such as ``NAME-00000-of-00003.parquet`` show that one is
    missing.
    """
    place = Path(path)
    if not place.is_dir():
        return [place]
    files = sorted(file for file in place.glob(f"*{PARQUET}") if not file.name.startswith((".", "_")))
    if not files:
        raise CorpusError(f"folder {str(path)!r} holds no file that ends in {PARQUET}; give one that does")
    named = Counter(match.group(1, 3) for file in files if (match := _ONE_OF_SEVERAL.fullmatch(file.name)))
    for (name, total), count in named.items():
        if count != int(total):
            raise CorpusError(
                f"folder {str(path)!r} holds {count} of the {int(total)} files {name}-*-of-{total}{PARQUET}; copy it "
                "whole, or write it again"
            )
    return files


@contextmanager
def open_parquet(path: Path, dictionaries: Sequence[str] = ()) -> "Iterator[ParquetFile]":
    """Open a Parquet file, of which the block reads only its own columns; ``CorpusError`` if they are damaged.

    Values of the columns ``dictionaries`` stay in their dictionaries.
    """
    import pyarrow
    import pyarrow.parquet

    with open(path, "rb") as stream:
        try:
            yield pyarrow.parquet.ParquetFile(
                stream, buffer_size=_READ_BYTES, read_dictionary=list(dictionaries) or None
            )
        except (pyarrow.ArrowException, OSError):
            # The library's message may quote the text.
            raise CorpusError(f"{str(path)!r} is not a readable Parquet file; write or copy it again") from None


def parquet_batches(path: Path, columns: Sequence[str], rows: int = _READ_ROWS) -> "Iterator[RecordBatch]":
    """Some columns of a file, so many rows at a time.

    Raises ``CorpusError`` if a column is missing, or if a file expands far more than text does.
    """
    from pyarrow import RecordBatch, types

    with open_parquet(path) as table:
        names = table.schema_arrow.names
        if missing := [column for column in columns if column not in names]:
            raise CorpusError(
                f"{str(path)!r} has no column {missing[0]!r}; there are: {', '.join(names)}; rename the one that is "
                "meant, or name it in the settings of the corpus"
            )
        texts = [column for column in columns if _is_text(table.schema_arrow.field(column).type)]
    left = LARGEST_RATIO * path.stat().st_size + LONGEST_LINE
    # A dictionary has a long text once, and its rows take a bit each: the size is counted before decoding.
    with open_parquet(path, texts) as table:
        for batch in table.iter_batches(batch_size=rows, columns=list(columns), use_threads=False):
            left -= sum(map(_bytes_of, batch.columns))
            if left < 0:
                raise CorpusError(
                    f"{str(path)!r} holds more than {LARGEST_RATIO} times its size; give it as text if it is"
                )
            plain = [one.cast(one.type.value_type) if types.is_dictionary(one.type) else one for one in batch.columns]
            yield RecordBatch.from_arrays(plain, batch.schema.names)


def _bytes_of(column: "Array") -> int:
    """The decoded bytes of a column: each value as often as it occurs."""
    from pyarrow import compute, types

    if types.is_dictionary(column.type) and _is_text(column.type.value_type):
        lengths = compute.take(compute.binary_length(column.dictionary), column.indices)
        return compute.sum(lengths.cast("int64")).as_py() or 0
    return int(column.nbytes)


def parquet_rows(path: str | Path, column: str) -> Iterator[bytes]:
    """A column's values in UTF-8, of all files.

    Raises ``CorpusError`` with file and row for a null value or one with a line feed: it would be no line, or two.
    """
    import pyarrow
    from pyarrow import compute

    for file in parquet_files(path):
        rows = 0
        for batch in parquet_batches(file, [column]):
            values = batch.column(0)
            if not _is_read(values.type, column):
                raise CorpusError(
                    f"{str(file)!r}: column {column!r} holds {values.type} and no text; write it as strings"
                )
            values = values.cast(pyarrow.large_string())
            wrong = compute.index(compute.fill_null(compute.match_substring(values, "\n"), True), True).as_py()
            if wrong >= 0:
                what = "has a line end" if values[wrong].is_valid else "is null"
                raise CorpusError(
                    f"{str(file)!r}: row {rows + wrong + 1} {what} in {column!r}, which holds one line a row; leave it "
                    "out, or correct it (a corpus of kind 'files' divides rows into sentences with split: true)"
                )
            yield from values.cast(pyarrow.large_binary()).to_numpy(zero_copy_only=False).tolist()
            rows += len(values)


def _is_read(kind: "DataType", column: str) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return _is_text(kind) or (column == DOCUMENT and types.is_integer(kind))


def _is_text(kind: "DataType") -> bool:
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)


@contextmanager
def parquet_writer(path: str | Path, *, private: bool) -> Iterator[IO[str]]:
    """Open a text stream whose lines become rows; the folder replaces an earlier one when the block ends well.

    A ``private`` folder has mode 0700, its files 0600.
    """
    with atomic_folder(Path(path).resolve(), private=private) as folder:
        rows = _Rows(folder, PRIVATE_MODE if private else PUBLIC_MODE)
        try:
            yield cast(IO[str], rows)
            rows.end()
        finally:
            rows.close_file()


class _Rows(io.TextIOBase):
    """Text stream that writes its lines as rows, one file after the other."""

    def __init__(self, folder: Path, mode: int) -> None:
        import pyarrow

        self._folder, self._mode = folder, mode
        self._schema = pyarrow.schema([("id", pyarrow.int64()), (TEXT, pyarrow.string())])
        self._files: list[Path] = []
        self._file: ParquetWriter | None = None
        self._begun: list[str] = []
        """Pieces of text that are not written yet, of ``_size`` characters."""
        self._size = self._lines = self._lines_of_file = self._bytes_of_file = 0

    def write(self, text: str) -> int:
        """Take text: lines, and the beginning of another."""
        self._begun.append(text)
        self._size += len(text)
        if self._size >= GROUP_BYTES:
            *lines, begun = "".join(self._begun).split("\n")
            self._write_groups(lines)
            self._begun, self._size = [begun], 0
        return len(text)

    def end(self) -> None:
        """Write the rest, and put the number of files into their names; without lines there is one empty file."""
        *lines, last = "".join(self._begun).split("\n")
        self._write_groups([*lines, last] if last else lines)
        if not self._files:
            self._write_group([])
        self.close_file()
        for number, file in enumerate(self._files):
            file.rename(self._folder / f"lines-{number:05d}-of-{len(self._files):05d}{PARQUET}")

    def close_file(self) -> None:
        """Close the open file."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _write_groups(self, lines: Sequence[str]) -> None:
        for start in range(0, len(lines), GROUP_LINES):
            self._write_group(lines[start : start + GROUP_LINES])

    def _write_group(self, lines: Sequence[str]) -> None:
        import pyarrow

        file = self._file = self._file or self._opened_file()
        ids = range(self._lines + 1, self._lines + len(lines) + 1)
        batch = pyarrow.record_batch([pyarrow.array(ids, "int64"), pyarrow.array(lines, "string")], schema=self._schema)
        file.write_batch(batch)
        self._lines += len(lines)
        self._lines_of_file += len(lines)
        self._bytes_of_file += batch.nbytes
        if self._lines_of_file >= FILE_LINES or self._bytes_of_file >= FILE_BYTES:
            self.close_file()

    def _opened_file(self) -> "ParquetWriter":
        from pyarrow.parquet import ParquetWriter

        path = self._folder / f"{len(self._files)}.partial"
        path.touch(self._mode)
        self._files.append(path)
        self._lines_of_file = self._bytes_of_file = 0
        # No line occurs often enough for a dictionary, and the footer must not quote one.
        options = {
            "use_dictionary": False,
            "write_statistics": ["id"],
            "column_encoding": {"id": "DELTA_BINARY_PACKED"},
        }
        return ParquetWriter(path, self._schema, compression="zstd", **options)
