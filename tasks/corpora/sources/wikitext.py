"""WikiText-103 and WikiText-2 as published: ``wiki.train.tokens``, or ``.raw`` without replaced words.

Source: Merity, Xiong, Bradbury, Socher, "Pointer Sentinel Mixture Models" (2016). A folder with the three files or the
published zip file itself. A line is a paragraph; lines such as ``= Title =`` and ``= = Section = =`` are headings, and
a title begins a new article. The text is tokenised. It is detokenised, so that ``1 @,@ 000`` is ``1,000``,
``well @-@ known`` is ``well-known`` and ``Tom 's`` is ``Tom's``; then it is divided into sentences. In the ``.tokens``
files ``<unk>`` replaces words that occur less than three times.
"""

import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar, Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import PARTS, Document, Part, Reader, split_sentences
from tasks.corpora.text_lines import decode_lines, held_lines, refuse_bomb
from tasks.errors import CorpusError
from tasks.settings.base import SourcePath

HEADING, UNKNOWN_WORD = "heading", "unknown_word"
"""Reasons of this reader to leave a text out."""

_UNKNOWN = "<unk>"
_HEADING = re.compile(r"=(?: =)* .* =(?: =)*$")
_TITLE = re.compile(r"= (?!= ).*(?<! =) =$")
_NAME = re.compile(r"wiki\.(train|valid|test)\.(tokens|raw)")

_JOINED = re.compile(r" @([^\w\s])@ ")
_QUOTED = re.compile(r'" (.*?) "')
_NO_SPACE_BEFORE = re.compile(r" (?=[.,;:!?%)\]](?: |$)|['’](?:s|t|d|m|ll|re|ve)\b)")
_NO_SPACE_BEHIND = re.compile(r"(?<=[(\[$£€]) ")


class WikiTextCorpus(CorpusSettings):
    """WikiText-103 or WikiText-2 as published (CC BY-SA); its own train, valid and test parts stay."""

    how_to_get: ClassVar[str] = "get wikitext-103-v1.zip (or wikitext-103-raw-v1.zip) of Merity et al. 2016, CC BY-SA"
    kind: Literal["wikitext"]
    source: SourcePath
    """The published zip file, or a folder with ``wiki.{train,valid,test}.tokens`` or ``.raw``."""
    unknown_words: Literal["leave_out", "keep"] = "leave_out"
    """How to treat sentences with ``<unk>``, the replacement of rare words in the ``.tokens`` files: leave them out and
    count them, or keep them with ``<unk>`` as a word. The ``.raw`` files have every word."""

    def open(self) -> Reader:
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""
        of_part = _find(Path(self.source))
        files = sorted({str(file.path) for file in of_part.values()})
        return Reader(files, lambda part: self._articles(part, of_part[part]) if part else (), PARTS)

    def _articles(self, part: Part, file: "_PartFile") -> Iterator[Document]:
        """One document per article of a part, in the order of its file."""
        sentences: list[str] = []
        left_out: Counter[str] = Counter()
        begun = False
        try:
            with file.open() as stream:
                lines = refuse_bomb(held_lines(stream.readline), file.name, file.path.stat().st_size)
                for line in decode_lines(lines, file.name):
                    line = line.strip()
                    if not line:
                        continue
                    if _HEADING.match(line):
                        begun = True
                        if _TITLE.match(line) and sentences:
                            yield Document(sentences, part, left_out=left_out)
                            sentences, left_out = [], Counter()
                        left_out[HEADING] += 1
                        continue
                    if not begun:
                        raise CorpusError(
                            f"{file.name}: text precedes the first '= Title =' line; this is no WikiText file, "
                            "for plain text use kind: files"
                        )
                    for sentence in split_sentences(put_together(line)):
                        if _UNKNOWN in sentence and self.unknown_words == "leave_out":
                            left_out[UNKNOWN_WORD] += 1
                        else:
                            sentences.append(sentence)
        except (zipfile.BadZipFile, EOFError):
            raise CorpusError(f"{file.name} is damaged; fetch the file again") from None
        yield Document(sentences, part, left_out=left_out)


@dataclass(frozen=True, slots=True)
class _PartFile:
    path: Path
    inside: str | None
    """Name inside a zip file."""

    @property
    def name(self) -> str:
        return str(self.path) if self.inside is None else f"{self.path} ({self.inside})"

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        if self.inside is None:
            with open(self.path, "rb") as stream:
                yield stream
            return
        with zipfile.ZipFile(self.path) as archive, archive.open(self.inside) as stream:
            yield stream


def put_together(line: str) -> str:
    """A tokenised paragraph as running text; ``<unk>`` stays."""
    line = _JOINED.sub(r"\1", line)
    line = _QUOTED.sub(r'"\1"', line)
    return _NO_SPACE_BEHIND.sub("", _NO_SPACE_BEFORE.sub("", line)).strip()


def _find(source: Path) -> dict[Part, _PartFile]:
    """The file of each part, in a folder (at any depth) or in the published zip file."""
    if not source.exists():
        raise CorpusError(
            f"source {str(source)!r} does not exist; put the WikiText-103 folder or zip file there "
            "(wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens)"
        )
    found: dict[str, dict[Part, _PartFile]] = {"tokens": {}, "raw": {}}
    for file, name in _candidates(source):
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        part: Part = next(part for part in PARTS if part == match.group(1))
        if part in found[match.group(2)]:
            raise CorpusError(f"source {str(source)!r} holds two files {name!r}; name the folder of one of them")
        found[match.group(2)][part] = file
    complete = [files for files in found.values() if len(files) == len(PARTS)]
    if len(complete) == 1:
        return complete[0]
    if complete:
        raise CorpusError(
            f"source {str(source)!r} holds both wiki.*.tokens and wiki.*.raw; name the folder of one of them"
        )
    there = max(found.values(), key=len)
    ending = "raw" if there is found["raw"] else "tokens"
    missing = ", ".join(f"wiki.{part}.{ending}" for part in PARTS if part not in there)
    raise CorpusError(f"source {str(source)!r} lacks {missing}; unpack the published archive there as it is")


def _candidates(source: Path) -> Iterator[tuple[_PartFile, str]]:
    if source.is_dir():
        for path in sorted(source.rglob("wiki.*")):
            yield _PartFile(path, None), path.name
        return
    try:
        with zipfile.ZipFile(source) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        raise CorpusError(f"source {str(source)!r} is neither a folder nor a readable zip file") from None
    for name in names:
        yield _PartFile(source, name), name.rsplit("/", 1)[-1]
