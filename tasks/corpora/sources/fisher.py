"""The Fisher English transcripts (LDC2004T19 and LDC2005T19), as the Linguistic Data Consortium ships them.

One file ``fe_03_NNNNN.txt`` per telephone conversation, under ``data/trans/NNN/``: two comment lines, then one
utterance a line with blank lines between them::

    # fe_03_00001.sph
    # Transcribed at the LDC

    3.76 5.54 A: and i generally prefer

Start and end are seconds, ``A`` and ``B`` the two sides; the text is lower case without punctuation. ``(( ))`` holds
what the transcriber was not sure of, or an utterance that the forced alignment did not confirm; it may be empty.
``[laughter]``, ``[noise]``, ``[mn]`` and the like are sounds. Letters that are spelled out are joined by ``._``:
``f._b._i.`` comes in as ``f.b.i.``. One conversation is one document.
"""

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Literal

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.document import Document, Source, found_files
from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError
from tasks.settings.base import SourcePath

UNCLEAR, NO_SPEECH = "unclear", "no_speech"
"""Reasons of this reader to leave an utterance out."""

_UTTERANCE = re.compile(r"\d+(?:\.\d+)?\s+\d+(?:\.\d+)?\s+[AB](?:-\d+)?:(?:\s+(.*))?")
_UNSURE = re.compile(r"\(\(|\)\)")
_EMPTY_UNSURE = re.compile(r"\(\(\s*\)\)")
_SOUND = re.compile(r"\[\[?[^\]]*\]?\]")


class FisherCorpus(CorpusSettings):
    """Transcripts of telephone conversations (LDC2004T19, LDC2005T19; licensed by the LDC)."""

    how_to_get: ClassVar[str] = "order LDC2004T19 and LDC2005T19 at catalog.ldc.upenn.edu (needs a licence)"
    kind: Literal["fisher"]
    source: SourcePath
    """Folder with the releases' folders; ``fe_03_*.txt`` are found at any depth."""
    unclear: Literal["leave_out", "keep"] = "leave_out"
    """How to treat utterances with ``((words))`` that the transcriber was unsure of: leave them out and count them, or
    keep them. Those with an empty ``(( ))`` are always left out."""

    def open(self) -> Source:
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""
        paths = _transcripts(self.source)
        return Source(list(map(str, paths)), lambda part: map(self._conversation, paths))

    def _conversation(self, path: Path) -> Document:
        texts: list[str] = []
        left_out: Counter[str] = Counter()
        for number, line in enumerate(map(str.strip, read_lines(path)), start=1):
            if not line or line.startswith("#"):
                continue
            match = _UTTERANCE.fullmatch(line)
            if match is None:
                raise CorpusError(
                    f"{str(path)!r}: line {number} is no utterance; a line of a Fisher transcript is "
                    "'START END A: TEXT', a comment that begins with #, or empty"
                )
            said = match.group(1) or ""
            text = _SOUND.sub(" ", _UNSURE.sub(" ", said)).replace("._", ".").strip()
            if _UNSURE.search(said) and (self.unclear == "leave_out" or _EMPTY_UNSURE.search(said)):
                left_out[UNCLEAR] += 1
            elif text:
                texts.append(text)
            else:
                left_out[NO_SPEECH] += 1
        return Document(texts, left_out=left_out)


def _transcripts(source: str) -> list[Path]:
    """The files of all conversations, in the order of the calls' numbers."""
    found = found_files(
        source,
        lambda path: path.match("fe_03_*.txt"),
        put="the folders of LDC2004T19 and LDC2005T19",
        lacks="fe_03_*.txt; it must hold the releases' folders data/trans",
    )
    paths = sorted(found, key=lambda path: path.name)
    for one, other in pairwise(paths):
        if one.name == other.name:
            raise CorpusError(f"source {source!r} holds {one.name!r} twice; keep one copy of each release")
    return paths
