"""Texts with labels, offensive or not, as their publishers ship them: JSON lines, or a table with a line of names.

A row is a ``text`` and its ``label`` (or ``toxic``), or a pair as ParaDetox has them: a ``toxic`` sentence and its
``neutral`` versions if any, in one list or in columns ``neutral1``, ``neutral2``, ... A row may say what it tests,
which HateCheck calls its ``functionality``. All texts are normalised as a language model's words are: what the
classifier reads of a text must be what it can read of what a model writes.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError
from tasks.language_model.normalisation import normalise

_NAMED = 5
_TESTS = "functionality"


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One text."""

    text: str
    """Its normalised words with a blank between; empty where it has none."""
    is_offensive: bool
    group: int
    """Number of the row that it stands in: the versions of one sentence are of one group."""
    tests: str | None = None
    """What it was written to test."""


def read_labelled_texts(path: str, offensive: str = "1") -> list[LabelledText]:
    """All texts of a file; those with the label ``offensive`` are, all others are not.

    Raises ``CorpusError`` that names the bad lines, and where there are not texts of both sorts.
    """
    found: list[LabelledText] = []
    bad: list[int] = []
    for number, row in _rows(path):
        texts = list(_texts_of(row, offensive))
        if not texts:
            bad.append(number)
        tests = row.get(_TESTS)
        name = tests if isinstance(tests, str) and tests.isidentifier() else None
        found += [LabelledText(" ".join(normalise(text)), is_it, number, name) for text, is_it in texts]
    if bad:
        lines = ", ".join(map(str, bad[:_NAMED])) + (f" and {len(bad) - _NAMED:,} more" if len(bad) > _NAMED else "")
        raise CorpusError(
            f"labelled texts {path!r}, line {lines}: needs a text and a label (or toxic), or toxic and neutral versions"
        )
    if len({each.is_offensive for each in found}) < 2:
        state = "all texts have" if found and found[0].is_offensive else "no text has"
        raise CorpusError(f"labelled texts {path!r}: {state} the label {offensive!r}; needs texts with it and without")
    return found


def _rows(path: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Number of the line and what it says by name; empty where it says nothing that can be read."""
    lines = read_lines(path, "labelled texts")
    if Path(path).suffix.lower() in (".csv", ".tsv"):
        text = (f"{line}\n" for line in lines)  # a quoted text may hold line ends
        if Path(path).suffix.lower() == ".csv":
            rows = csv.DictReader(text)
        else:
            # A tab never stands in a text of such a table, and a quotation mark may.
            rows = csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
        try:
            for row in rows:
                yield rows.line_num, row
        except csv.Error:
            raise CorpusError(f"labelled texts {path!r}, line {rows.line_num}: is no line of a table") from None
        return
    for number, line in enumerate(lines, start=1):
        try:
            said = read_json_line(line)
        except NoJson:
            said = None
        yield number, said if isinstance(said, dict) else {}


def _texts_of(row: Mapping[str, object], offensive: str) -> Iterator[tuple[str, bool]]:
    """Each text of a row, and whether it is offensive; none where the row has another form."""
    versions = [value for name, value in row.items() if name and name.startswith("neutral")]
    if versions:
        flat = [each for value in versions for each in (value if isinstance(value, list) else [value])]
        texts = [row.get("toxic"), *(each for each in flat if each)]
        if all(isinstance(text, str) for text in texts):
            yield from ((str(text), place == 0) for place, text in enumerate(texts))
        return
    text, label = row.get("text"), row.get("label", row.get("toxic"))
    if isinstance(text, str) and isinstance(label, str | int | float):
        yield text, str(int(label) if isinstance(label, bool) else label).strip() == offensive
