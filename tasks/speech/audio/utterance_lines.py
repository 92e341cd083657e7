"""JSON lines about utterances: manifests, n-best lists and partial results.

How they are read, what is said of those that cannot be, and the languages of the words, where a line gives them.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.corpora.text_lines import NoJson, read_json_line
from tasks.errors import CorpusError, SpeechError
from tasks.language_model.evaluation.reference_text import placed_words
from tasks.languages.labelled_words import labels_of, letter_names

PROBLEMS_SHOWN = 100
"""A manifest of a folder that was moved has as many problems as lines; nobody reads more than this."""

FEW_SHOWN = 3
"""Problems that say enough where a file has another form than is read."""


def problem_list(problems: Sequence[str], what: str = "problems") -> str:
    """The problems one behind the other, and how many there are (of ``what``) where it is more than one."""
    shown = "; ".join(problems[:PROBLEMS_SHOWN])
    if len(problems) == 1:
        return shown
    more = f"; and {len(problems) - PROBLEMS_SHOWN} more" if len(problems) > PROBLEMS_SHOWN else ""
    return f"{len(problems)} {what}: {shown}{more}"


def read_json_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Number and object of each line that is not blank; in place of what is no JSON object the reason.

    Raises ``SpeechError`` where the file is missing, a folder, damaged or not UTF-8. Reading streams.
    """
    if Path(path).is_dir():
        raise SpeechError(f"{str(path)!r} is a folder, such as toolkits write; give one file of JSON lines")
    try:
        for number, line in enumerate(read_compressed_lines(path), start=1):
            if not line.strip():
                continue
            try:
                record = read_json_line(line)
            except NoJson as error:
                yield number, str(error)
                continue
            yield number, record if isinstance(record, dict) else "is no JSON object"
    except CorpusError as error:
        raise SpeechError(str(error).replace("text file", "file of JSON lines")) from None


def fail_with_problems(path: str | Path, problems: Sequence[str], form: str | None = None) -> None:
    """``SpeechError`` that lists the problems of a file, where there are any; the first few with a right ``form``."""
    if problems and form is not None:
        more = f"; and {len(problems) - FEW_SHOWN:,} more problems" if len(problems) > FEW_SHOWN else ""
        raise SpeechError(f"{str(path)!r}: {'; '.join(problems[:FEW_SHOWN])}{more}. A line looks like {form}")
    if problems:
        raise SpeechError(f"{str(path)!r}: {problem_list(problems)}")


def given_languages(path: str | Path, languages: Sequence[str]) -> dict[str, list[str | None]]:
    """By utterance id, the language of each white-space word of the text, ``mixed``, ``name`` or ``None``, where a line
    of a manifest or of n-best lists has ``languages``. Raises ``SpeechError`` where these do not fit the words."""
    read: dict[str, tuple[list[str], list[str | None]]] = {}
    problems = []
    for number, record in read_json_lines(path):
        if isinstance(record, str) or record.get("languages") is None:
            continue
        text = str(record.get("text", record.get("reference")))
        labels = labels_of(text, record["languages"])
        if labels is None:
            problems.append(f"line {number}: 'languages' needs a letter or code for each of {len(text.split())} words")
        else:
            read[record["utterance_id"]] = text.split(), labels
    fail_with_problems(path, problems)
    names = letter_names(list(read.values()), languages)
    return {name: [names.get(label or "") for label in labels] for name, (_, labels) in read.items()}


def placed_languages(text: str, languages: Sequence[str | None]) -> tuple[list[str], list[str | None]]:
    """The normalised words of a text, and of each the language of the white-space word that it was part of."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    placed = placed_words(text)
    return [word.word for word in placed], [languages[bisect_right(starts, word.start) - 1] for word in placed]
