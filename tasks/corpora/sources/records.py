"""Records with fields: JSON lines, JSON, tables (CSV, TSV, Excel) and columns (Parquet, data sets of Arrow).

Each generator yields records with their place for errors. Formulas of a table are text, those of a workbook the values
that the workbook stores.
"""

import csv
import json
from collections.abc import Iterator
from typing import Any

from tasks.corpora.parquet_lines import open_parquet, parquet_batches
from tasks.corpora.sources.archives import refuse_zip_bomb
from tasks.corpora.sources.chat_exports import is_chat_export
from tasks.corpora.sources.given_file import GivenFile, fields_of
from tasks.corpora.text_lines import NoJson, read_json_line
from tasks.errors import CorpusError

Records = Iterator[tuple[str, object]]


def json_lines(file: GivenFile) -> Records:
    """A record a line."""
    for number, line in enumerate(file.lines(), start=1):
        if not line.strip():
            continue
        try:
            yield f"line {number}", read_json_line(line)
        except NoJson as error:
            raise CorpusError(f"{file.name!r}: line {number} {error}") from None


def json_value(file: GivenFile) -> Any:  # noqa: ANN401 - what JSON can hold
    """The value of a whole file."""
    try:
        return json.loads(file.text())
    except json.JSONDecodeError as error:
        raise CorpusError(f"{file.name!r}: line {error.lineno} is not JSON (column {error.colno})") from None
    except (ValueError, RecursionError):
        raise CorpusError(f"{file.name!r} is not JSON") from None


def entries_of(value: Any) -> Records:  # noqa: ANN401 - what JSON can hold
    """The entries of an array, or of the one array of an object, such as ``{"tickets": [...]}``; else the object."""
    if isinstance(value, dict) and not is_chat_export(value):
        arrays = [one for one in value.values() if isinstance(one, list) and one and isinstance(one[0], dict)]
        if len(arrays) == 1 and "role" not in arrays[0][0]:
            value = arrays[0]
    for number, record in enumerate(value if isinstance(value, list) else [value], start=1):
        yield f"record {number}", {"text": record} if isinstance(record, str) else record


def table_rows(file: GivenFile) -> Records:
    """The rows after the first one, each with the number of its last line."""
    rows = csv.DictReader(_rows_of(file), **dialect(file))
    try:
        for row in rows:
            yield f"line {rows.line_num}", row
    except csv.Error as error:
        raise CorpusError(f"{file.name!r}: line {rows.line_num} is no row of a table: {error}") from None


def _rows_of(file: GivenFile) -> Iterator[str]:
    return (f"{line}\n" for line in file.lines())


def table_columns(file: GivenFile) -> set[str]:
    """The cells of the first row."""
    return set(next(csv.reader(_rows_of(file), **dialect(file)), []))


def dialect(file: GivenFile) -> dict[str, Any]:
    """The delimiter of the columns, and whether quotation marks quote cells."""
    if file.form == "csv":
        header = next(_rows_of(file), "")
        parts = {mark: len(next(csv.reader([header], delimiter=mark), [])) for mark in ",;\t|"}
        return {"delimiter": max(parts, key=parts.__getitem__)}
    plain: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    widths = {line.count("\t") for line in _rows_of(file) if line.strip()}
    if len(widths) > 1 or any('""' in line for line in _rows_of(file)):
        # A quotation mark that begins a cell of plain text seldom has its other half at the end of a cell.
        quoted: dict[str, Any] = {"delimiter": "\t", "strict": True}
        try:
            if len({len(row) for row in csv.reader(_rows_of(file), **quoted)} - {0}) == 1:
                return quoted
        except csv.Error:
            pass
    return plain


def excel_rows(file: GivenFile) -> Records:
    """The rows of all sheets; the first one names a sheet's columns. Sheets without the text are counted."""
    headers: dict[int, list[str]] = {}
    for sheet, number, row in _excel_cells(file):
        if sheet not in headers:
            headers[sheet] = row
            file.left_out["sheets_without_the_text"] += file.text_field not in row
        elif file.text_field in headers[sheet]:
            yield f"sheet {sheet}, row {number}", dict(zip(headers[sheet], row, strict=False))


def excel_columns(file: GivenFile) -> set[str]:
    """The columns of the first sheet."""
    return set(next((row for *_, row in _excel_cells(file)), [])) - {""}


def _excel_cells(file: GivenFile) -> Iterator[tuple[int, int, list[str]]]:
    """The rows with a cell, as texts, with the numbers of sheet and row; ``CorpusError`` if the workbook is damaged."""
    from openpyxl import load_workbook

    refuse_zip_bomb(file.path, file.name)
    with file.parsed(), open(file.path, "rb") as stream:
        for number, sheet in enumerate(load_workbook(stream, read_only=True, data_only=True).worksheets, start=1):
            for at, row in enumerate(sheet.iter_rows(values_only=True), start=1):
                texts = ["" if cell is None else str(cell) for cell in row]
                if any(texts):
                    yield number, at, texts


def _in_columns(file: GivenFile) -> list[str]:
    """The columns that have the asked fields."""
    asked = [file.text_field, *filter(None, (file.document_field, file.label_field))]
    return list(dict.fromkeys(name.partition(".")[0] for name in asked))


def parquet_rows(file: GivenFile) -> Records:
    """The rows of a Parquet file."""
    row = 0
    for batch in parquet_batches(file.path, _in_columns(file)):
        for record in batch.to_pylist():
            row += 1
            if record.get(file.text_field, "") is None:
                raise CorpusError(f"{file.name!r}: row {row}: column {file.text_field!r} holds no text")
            yield f"row {row}", record


def parquet_columns(file: GivenFile) -> set[str]:
    """The columns of a Parquet file; fields of nested ones as in the first row."""
    with open_parquet(file.path) as table:
        names, nested = set(table.schema_arrow.names), [f for f in table.schema_arrow if f.type.num_fields]
        if nested and table.metadata.num_rows:
            first = next(table.iter_batches(batch_size=1, columns=[f.name for f in nested]))
            names |= fields_of(first.to_pylist()[0])
        return names


def arrow_rows(file: GivenFile) -> Records:
    """The rows of a file of Arrow, as Hugging Face ``datasets`` saves them."""
    row = 0
    for batch in _arrow_batches(file):
        for record in batch.select([name for name in _in_columns(file) if name in batch.schema.names]).to_pylist():
            row += 1
            yield f"row {row}", record


def arrow_columns(file: GivenFile) -> set[str]:
    """The columns, and the fields of nested ones in the first row."""
    batch = next(_arrow_batches(file), None)
    return set() if batch is None else set(batch.schema.names) | fields_of(batch.slice(0, 1).to_pylist())


def _arrow_batches(file: GivenFile) -> Iterator[Any]:
    import pyarrow
    from pyarrow import ipc

    with open(file.path, "rb") as stream:
        is_stream = stream.read(6) != b"ARROW1"
    try:
        with pyarrow.memory_map(str(file.path)) as source:
            if is_stream:
                yield from ipc.open_stream(source)
            else:
                table = ipc.open_file(source)
                yield from map(table.get_batch, range(table.num_record_batches))
    except (pyarrow.ArrowException, OSError):
        raise CorpusError(f"{file.name!r} is not a readable file of Arrow; write or copy it again") from None
