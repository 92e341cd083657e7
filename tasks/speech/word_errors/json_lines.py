"""JSON lines about utterances, plain or compressed, with all problems of a file said at once."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.errors import CorpusError, SpeechError
from tasks.speech.problem_list import problem_list


def read_json_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """Number and object of each line that is not blank; ``None`` in place of what is no JSON object.

    Raises ``SpeechError`` where the file is missing, damaged or not UTF-8. Reading streams.
    """
    try:
        for number, line in enumerate(read_compressed_lines(path), start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            yield number, record if isinstance(record, dict) else None
    except CorpusError as error:
        raise SpeechError(
            str(error).replace("corpus file", "file", 1).replace("text file", "file of JSON lines")
        ) from None


def fail_with_problems(path: str | Path, problems: Sequence[str]) -> None:
    """``SpeechError`` that lists the problems of a file, where there are any."""
    if problems:
        raise SpeechError(f"{str(path)!r}: {problem_list(problems)}")
