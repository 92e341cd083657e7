"""Masking by a list of unmasked words: the code that the allow list and the vocabulary threshold share.

Words never span white space. So a line is split at spaces, and each distinct chunk is tokenised, looked up, escaped and
written once. After that it is one look-up in a dictionary. The dictionary is bounded: memory does not grow with the
corpus. ``word_class`` gives the class of a masked word by its shape alone.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import get_args

from tasks.corpora.masked_text import MASK, Marker, escape
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


MASKED = str(Marker(MASK))
_MOST_REMEMBERED = 1 << 18
_MOST_NOTES = 1 << 16
_OPENING, _CLOSING = '"(', '".,;:!?)'

_Note = tuple[int, tuple[str, ...]]
"""Number of words of a chunk, and the classes of its masked words."""
_Chunk = tuple[str, _Note | None]
"""Masked text of a chunk without spaces, and its note; ``None`` for the most frequent kind, one unmasked word."""
_ONE_MASKED: _Note = (1, (MASK,))


class AllowedWords(Technique):
    """Keep the words of a list, mask all others."""

    allowed_words: frozenset[str]
    is_by_line = True

    def __init__(self, allowed_words: Iterable[str], name: str) -> None:
        """``allowed_words``: the words as written; folded here. ``name``: the technique's name in the sidecar."""
        self.allowed_words = frozenset(map(fold, allowed_words))
        self.name = name
        self._chunks = {
            style: lru_cache(maxsize=_MOST_REMEMBERED)(partial(self.write, style=style))
            for style in get_args(MarkerStyle)
        }

    def reason(self, folded_word: str) -> str:
        """A readable reason why a word is masked or unmasked."""
        on_list = "on" if folded_word in self.allowed_words else "not on"
        return f"{on_list} the list of {len(self.allowed_words):,} unmasked words"

    def examine(self, text: str) -> tuple[int, list[Finding]]:
        """The number of words of a text, and its words that are not on the list."""
        spans = word_spans(text)
        allowed_words, source = self.allowed_words, self.name
        findings = [
            Finding(start, end, word_class(text[start:end]), source)
            for start, end in spans
            if fold(text[start:end]) not in allowed_words
        ]
        return len(spans), findings

    def write(self, chunk: str, style: MarkerStyle) -> _Chunk:
        """The masked form of a chunk of text."""
        core = chunk.lstrip(_OPENING).rstrip(_CLOSING)
        if core.isalpha() and core.isascii():
            # Most chunks are one plain word with punctuation: the same result without a pattern.
            if core.lower() in self.allowed_words:
                return chunk, None
            return (MASKED if core == chunk else chunk.replace(core, MASKED)), _ONE_MASKED
        allowed_words = self.allowed_words
        spans = word_spans(chunk)
        pieces: list[str] = []
        labels: list[str] = []
        position = 0
        for start, end in spans:
            word = chunk[start:end]
            if fold(word) not in allowed_words:
                label = word_class(word)
                labels.append(label)
                pieces.append(escape(chunk[position:start]))
                pieces.append(MASKED if style == "mask" else str(Marker(label)))
                position = end
        pieces.append(escape(chunk[position:]))
        return "".join(pieces), ((len(spans), tuple(labels)) if labels or len(spans) != 1 else None)

    def findings(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding]]]:
        """Each line with its words that are not on the list."""
        for line in lines:
            yield line, self.examine(line)[1]

    def explain(self, lines: Iterable[str]) -> Iterator[tuple[str, Explained]]:
        """Each line with all of its words and the reason for each."""
        for line in lines:
            words: Explained = []
            for start, end in word_spans(line):
                word = line[start:end]
                folded = fold(word)
                reason = self.reason(folded)
                if folded in self.allowed_words:
                    words.append(KeptWord(start, end, reason))
                else:
                    words.append(Finding(start, end, word_class(word), self.name, reason=reason))
            yield line, words

    def mask(
        self, lines: Iterable[str], style: MarkerStyle, tally: MaskingTally, *, with_spans: bool, merge: bool = False
    ) -> Iterator[tuple[str, list[MaskedSpan]]]:
        """Mask each line as ``Technique.mask`` does; the tally is complete after the last line."""
        chunk_of = self._chunks[style]
        notes: list[_Note] = []
        for line in lines:
            chunks = list(map(chunk_of, line.split(" ")))
            found = [chunk[1] for chunk in chunks if chunk[1]]
            notes += found
            is_masked = any([note[1] for note in found])
            tally.lines += 1
            tally.masked_lines += is_masked
            tally.empty_lines += not line or line.isspace()
            tally.words += len(chunks) - len(found)
            masked = " ".join([chunk[0] for chunk in chunks])
            spans: list[MaskedSpan] = []
            if is_masked and with_spans:
                spans = masked_spans(line, self._findings_of(line, chunks), style, merge=merge)
            yield merge_markers(masked) if merge else masked, spans
            if len(notes) > _MOST_NOTES:
                self._count(notes, tally)
        self._count(notes, tally)

    def _findings_of(self, line: str, chunks: list[_Chunk]) -> list[Finding]:
        """The findings of a line's masked chunks."""
        found: list[Finding] = []
        position = 0
        for raw, (_, note) in zip(line.split(" "), chunks, strict=True):
            for one in self.examine(raw)[1] if note and note[1] else ():
                found.append(Finding(position + one.start, position + one.end, one.label, one.source))
            position += len(raw) + 1
        return found

    def _count(self, notes: list[_Note], tally: MaskingTally) -> None:
        """Add the counts of the chunks' notes to the tally, and clear the notes."""
        for (words, labels), times in Counter(notes).items():
            tally.words += times * words
            if labels:
                tally.masked_words += times * len(labels)
                tally.sources[self.name] += times * len(labels)
                for label in labels:
                    tally.labels[label] += times
        notes.clear()
