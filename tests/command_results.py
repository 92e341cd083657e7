"""Commands in this process: the document of a report, what it says was measured, a refusal; and files for them."""

import json
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from tasks.cli import main


def report(*arguments: object) -> dict[str, Any]:
    """The report of a command."""
    with redirect_stdout(StringIO()) as shown:
        assert main([*map(str, arguments), "--report", "-"]) == 0
    document: dict[str, Any] = json.loads(shown.getvalue())
    return document


def measured(*arguments: object) -> dict[str, Any]:
    """What the report of a command says was measured."""
    found: dict[str, Any] = report(*arguments)["measured"]
    return found


def refusal(*arguments: object) -> str:
    """The one line of a command that a user got wrong."""
    with redirect_stderr(StringIO()) as said:
        assert main([*map(str, arguments)]) == 1
    (line,) = said.getvalue().splitlines()
    return line


def write_records(path: Path, records: Iterable[object]) -> Path:
    """A file of JSON lines, or of lines as they are where a record is text."""
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
