"""Masking by a list of kept words: what the allow list and the vocabulary threshold have in common.

Words never span white space, so a line is taken apart at spaces, and each different stretch (chunk) is tokenised,
looked up, escaped and written once; after that it is one look-up in a dictionary. The dictionary is bounded: memory
does not grow with the corpus.

The class of a word by its shape alone, for techniques that know no more than that it is private.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from tasks.corpora.masked_text import MASK, Marker, escape
from tasks.corpora.plain_text import plain
from tasks.corpora.sidecar import MaskedSpan
from tasks.corpora.words import fold, word_spans
from tasks.masking.technique import (
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
_LONGEST_REMEMBERED = 48
_MOST_REMEMBERED = 1 << 18
_MOST_NOTES = 1 << 16
_OPENING, _CLOSING = '"(', '".,;:!?)'

_Note = tuple[int, tuple[str, ...]]
"""Number of words of a chunk, and the classes of the masked ones."""
_Chunk = tuple[str, _Note | None]
"""A stretch without spaces: masked, and its note; ``None`` for the most frequent kind, one word that is kept."""
_ONE_MASKED: _Note = (1, (MASK,))


class _Chunks(dict[str, _Chunk]):
    """Chunks by their raw text, made when they are first asked for.

    There are two generations: when the young one is full it becomes the old one, and what is asked for again comes
    back from there. So frequent chunks stay, and rare ones go.
    """

    def __init__(self, technique: "KeptWords", style: MarkerStyle) -> None:
        super().__init__()
        self._technique, self._style = technique, style
        self._old: dict[str, _Chunk] = {}
        self._masked_words: dict[_Chunk, _Chunk] = {}

    def __missing__(self, raw: str) -> _Chunk:
        chunk = self._old.get(raw)
        if chunk is None:
            chunk = self._technique.write(raw, self._style)
            if len(raw) > _LONGEST_REMEMBERED:
                return chunk
            if chunk[1]:
                # "[MASK]" and "[MASK]," come from thousands of words: one object for all.
                chunk = self._masked_words.setdefault(chunk, chunk)
        if len(self) >= _MOST_REMEMBERED:
            self._old = dict(self)
            self.clear()
            self._masked_words.clear()
        self[raw] = chunk
        return chunk


class KeptWords(Technique):
    """Keep the words of a list, mask all others."""

    kept_words: frozenset[str]
    is_by_line = True

    def __init__(self, kept_words: Iterable[str], name: str) -> None:
        """``kept_words`` as they are; they are folded here. ``name`` names the technique in the sidecar."""
        self.kept_words = frozenset(map(fold, kept_words))
        self.name = name
        self._chunks: dict[MarkerStyle, _Chunks] = {}

    def reason(self, folded_word: str) -> str:
        """Why a word is masked or kept, for a person to read."""
        on_list = "on" if folded_word in self.kept_words else "not on"
        return f"{on_list} the list of {len(self.kept_words):,} kept words"

    def examine(self, text: str) -> tuple[int, list[Finding]]:
        """How many words a text has, and which of them are not on the list."""
        spans = word_spans(text)
        kept_words, source = self.kept_words, self.name
        findings = [
            Finding(start, end, word_class(text[start:end]), source)
            for start, end in spans
            if fold(text[start:end]) not in kept_words
        ]
        return len(spans), findings

    def write(self, chunk: str, style: MarkerStyle) -> _Chunk:
        """What becomes of a stretch of text."""
        core = chunk.lstrip(_OPENING).rstrip(_CLOSING)
        if core.isalpha() and core.isascii():
            # Most chunks are one plain word with punctuation round it: the same result without a pattern.
            if core.lower() in self.kept_words:
                return chunk, None
            return (MASKED if core == chunk else chunk.replace(core, MASKED)), _ONE_MASKED
        kept_words = self.kept_words
        spans = word_spans(chunk)
        pieces: list[str] = []
        labels: list[str] = []
        position = 0
        for start, end in spans:
            word = chunk[start:end]
            if fold(word) not in kept_words:
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

    def explain(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding | KeptWord]]]:
        """Each line with all of its words and the reason of each."""
        for line in lines:
            words: list[Finding | KeptWord] = []
            for start, end in word_spans(line):
                word = line[start:end]
                folded = fold(word)
                reason = self.reason(folded)
                if folded in self.kept_words:
                    words.append(KeptWord(start, end, reason))
                else:
                    words.append(Finding(start, end, word_class(word), self.name, reason=reason))
            yield line, words

    def mask(
        self, lines: Iterable[str], style: MarkerStyle, tally: MaskingTally, *, with_spans: bool, merge: bool = False
    ) -> Iterator[tuple[str, list[MaskedSpan]]]:
        """As for every technique; the tally is complete when the last line has been taken."""
        chunk_of = self._chunks.setdefault(style, _Chunks(self, style)).__getitem__
        notes: list[_Note] = []
        lines_seen = masked_lines = empty_lines = plain_words = 0
        for line in lines:
            raw = line.split(" ")
            chunks = list(map(chunk_of, raw))
            found = [chunk[1] for chunk in chunks if chunk[1]]
            lines_seen += 1
            plain_words += len(raw) - len(found)
            spans: list[MaskedSpan] = []
            if found:
                notes += found
                if any([note[1] for note in found]):
                    masked_lines += 1
                    if with_spans:
                        spans = masked_spans(line, self._findings_of(raw, chunks), style, merge=merge)
                elif not line or line.isspace():
                    empty_lines += 1
            masked = " ".join([chunk[0] for chunk in chunks])
            yield merge_markers(masked) if merge else masked, spans
            if len(notes) > _MOST_NOTES:
                self._count(notes, tally)
        self._count(notes, tally)
        tally.lines += lines_seen
        tally.masked_lines += masked_lines
        tally.empty_lines += empty_lines
        tally.words += plain_words

    def _findings_of(self, raw: list[str], chunks: list[_Chunk]) -> list[Finding]:
        """The findings of a line's chunks, counted from the beginning of the line."""
        found = []
        position = 0
        for text, chunk in zip(raw, chunks, strict=True):
            if chunk[1] and chunk[1][1]:
                for finding in self.examine(text)[1]:
                    start, end = position + finding.start, position + finding.end
                    found.append(Finding(start, end, finding.label, finding.source))
            position += len(text) + 1
        return found

    def _count(self, notes: list[_Note], tally: MaskingTally) -> None:
        """Add what the notes of chunks say, and begin anew."""
        for (words, labels), times in Counter(notes).items():
            tally.words += times * words
            if labels:
                tally.masked_words += times * len(labels)
                tally.sources[self.name] += times * len(labels)
                for label in labels:
                    tally.labels[label] += times
        notes.clear()
