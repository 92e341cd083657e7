"""What a source of text yields: documents, each a list of texts that must stay in one part of the corpus.

A sentence ends by a rule, fast and without a model: at ``.``, ``!``, ``?`` or ``…`` with what closes behind it (quotes,
brackets), where white space and then a capital, a digit or something that opens follows. A full stop does not end it
behind an abbreviation that stands before other words (``Mr.``, ``Prof.``, ``Inc.`` before a lower-case word), behind
initials (``J. K. Rowling``, ``U.S. Army``), nor behind ``no.``, ``vol.`` and the like before a digit. A line end always
ends it. Known error: a sentence that ends in an abbreviation of the list is joined with the next one.

Text that comes inside installed pip packages is read without importing them.
"""

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from tasks.errors import CorpusError

Part = Literal["train", "valid", "test"]
PARTS: tuple[Part, ...] = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class Document:
    """A conversation, an article, a mail, or a single sentence where nothing says what belongs together."""

    texts: list[str]
    """Sentences as the source has them, not cleaned yet."""
    part: Part | None = None
    """The part that the source itself assigns it to; ``None``: to be divided."""
    name: object = None
    """Documents of one name are parts of one, wherever they stand; ``None``: a document of its own."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Texts that the reader itself left out since the document before this one, by their reason."""
    label: str | None = None
    """What people say of its texts, such as their sentiment."""
    guessed: Mapping[str, int] = field(default_factory=dict)
    """Texts of which the reader had to guess something, by what it guessed: a part of a warning."""


class Source(Protocol):
    """Text in one of the forms it comes in."""

    files: list[str]
    """The files that are read, for the lineage in the report."""

    @property
    def parts(self) -> Sequence[Part | None]:
        """The parts that the source itself assigns its documents to; ``None`` among them: some are to be divided."""
        ...

    def documents(self, part: Part | None = None) -> Iterator[Document]:
        """Read the documents of one part from the beginning; may be called several times and yields the same each time.

        Memory must not grow with the source.
        """
        ...


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
    """The sentences of a text, without white space round them; linear in its length."""
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
        # An initial or U.S.: what follows decides nothing, and joining two sentences is the smaller harm.
        return word == "i"
    return word not in _ABBREVIATIONS and not (word in _BEFORE_NUMBER and text[match.end()].isdigit())


def package_file(package: str, inside: str) -> Path:
    """A file inside an installed package; importing it could have side effects, so it is only located."""
    specification = importlib.util.find_spec(package)
    if specification is None or not specification.submodule_search_locations:
        raise CorpusError(
            f"the package {package!r}, which holds this corpus, is not installed; 'make install' installs it"
        )
    path = Path(specification.submodule_search_locations[0]) / inside
    if not path.is_file():
        raise CorpusError(
            f"the installed package {package!r} holds no {inside!r}; install the version in constraints.txt"
        )
    return path


def read_package_json(path: Path) -> Any:  # noqa: ANN401 - what JSON can hold
    """Parse a JSON file of a package; ``CorpusError`` where it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise CorpusError(
            f"{path.name!r} of an installed package is damaged: it is not JSON; install it again"
        ) from None
