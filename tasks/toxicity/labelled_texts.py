"""Texts labelled as offensive or not, in their publishers' formats: JSON lines, or a table with a header.

A row is a ``text`` and its ``label`` (or ``toxic``), or a pair as in ParaDetox: a ``toxic`` sentence and its
``neutral`` versions if any, in one list or in columns ``neutral1``, ``neutral2``, ... All texts are normalised like a
language model's words, since the classifier reads the text of a model.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError
from tasks.language_model.normalisation import normalise

_NAMED = 5


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One text."""

    text: str
    """Its normalised words with a blank between; empty if it has none."""
    is_offensive: bool
    group: int
    """Number of its row: the versions of one sentence are of one group."""


def read_labelled_texts(path: str, offensive: str = "1") -> list[LabelledText]:
    """All texts of a file; those with the label ``offensive`` are offensive, all others are not.

    Raises ``CorpusError`` that names the bad lines, and if the file lacks texts of one class.
    """
    found: list[LabelledText] = []
    bad: list[int] = []
    for number, row in _rows(path):
        texts = list(_texts_of(row, offensive))
        if not texts:
            bad.append(number)
        found += [LabelledText(" ".join(normalise(text)), is_it, number) for text, is_it in texts]
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
    """Line number and values by name; empty for an unreadable row."""
    lines = read_lines(path, "labelled texts")
    if Path(path).suffix.lower() in (".csv", ".tsv"):
        text = (f"{line}\n" for line in lines)  # a quoted text may hold line ends
        if Path(path).suffix.lower() == ".csv":
            rows = csv.DictReader(text)
        else:
            # A text of such a table has no tab, but may have a quotation mark.
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
    """Each text of a row, and whether it is offensive; none for a row of another form."""
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
