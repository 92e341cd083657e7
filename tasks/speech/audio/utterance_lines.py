"""JSON lines about utterances: manifests, n-best lists and partial results.

Reads the lines, lists their problems, and reads the languages of the words if a line gives them.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError, SpeechError
from tasks.language_model.evaluation.reference_text import placed_words
from tasks.languages.labelled_words import labels_of, letter_names

_PROBLEMS_SHOWN = 100
"""Problems shown at most. A manifest of a folder that was moved has as many problems as lines."""
_FEW_SHOWN = 3
"""Problems shown at most if the file has another form altogether."""
Numbered = Iterator[tuple[int, dict[str, Any] | str]]
"""Number and object of each line; for a line that is no JSON object, the reason instead."""


def problem_list(problems: Sequence[str], what: str = "problems", at_most: int = _PROBLEMS_SHOWN) -> str:
    """The problems as a list, with their number (of ``what``) if there are several."""
    shown = "; ".join(problems[:at_most])
    if len(problems) == 1:
        return shown
    more = f"; and {len(problems) - at_most:,} more" if len(problems) > at_most else ""
    return f"{len(problems):,} {what}: {shown}{more}"


def read_json_lines(path: str | Path, what: str = "file of JSON lines") -> Numbered:
    """The lines that are not blank.

    Raises ``SpeechError`` if the file is missing, a folder, damaged or not UTF-8; ``what`` names it. Reading streams.
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
            yield number, record if isinstance(record, dict) else f"is no JSON object but {type(record).__name__}"
    except CorpusError as error:
        raise SpeechError(str(error).replace("text file", what)) from None


def named_lines(path: str | Path, form: str, *, empty: bool = False) -> Iterator[tuple[str, str]]:
    """The first word of each line of a text and the rest, which may be ``empty``.

    Raises ``SpeechError`` with the ``form`` of a line for another line.
    """
    for number, line in enumerate(read_lines(path), start=1):
        name, rest, *_ = *line.split(maxsplit=1), "", ""
        if name and not (rest or empty):
            raise SpeechError(f"{str(path)!r}: line {number} is not '{form}'")
        if name:
            yield name, rest.strip()


Parsed = TypeVar("Parsed")


def read_records(
    path: str | Path,
    parse: Callable[[dict[str, Any]], Parsed | list[str]],
    what: str,
    form: str | None = None,
    records: Iterable[tuple[int, dict[str, Any] | str]] | None = None,
) -> dict[str, Parsed]:
    """The value that ``parse`` returns for each object, by ``utterance_id``, in order; it may return problems instead.

    Raises ``SpeechError`` that lists the problems with their lines: lines that are no JSON objects, missing or equal
    ids, and those that ``parse`` finds. Also raises it if there is no line; ``what`` names the file. With ``form``,
    shows the first problems only, and that form. ``records``: the objects of the file, if it is in another form.
    """
    found: dict[str, Parsed] = {}
    problems: list[str] = []
    first_lines: dict[str, int] = {}
    for number, record in read_json_lines(path, what) if records is None else records:
        if isinstance(record, str):
            problems.append(f"line {number}: {record}")
            continue
        name, parsed = record.get("utterance_id"), parse(record)
        wrong = parsed if isinstance(parsed, list) else []
        if not isinstance(name, str) or not name or set(name) & set("\t\r\n"):
            wrong = ["has no 'utterance_id' that is text of one line without tabs", *wrong]
        elif (earlier := first_lines.setdefault(name, number)) != number:
            wrong = [*wrong, f"utterance_id {name!r} is in line {earlier} too"]
        elif not isinstance(parsed, list):
            found[name] = parsed
        problems += [f"line {number}: {problem}" for problem in wrong]
    if problems:
        listed = problem_list(problems, at_most=_FEW_SHOWN if form else _PROBLEMS_SHOWN)
        raise SpeechError(f"{what} {str(path)!r}: {listed}" + (f". A line looks like {form}" if form else ""))
    if not found:
        raise SpeechError(f"{what} {str(path)!r} is empty; give a file of JSON lines, one utterance a line")
    return found


def given_languages(path: str | Path, languages: Sequence[str]) -> dict[str, list[str | None]]:
    """By utterance id, for lines of a manifest or of n-best lists that have ``languages``: a language, ``mixed``,
    ``name`` or ``None`` for each white-space word. Raises ``SpeechError`` if they do not match the words."""
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
    if problems:
        raise SpeechError(f"{str(path)!r}: {problem_list(problems)}")
    names = letter_names(list(read.values()), languages)
    return {name: [names.get(label or "") for label in labels] for name, (_, labels) in read.items()}


def placed_languages(text: str, languages: Sequence[str | None]) -> tuple[list[str], list[str | None]]:
    """The normalised words of a text, each with the language of the white-space word that it was part of."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    placed = placed_words(text)
    return [word.word for word in placed], [languages[bisect_right(starts, word.start) - 1] for word in placed]
