"""Documents of a source: lists of texts that must stay in one part of the corpus. Also sentence splitting.

A sentence ends by a rule, fast and without a model: at ``.``, ``!``, ``?`` or ``…`` with closing quotes and brackets,
if white space and then a capital, a digit or an opening mark follows. A full stop does not end it after an abbreviation
that precedes other words (``Mr.``, ``Prof.``, ``Inc.`` before a lower-case word) or after initials (``J. K. Rowling``,
``U.S. Army``). Nor does it after ``no.``, ``vol.`` and the like before a digit. A line end always ends it. Known error:
a sentence that ends in an abbreviation of the list is joined with the next one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tasks.errors import CorpusError

Part = Literal["train", "valid", "test"]
PARTS: tuple[Part, ...] = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class Document:
    """A conversation, an article, a mail, or a single sentence if the source has no such groups."""

    texts: list[str]
    """Sentences of the source, not cleaned yet."""
    part: Part | None = None
    """Part that the source assigns to the document; ``None``: to be divided."""
    name: object = None
    """Name; documents of one name are parts of one. ``None``: a document of its own."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Texts that the reader left out since the previous document, by reason."""
    label: str | None = None
    """Label of the texts, such as a sentiment."""
    guessed: Mapping[str, int] = field(default_factory=dict)
    """Texts of which the reader had to guess something, by the guess: a part of a warning."""


@dataclass
class Source:
    """A text in any form."""

    files: list[str]
    """Files that are read, for the lineage in the report."""
    read: Callable[[Part | None], Iterable[Document]]
    """The documents of a part, from the beginning and the same at each call. Memory must not grow with the source."""
    parts: Sequence[Part | None] = (None,)
    """The parts that the source assigns to its documents; ``None`` among them: some are to be divided."""
    labelled: bool = False
    """Whether its documents have labels."""
    held: object = None
    """What must last as long as the source, such as a folder of unpacked files."""

    def documents(self, part: Part | None = None) -> Iterator[Document]:
        """The documents of a part, from the beginning."""
        return iter(self.read(part))


def found_files(source: str, is_wanted: Callable[[Path], object], *, put: str, lacks: str) -> list[Path]:
    """The file ``source``, or the wanted files of a folder at any depth, in the order of their paths.

    Raises ``CorpusError`` if there is none; ``put`` and ``lacks`` name the files in its message.
    """
    place = Path(source)
    if not place.exists():
        raise CorpusError(f"source {source!r} does not exist; put {put} there")
    if not place.is_dir():
        return [place]
    paths = sorted(path for path in place.rglob("[!.]*") if is_wanted(path) and path.is_file())
    if not paths:
        raise CorpusError(f"source {source!r} holds no {lacks}")
    return paths


_BOUNDARY = re.compile(r"(?:[.!?…]+[\"'”’)\]]*|[.!?…]+\[\d+\])\s+(?=[\"'“‘(\[]*[A-Z0-9À-ÖØ-Þ])|\s*\n\s*")
_LAST_WORD = re.compile(r"([^\W\d_][\w.]*)\.$")
_ABBREVIATIONS = frozenset(
    (
        "mr mrs ms dr prof st mt ft rev fr sr jr gen col capt lt sgt maj cmdr adm hon gov sen rep pres messrs mme "
        "vs cf ca approx etc e.g i.e al inc ltd co corp bros dept univ est fl b d r op cit ed eds trans "
        "jan feb mar apr jun jul aug sep sept oct nov dec"
    ).split()
)
_BEFORE_NUMBER = frozenset("no nos vol p pp ch sec fig figs art ver v c ca".split())
_LOOK_BACK = 24


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, stripped of white space; linear in its length."""
    sentences = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        if match.end() < len(text) and not _ends_sentence(text, match, start):
            continue
        sentences.append(text[start : match.end()].strip())
        start = match.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _ends_sentence(text: str, match: re.Match[str], start: int) -> bool:
    mark = match.group().rstrip()
    if "\n" in match.group() or mark != ".":
        return True
    last = _LAST_WORD.search(text[max(start, match.start() - _LOOK_BACK) : match.start() + 1])
    if last is None:
        return True
    word = last.group(1).lower()
    if len(word) == 1 or "." in word:
        # After an initial or U.S. the next word decides nothing; joining two sentences is the smaller error.
        return word == "i"
    return word not in _ABBREVIATIONS and not (word in _BEFORE_NUMBER and text[match.end()].isdigit())
