"""Lines whose words have languages, by people or by ``palimpsest languages``: JSON lines.

``{"text": "...", "languages": "eesx"}``: a letter for each white-space word, as corpora of two languages are published;
``{"words": [...], "languages": ["en", null, ...]}``: a code for each word, as ``palimpsest languages`` writes it.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.corpora.text_lines import NoJson, read_json_line, read_lines
from tasks.errors import CorpusError
from tasks.languages.word_languages import MIXED

LETTERS = {"e": "en", "s": "es", "d": "de", "t": "tr", "f": "fr", "c": "cy", "h": "hi", "m": "mr", "x": MIXED}
"""What a letter stands for; any other letter is the one language that no letter stands for, or else none."""
_NO_LANGUAGE = frozenset("obnlB")
"""Letters of published corpora for punctuation, words of both languages, names, and third languages."""


@dataclass(frozen=True)
class LabelledWords:
    """A line whose words have languages."""

    words: list[str]
    languages: list[str | None]
    """A language of the text, ``mixed``, or ``None`` where nobody says."""


def read_labelled_words(path: str | Path, languages: Sequence[str]) -> list[LabelledWords]:
    """The lines of a file; labels that are none of ``languages`` and not ``mixed`` become ``None``.

    ``CorpusError`` names the first bad line by its number, and a file that labels no word with one of the languages.
    """
    read: list[tuple[list[str], list[str | None]]] = []
    for number, raw in enumerate(read_lines(path, "labelled words"), start=1):
        try:
            words, labels = _parts(read_json_line(raw))
        except NoJson:
            words = labels = None
        if words is None or labels is None or len(words) != len(labels):
            raise CorpusError(
                f"labelled words {str(path)!r}, line {number}: needs a language for each word, as in "
                '{"text": "so ein Tag", "languages": "edd"} or {"words": [...], "languages": ["en", "de", null]}'
            )
        read.append((words, labels))
    name = _letter_names(read, languages)
    lines = [LabelledWords(words, [name.get(label) if label else None for label in labels]) for words, labels in read]
    if not any(label in languages for line in lines for label in line.languages):
        raise CorpusError(
            f"labelled words {str(path)!r}: no word has one of the languages {', '.join(languages)}; its labels are "
            f"{', '.join(sorted({label for _, labels in read for label in labels if label})) or 'empty'}"
        )
    return lines


def _parts(found: object) -> tuple[list[str] | None, list[str | None] | None]:
    if not isinstance(found, dict):
        return None, None
    words, labels = found.get("words"), found.get("languages")
    if isinstance(found.get("text"), str) and isinstance(labels, str):
        return found["text"].split(), list(labels)
    if isinstance(words, list) and isinstance(labels, list):
        return [str(word) for word in words], [label if isinstance(label, str) else None for label in labels]
    return None, None


def _letter_names(read: list[tuple[list[str], list[str | None]]], languages: Sequence[str]) -> dict[str, str]:
    """Codes stand for themselves; a language without a letter of its own has the most frequent letter that is left."""
    known = {**{letter: code for letter, code in LETTERS.items() if code in (*languages, MIXED)}}
    known |= {code: code for code in (*languages, MIXED)}
    counts = Counter(label for _, labels in read for label in labels if label and len(label) == 1)
    left = [letter for letter, _ in counts.most_common() if letter not in known and letter not in _NO_LANGUAGE]
    missing = [code for code in languages if code not in (known[letter] for letter in counts if letter in known)]
    if len(missing) == 1 and left:
        known[left[0]] = missing[0]
    return known
