"""Lines whose words have languages, from people or ``palimpsest languages``. The start of a file decides its form:

- JSON lines. ``{"text": "...", "languages": "eesx", "names": [2]}``: a letter for each white-space word, and indices of
  names; ``{"words": [...], "languages": ["en", "name", null, ...]}``: as ``palimpsest languages`` writes it.
- A table with a heading, in tabs or commas, one word a row: the Bangor corpora (Deuchar et al. 2014), columns
  ``utterance_id``, ``surface``, ``langid`` (``eng``, ``spa``, ``cym``; ``eng&spa``: either, ``spa+eng``: mixed,
  ``999``: punctuation); Denglisch (Osmelak and Wintner 2023), columns ``sen_id``, ``sen_num``, ``token``, ``categ``
  (``E``, ``D``, ``M``).
- A word, a tab and its label a line, with an empty line between sentences: SentiMix (Patwa et al. 2020)
  with ``meta`` lines and ``lang1`` (English), ``lang2``, or ``Eng`` and ``Hin``; ``ne``: a name.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError
from tasks.languages.word_languages import MIXED, NAME

LETTERS = {
    "e": "en",
    "s": "es",
    "d": "de",
    "t": "tr",
    "f": "fr",
    "c": "cy",
    "h": "hi",
    "m": "mr",
    "x": MIXED,
    "n": NAME,
}
"""Codes of letters. Any other letter is the one language without a letter of its own, or no language."""
_NO_LANGUAGE = frozenset("oblB")
"""Letters of published corpora for punctuation, words of both languages, and third languages."""
_PUBLISHED = {
    **{"eng": "en", "spa": "es", "cym": "cy", "deu": "de", "tur": "tr", "fra": "fr", "hin": "hi", "mar": "mr"},
    **{"E": "en", "D": "de", "M": MIXED, "Eng": "en", "Hin": "hi", "lang1": "en", "ne": NAME},
}
"""Codes of the labels in published tables."""
_WORD, _LABEL = ("surface", "token", "word"), ("langid", "categ", "label", "language", "lang")
_SENTENCE = ("filename", "utterance_id", "sen_id", "sen_num", "sentence")
_ROW_COUNT, _META = re.compile(r"\(\d+ rows?\)"), "meta"

_Labelled = tuple[list[str], list[str | None]]


@dataclass(frozen=True)
class LabelledWords:
    """A line and the languages of its words."""

    words: list[str]
    languages: list[str | None]
    """A language of the text, ``mixed``, ``name``, or ``None`` where unlabelled."""


def read_labelled_words(path: str | Path, languages: Sequence[str]) -> list[LabelledWords]:
    """Read the lines of a file; labels other than ``languages``, ``mixed`` and ``name`` become ``None``.

    Raises ``CorpusError`` with the number of the first bad line, or where no label is one of the languages.
    """
    lines = list(read_lines(path, "labelled words"))
    first = next((line for line in lines if line.strip()), "")
    columns = _columns(first)
    if first.lstrip().startswith("{"):
        read = list(_json_lines(path, lines))
    elif columns or "\t" in first:
        read = list(_sentences(path, lines, languages, columns, "\t" if "\t" in first else ","))
    else:
        raise CorpusError(
            f"labelled words {str(path)!r}: in no known form; give JSON lines such as "
            '{"text": "so ein Tag", "languages": "edd"}, a table with the columns word and label, or a word, a tab and '
            "its label a line"
        )
    name = letter_names(read, languages)
    found = [LabelledWords(words, [name.get(label) if label else None for label in labels]) for words, labels in read]
    if not any(label in languages for line in found for label in line.languages):
        labels = Counter(label for _, labels in read for label in labels if label)
        raise CorpusError(
            f"labelled words {str(path)!r}: no word has one of the languages {', '.join(languages)}; its labels are "
            f"{', '.join(sorted(label for label, _ in labels.most_common(20))) or 'empty'}"
        )
    return found


def _json_lines(path: str | Path, lines: list[str]) -> Iterator[_Labelled]:
    for number, raw in enumerate(lines, start=1):
        try:
            words, labels = _parts(read_json_line(raw))
        except NoJson:
            words = labels = None
        if words is None or labels is None or len(words) != len(labels):
            raise CorpusError(
                f"labelled words {str(path)!r}, line {number}: needs a language for each word, as in "
                '{"text": "so ein Tag", "languages": "edd"} or {"words": [...], "languages": ["en", "de", null]}'
            )
        yield words, labels


def _parts(found: object) -> tuple[list[str] | None, list[str | None] | None]:
    if not isinstance(found, dict):
        return None, None
    words, labels, names = found.get("words"), found.get("languages"), found.get("names")
    if isinstance(found.get("text"), str) and isinstance(labels, str):
        places = set(names) if isinstance(names, list) else ()
        return found["text"].split(), [NAME if at in places else label for at, label in enumerate(labels)]
    if isinstance(words, list) and isinstance(labels, list):
        return [str(word) for word in words], [label if isinstance(label, str) else None for label in labels]
    return None, None


def _columns(heading: str) -> dict[str, int]:
    """The index of each column of a table, by name; empty without a heading."""
    names = [name.strip().strip('"') for name in re.split("[\t,]", heading)]
    columns = {name: place for place, name in enumerate(names)}
    return columns if any(name in columns for name in _WORD) and any(name in columns for name in _LABEL) else {}


def _sentences(
    path: str | Path, lines: list[str], languages: Sequence[str], columns: dict[str, int], divided_by: str
) -> Iterator[_Labelled]:
    word_at, label_at = (
        next((columns[name] for name in names if name in columns), place) for place, names in enumerate((_WORD, _LABEL))
    )
    key_at = [columns[name] for name in _SENTENCE if name in columns]
    names = _PUBLISHED | {"lang2": next((code for code in languages if code != "en"), None)}
    words: list[str] = []
    labels: list[str | None] = []
    last: list[str] = []
    for number, row in enumerate(_rows(lines, divided_by), start=1):
        if (number == 1 and columns) or (row and _ROW_COUNT.fullmatch(row[0].strip())):
            continue
        empty = not any(row) or row[0] == _META
        if not empty and len(row) <= max(word_at, label_at, *key_at, 0):
            raise CorpusError(
                f"labelled words {str(path)!r}, row {number}: has {len(row)} columns, and a word with its label needs "
                f"{max(word_at, label_at, *key_at, 0) + 1}"
            )
        key = [] if empty else [row[place] for place in key_at]
        if (empty or key != last) and words:
            yield words, labels
            words, labels = [], []
        last = key
        if not empty and row[word_at].strip():
            words.append(row[word_at].strip())
            label = row[label_at].strip()
            labels.append(MIXED if "+" in label else names.get(label, label))
    if words:
        yield words, labels


def _rows(lines: Iterable[str], divided_by: str) -> Iterator[list[str]]:
    if divided_by == ",":
        yield from csv.reader(lines)
    else:
        yield from (line.split("\t") if line.strip() else [] for line in lines)


def labels_of(text: str, labels: object) -> list[str | None] | None:
    """A label for each white-space word of a text, from a string of letters or a list of codes and nulls.
    Returns ``None`` where it is neither, or of another length."""
    found = list(labels) if isinstance(labels, str | list) else []
    complete = len(found) == len(text.split()) and all(label is None or isinstance(label, str) for label in found)
    return found if complete and found else None


def letter_names(read: Sequence[_Labelled], languages: Sequence[str]) -> dict[str, str]:
    """Map labels to codes; a language without a letter of its own gets the most frequent unused letter."""
    codes = (*languages, MIXED, NAME)
    known = {letter: code for letter, code in LETTERS.items() if code in codes} | {code: code for code in codes}
    counts = Counter(label for _, labels in read for label in labels if label and len(label) == 1)
    left = [letter for letter, _ in counts.most_common() if letter not in known and letter not in _NO_LANGUAGE]
    found = {known.get(label) for _, labels in read for label in labels if label}
    missing = [code for code in languages if code not in found]
    if len(missing) == 1 and left:
        known[left[0]] = missing[0]
    return known
