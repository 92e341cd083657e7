"""Subtitles: WebVTT and SubRip. A cue is a unit, and its speaker in the file the document.

Numbers, times, tags and notes are not text. A speaker is named by a tag (``<v Anna>``), or by a name and a colon that
several cues begin with.
"""

import html
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from tasks.corpora.sources.chat_exports import by_document
from tasks.corpora.sources.given_file import NO_TEXT, GivenFile, Unit
from tasks.errors import CorpusError

COMMENTS, SOUNDS = "comments", "sounds"
"""Reasons to leave out a block without times, or a cue that describes a sound."""
TIMES = re.compile(r"\s*(?:\d+:)?\d{1,2}:\d\d[.,]\d{1,3}\s+-->\s+")
VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
TAG = re.compile(r"</?[a-z][^<>]*>|</?\d[\d:.]*>|\{\\[^{}]*\}", re.IGNORECASE)
NAMED = re.compile(r"([^\W\d_][^:.!?\n]{0,40}): +(?=\S)")
_SOUND = re.compile(r"[\[(♪*][^\])]*[\])♪*]")


def cues(file: GivenFile) -> Iterator[list[str]]:
    """The lines of each cue; other blocks are counted."""
    blocks = (list(block) for is_text, block in groupby(file.lines(), key=lambda line: bool(line.strip())) if is_text)
    for number, block in enumerate(blocks):
        at = next((place for place, line in enumerate(block[:2]) if TIMES.match(line)), None)
        if at is not None:
            yield block[at + 1 :]
        elif number or not block[0].startswith("WEBVTT"):
            file.left_out[COMMENTS] += 1


def subtitle_units(file: GivenFile) -> Iterator[Unit]:
    """The cues, those of one speaker after the other; ``CorpusError`` if there is none."""
    said = [piece for lines in cues(file) for piece in _voices(" ".join(map(str.strip, lines)))]
    if not said and not file.left_out[NO_TEXT]:
        raise CorpusError(f"{file.name!r} has no cue with times, such as 00:00:01.000 --> 00:00:03.000; give another")
    names = Counter(found.group(1) for _, text in said if (found := NAMED.match(text)))
    return by_document(_spoken(said, {name for name, count in names.items() if count > 1}, file))


def _voices(cue: str) -> Iterator[tuple[str | None, str]]:
    """The speaker, if there is a tag of one, and the text of each voice of a cue."""
    first, *others = VOICE.split(cue)
    pairs = [(None, first), *zip(others[::2], others[1::2], strict=True)]
    for name, text in pairs if not others or first.strip() else pairs[1:]:
        yield name, html.unescape(TAG.sub("", text)).strip().removeprefix("- ")


def _spoken(said: list[tuple[str | None, str]], names: set[str], file: GivenFile) -> Iterator[tuple[object, str]]:
    for name, text in said:
        found = NAMED.match(text) if name is None else None
        if found and found.group(1) in names:
            name, text = found.group(1), text[found.end() :]
        if not text or _SOUND.fullmatch(text):
            file.left_out[SOUNDS if text else NO_TEXT] += 1
        else:
            yield (file.name, name), text
