"""Masking by a list of unmasked words: the code that the allow list and the vocabulary threshold share.

Words never span white space. So a line is split at spaces, and each distinct chunk is judged and written once. After
that it is one look-up. Both caches are bounded: memory does not grow with the corpus. ``word_class`` gives the class of
a masked word by its shape alone.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import get_args

from tasks.corpora.masked_text import MARKER_PATTERN, MASK
from tasks.corpora.plain_text import plain
from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold, word_spans
from tasks.masking.technique import (
    Explained,
    Finding,
    KeptWord,
    MarkerStyle,
    MaskingTally,
    Technique,
    masked_spans,
    merge_markers,
    write_markers,
)

_CONTACT = re.compile(r"@|://|^www\.|[^\W\d_]\.(?:com|org|net|edu|gov|io|co|info)\b", re.IGNORECASE)
_NUMBER = re.compile(r"^[\d.,:/\-]*\d[\d.,:/\-]*(?:st|nd|rd|th|k|m|bn|am|pm|s|h|x)?$", re.IGNORECASE)


def word_class(word: str) -> str:
    """``NUMBER`` for digits, also with an ending (``5pm``, ``1st``), ``CONTACT`` for addresses, URLs and handles,
    ``MASK`` (unknown) for the rest."""
    if word.isalpha():
        return MASK
    word = plain(word)
    if _NUMBER.match(word):
        return "NUMBER"
    if _CONTACT.search(word):
        return "CONTACT"
    return MASK


_MOST_WRITTEN, _MOST_JUDGED = 1 << 18, 1 << 16
_OPENING, _CLOSING = '"(', '".,;:!?)'


class AllowedWords(Technique):
    """Keep the words of a list, mask all others."""

    allowed_words: frozenset[str]
    is_by_line = True

    def __init__(
        self,
        allowed_words: Iterable[str],
        name: str,
        reason: Callable[[str], str] | None = None,
    ) -> None:
        """``allowed_words``: the words as written; folded here. ``name``: the technique's name in the sidecar.
        ``reason``: why a folded word is masked or unmasked."""
        self.allowed_words = frozenset(map(fold, allowed_words))
        self.name = name
        self._reason = reason or self._by_list
        self.unusable_lines: list[str] = []
        """A warning about lines of a user's list that match no word."""
        self._judged = lru_cache(maxsize=_MOST_JUDGED)(self._judge)
        self._written = {
            style: lru_cache(maxsize=_MOST_WRITTEN)(partial(self._write, style=style))
            for style in get_args(MarkerStyle)
        }

    def _by_list(self, folded_word: str) -> str:
        on_list = "on" if folded_word in self.allowed_words else "not on"
        return f"{on_list} the allow list of {len(self.allowed_words):,} words"

    def announcements(self) -> list[str]:
        """The warning about lines of a user's list."""
        return self.unusable_lines

    def _judge(self, chunk: str) -> tuple[int, list[Finding]]:
        """The number of words of a chunk, and its words that are not on the list."""
        core = chunk.lstrip(_OPENING).rstrip(_CLOSING)
        if core.isalpha() and core.isascii():
            # Most chunks are one plain word with punctuation: the same result without a pattern.
            start = chunk.index(core)
            is_kept = core.lower() in self.allowed_words
            return 1, [] if is_kept else [Finding(start, start + len(core), MASK, self.name)]
        findings = []
        spans = word_spans(chunk)
        for start, end in spans:
            word = chunk[start:end]
            if fold(word) not in self.allowed_words:
                findings.append(Finding(start, end, word_class(word), self.name))
        return len(spans), findings

    def _write(self, chunk: str, style: MarkerStyle) -> str:
        return write_markers(chunk, self._judged(chunk)[1], style)

    def findings(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding]]]:
        """Each line with its words that are not on the list."""
        for line in lines:
            yield line, self._of_line(line)

    def _of_line(self, line: str) -> list[Finding]:
        found: list[Finding] = []
        position = 0
        chunks = line.split(" ")
        for chunk, (_, findings) in zip(chunks, map(self._judged, chunks), strict=True):
            for one in findings:
                found.append(Finding(position + one.start, position + one.end, one.label, one.source))
            position += len(chunk) + 1
        return found

    def explain(self, lines: Iterable[str]) -> Iterator[tuple[str, Explained]]:
        """Each line with all of its words and the reason for each."""
        for line in lines:
            masked = {finding.start: finding for finding in self._of_line(line)}
            words: Explained = []
            for start, end in word_spans(line):
                reason, finding = self._reason(fold(line[start:end])), masked.get(start)
                words.append(replace(finding, reason=reason) if finding else KeptWord(start, end, reason))
            yield line, words

    def mask(
        self, lines: Iterable[str], style: MarkerStyle, tally: MaskingTally, *, with_spans: bool, merge: bool = False
    ) -> Iterator[tuple[str, list[MaskedSpan]]]:
        """Mask each line as ``Technique.mask`` does; the tally is complete after the last line."""
        written = self._written[style]
        seen: Counter[str] = Counter()
        for line in lines:
            chunks = line.split(" ")
            masked = " ".join(map(written, chunks))
            is_masked = masked != line and MARKER_PATTERN.search(masked) is not None
            tally.lines += 1
            tally.masked_lines += is_masked
            tally.empty_lines += not line or line.isspace()
            seen.update(chunks)
            spans = masked_spans(line, self._of_line(line), style, merge=merge) if is_masked and with_spans else []
            yield merge_markers(masked) if merge else masked, spans
            if len(seen) >= _MOST_JUDGED:
                self._count(seen, tally)
        self._count(seen, tally)

    def _count(self, seen: Counter[str], tally: MaskingTally) -> None:
        """Add the words of the chunks to the tally, and forget the chunks."""
        for chunk, times in seen.items():
            words, findings = self._judged(chunk)
            tally.words += times * words
            tally.masked_words += times * len(findings)
            for label, count in Counter(finding.label for finding in findings).items():
                tally.labels[label] += times * count
        seen.clear()
