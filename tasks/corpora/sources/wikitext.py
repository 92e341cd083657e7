"""WikiText-103 and WikiText-2 as published: ``wiki.train.tokens``, or ``.raw`` without replaced words.

Source: Merity, Xiong, Bradbury, Socher, "Pointer Sentinel Mixture Models" (2016). A folder with the three files or the
published zip file itself. A line is a paragraph; lines such as ``= Title =`` and ``= = Section = =`` are headings, and
a title begins a new article. The text is tokenised. It is detokenised, so that ``1 @,@ 000`` is ``1,000``,
``well @-@ known`` is ``well-known`` and ``Tom 's`` is ``Tom's``; then it is divided into sentences. In the ``.tokens``
files ``<unk>`` replaces words that occur less than three times.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.archives import unpacked
from tasks.corpora.sources.document import PARTS, Document, Part, Source, split_sentences
from tasks.corpora.text_lines import read_lines
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

    def open(self) -> Source:
        """The reader; ``CorpusError`` if its files are missing. A zip file is unpacked, and no text is read yet."""
        place = Path(self.source)
        if not place.exists():
            raise CorpusError(
                f"source {self.source!r} does not exist; put the WikiText-103 folder or zip file there "
                "(wiki.train.tokens, wiki.valid.tokens, wiki.test.tokens)"
            )
        held, folder = (None, place) if place.is_dir() else unpacked(place)
        paths = _parts(folder, self.source)
        files = sorted(map(str, paths.values())) if held is None else [self.source]
        return Source(files, lambda part: self._articles(part, paths[part]) if part else (), PARTS, held=held)

    def _articles(self, part: Part, path: Path) -> Iterator[Document]:
        """One document per article of a part, in the order of its file."""
        sentences: list[str] = []
        left_out: Counter[str] = Counter()
        begun = False
        for line in filter(None, map(str.strip, read_lines(path))):
            if _HEADING.match(line):
                begun = True
                if _TITLE.match(line) and sentences:
                    yield Document(sentences, part, left_out=left_out)
                    sentences, left_out = [], Counter()
                left_out[HEADING] += 1
                continue
            if not begun:
                raise CorpusError(
                    f"{path.name!r} of {self.source!r}: text precedes the first '= Title =' line; this is no WikiText "
                    "file, for plain text use kind: files"
                )
            for sentence in split_sentences(put_together(line)):
                if _UNKNOWN in sentence and self.unknown_words == "leave_out":
                    left_out[UNKNOWN_WORD] += 1
                else:
                    sentences.append(sentence)
        yield Document(sentences, part, left_out=left_out)


def put_together(line: str) -> str:
    """A tokenised paragraph as running text; ``<unk>`` stays."""
    line = _JOINED.sub(r"\1", line)
    line = _QUOTED.sub(r'"\1"', line)
    return _NO_SPACE_BEHIND.sub("", _NO_SPACE_BEFORE.sub("", line)).strip()


def _parts(folder: Path, source: str) -> dict[str, Path]:
    """The file of each part, at any depth of a folder."""
    found: dict[str, dict[str, Path]] = {"tokens": {}, "raw": {}}
    for path in sorted(folder.rglob("wiki.*")):
        match = _NAME.fullmatch(path.name)
        if match is None:
            continue
        part, ending = match.groups()
        if part in found[ending]:
            raise CorpusError(f"source {source!r} holds two files {path.name!r}; name the folder of one of them")
        found[ending][part] = path
    complete = [files for files in found.values() if len(files) == len(PARTS)]
    if len(complete) > 1:
        raise CorpusError(f"source {source!r} holds both wiki.*.tokens and wiki.*.raw; name the folder of one of them")
    if not complete:
        ending = max(found, key=lambda ending: len(found[ending]))
        missing = ", ".join(f"wiki.{part}.{ending}" for part in PARTS if part not in found[ending])
        raise CorpusError(f"source {source!r} lacks {missing}; unpack the published archive there as it is")
    return complete[0]
