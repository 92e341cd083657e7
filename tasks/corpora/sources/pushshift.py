"""Reddit comments in Pushshift's monthly dumps: ``RC_YYYY-MM.zst``, and ``.bz2`` and ``.xz`` for the earlier years.

A dump is JSON lines, one comment a line, compressed with a window of up to 2 GiB (``zstd --long=31``). A recent month
has more than 100 million comments, so it is streamed. ``sample_share`` selects whole threads by a hash of their id,
before parsing. One thread is one document: an answer often quotes and names earlier comments, so a thread is never
divided between parts.

``plain_text`` extracts the text of a comment from Markdown and HTML entities. Quotes, code blocks, tables and rules are
left out; links and emphasis leave their text. Bare URLs, user names (``u/name``) and subreddits (``r/name``) are words:
masking has to handle them.
"""

import html
import json
import re
import string
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from tasks.corpora.settings import CorpusSettings
from tasks.corpora.sources.compressed_lines import read_compressed_lines
from tasks.corpora.sources.document import Document, Source, found_files, split_sentences
from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.settings.base import SourcePath

_CODE_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1.*?$|\Z)", re.MULTILINE | re.DOTALL)
_DROPPED_LINE = re.compile(
    r"""^(?:
        \s{0,3}>(?!!).*            # a quote of somebody else (but >! opens a spoiler)
        | (?:\ {4}|\t).*           # code
        | .*\|.*\|.*               # a row of a table
        | \s*(?:[-*_=]\s*){3,}     # a rule
    )$""",
    re.MULTILINE | re.VERBOSE,
)
_LEADING = re.compile(r"^[ \t]*(?:#{1,6}\s*|[-*+]\s+|\d{1,3}[.)]\s+)", re.MULTILINE)
_IMAGE_OR_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?:\s+\"[^\"\n]*\")?\)")
_SPOILER = re.compile(r">!|!<")
_STRONG = re.compile(r"(\*\*\*|\*\*|\*|~~|(?<!\w)__|(?<!\w)_)(?=\S)([^\n]*?\S)\1(?!\w)")
_SUPERSCRIPT = re.compile(r"\^+\(([^()\n]*)\)|\^+")
_CODE = re.compile(r"`+([^`\n]*)`+")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!~^>|/])")


def plain_text(body: str) -> str:
    """The text of a comment; paragraphs and list items end with line ends."""
    # Dumps contain "&amp;nbsp;": the typed text, escaped a second time on export.
    text = html.unescape(html.unescape(body)).replace("\r\n", "\n")
    text = _CODE_FENCE.sub("", text)
    text = _DROPPED_LINE.sub("", text)
    text = _LEADING.sub("", text)
    text = _IMAGE_OR_LINK.sub(r"\1", text)
    text = _SPOILER.sub("", text)
    for _ in range(2):
        text = _STRONG.sub(r"\2", text)
    text = _SUPERSCRIPT.sub(lambda match: f" {match.group(1)}" if match.group(1) else " ", text)
    text = _CODE.sub(r"\1", text)
    return _ESCAPED.sub(r"\1", text).strip()


BEYOND_SAMPLE, REMOVED, BOT = "beyond_sample", "removed", "bot"
OTHER_SUBREDDIT, LOW_SCORE, NOT_ENGLISH, NO_TEXT = "other_subreddit", "low_score", "not_english", "no_text"
"""Reasons of this reader to leave a comment out."""

_DUMP = re.compile(r"RC_\d{4}-\d{2}(?:-\d{2})?(?:\.(?:zst|xz|bz2|gz|jsonl|ndjson))?")
_THREAD = re.compile(r'"link_id"\s*:\s*"([^"\\]+)"')
_REMOVED = frozenset(("[deleted]", "[removed]", "[deleted by user]", ""))
_BOT_NAMES = frozenset(("automoderator", "autotldr", "imguralbumbot", "gifreversingbot", "wikitextbot"))
_BOT_NAME = re.compile(r"(?:[_-]bot|[a-z]Bot|BOT|_bot_.*)$|^bot[_-]")
_BOT_TEXT = re.compile(r"\bI(?:'|’| a)m a bot\b|\bthis (?:action|comment) was performed automatically\b", re.IGNORECASE)
_MARKS = string.punctuation + "“”‘’…–—"
_FREQUENT_WORDS = 1000
_FEWEST_JUDGED_WORDS = 5


class PushshiftCorpus(CorpusSettings):
    """Reddit comments in Pushshift's monthly dumps."""

    how_to_get: ClassVar[str] = (
        "get one dump of Pushshift's Reddit comments, such as RC_2019-01.zst, from Academic Torrents"
    )
    kind: Literal["pushshift"]
    source: SourcePath
    """A dump (``RC_2019-01.zst``, also ``.xz``, ``.bz2`` or unpacked) or a folder of dumps."""
    sample_share: float = Field(default=1.0, gt=0, le=1)
    """Share of the threads to read, drawn by a hash with ``cleaning.seed``; memory grows with the threads read."""
    subreddits: list[str] | None = None
    """Only these subreddits; ``null`` for all."""
    minimum_score: int | None = None
    """Comments with a lower score are left out and counted; ``null`` for all."""
    minimum_english_share: float = Field(default=0.3, ge=0, le=1)
    """Smallest share of a comment's words among the 1,000 most frequent English ones; other comments are left out and
    counted. Comments of fewer than five words pass, and 0 lets all pass."""
    bots: bool = False
    """Whether comments of bots are included."""

    def open(self) -> Source:
        """The reader; ``CorpusError`` if its files are missing. No text is read yet."""
        paths = found_files(
            self.source,
            lambda path: _DUMP.fullmatch(path.name) is not None,
            put="one or more RC_YYYY-MM.zst",
            lacks="dump of comments such as RC_2019-01.zst",
        )
        return Source(list(map(str, paths)), lambda part: self._comments(paths))

    def _comments(self, paths: list[Path]) -> Iterator[Document]:
        """One document per comment, all comments of a thread with the thread's name, dumps in the order of months."""
        left_out: Counter[str] = Counter()
        for path in paths:
            for number, line in enumerate(read_compressed_lines(path), start=1):
                if not line:
                    continue
                match = _THREAD.search(line)
                thread = match.group(1) if match else None
                sentences: list[str] = []
                reason = BEYOND_SAMPLE
                if thread is None or self._in_sample(thread):
                    comment = _parse(line, path, number)
                    reason = self._why_left_out(comment)
                    sentences = [] if reason else split_sentences(plain_text(comment["body"]))
                    reason = reason or self._why_no_text(sentences)
                if reason:
                    left_out[reason] += 1
                    continue
                yield Document(sentences, name=thread, left_out=left_out)
                left_out = Counter()
        yield Document([], left_out=left_out)

    def _in_sample(self, thread: str) -> bool:
        digest = blake2b(thread.encode(), digest_size=8, key=str(self.cleaning.seed).encode()).digest()
        return int.from_bytes(digest, "big") < int(self.sample_share * 2**64)

    def _why_left_out(self, comment: dict[str, Any]) -> str:
        body, author = comment["body"].strip(), str(comment.get("author") or "")
        if body in _REMOVED:
            return REMOVED
        wanted = None if self.subreddits is None else {name.lower().removeprefix("r/") for name in self.subreddits}
        if wanted is not None and str(comment.get("subreddit") or "").lower() not in wanted:
            return OTHER_SUBREDDIT
        if self.minimum_score is not None and int(comment.get("score") or 0) < self.minimum_score:
            return LOW_SCORE
        is_bot = author.lower() in _BOT_NAMES or _BOT_NAME.search(author) or _BOT_TEXT.search(body)
        return BOT if is_bot and not self.bots else ""

    def _why_no_text(self, sentences: list[str]) -> str:
        """The reason to leave sentences out: there are none, or too few words are frequent English ones.

        Function words identify a language without a model.
        """
        if not sentences:
            return NO_TEXT
        # Faster than the words of ``tasks.corpora.words``, and good enough here.
        chunks = (chunk.strip(_MARKS).lower() for text in sentences for chunk in text.split())
        words = [chunk for chunk in chunks if chunk and not chunk[0].isdigit()]
        frequent = sum(word in _frequent_english_words() for word in words)
        is_judged = len(words) >= _FEWEST_JUDGED_WORDS
        return NOT_ENGLISH if is_judged and frequent < self.minimum_english_share * len(words) else ""


def _parse(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        comment = json.loads(line)
    except ValueError as error:
        column = getattr(error, "colno", 1)
        raise CorpusError(
            f"{str(path)!r}: line {number}, column {column} is not JSON; fetch the dump again and compare its checksum"
        ) from None
    if not isinstance(comment, dict) or not isinstance(comment.get("body"), str):
        raise CorpusError(
            f"{str(path)!r}: line {number} has no field 'body'; this reads dumps of comments (RC_*), not of "
            "submissions (RS_*)"
        )
    return comment


@cache
def _frequent_english_words() -> frozenset[str]:
    import wordfreq

    return frozenset(map(fold, wordfreq.top_n_list("en", _FREQUENT_WORDS)))
