"""Texts as token ids, for training and evaluation."""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.corpora.masked_text import count_markers
from tasks.corpora.text_lines import read_lines
from tasks.errors import CorpusError
from tasks.language_model.normalisation import normalise, normalise_masked
from tasks.language_model.settings import MarkerUse
from tasks.language_model.vocabulary import END_ID, MARKERS, START_ID, UNKNOWN_ID, Vocabulary
from tasks.records.stage_report import Report

_MARKER_IDS = np.arange(len(MARKERS)) + 4


@dataclass(frozen=True)
class EncodedText:
    """Sentences as ids, one after the other: ``<s> w1 ... wn </s> <s> ...``."""

    tokens: np.ndarray
    """All ids (int32)."""
    offsets: np.ndarray
    """Start of each sentence in ``tokens``, and the end of the last (int64)."""
    lines: np.ndarray
    """Line number of each sentence, from 1 (int64)."""
    empty_lines: int = 0
    """Number of lines left out because they hold no word."""
    marker_like: int = 0
    """Number of markers found in a text that was read as plain."""
    markers_are_targets: bool = True
    """Whether the model predicts markers; False: they are context only."""
    removed_markers: int = 0
    """Number of markers that were removed from their lines."""
    dropped_lines: int = 0
    """Number of lines left out because they hold a marker."""

    @property
    def sentences(self) -> int:
        """Number of sentences with at least one word."""
        return len(self.lines)

    @property
    def words(self) -> int:
        """Number of words and markers, without ``<s>`` and ``</s>``."""
        return len(self.tokens) - 2 * self.sentences

    @property
    def unknown_words(self) -> int:
        """Number of words outside the vocabulary."""
        return int((self.tokens == UNKNOWN_ID).sum())

    @property
    def markers(self) -> int:
        """Number of marker tokens."""
        return int(is_marker(self.tokens).sum())

    def counts(self) -> dict[str, int]:
        """The counts for a report."""
        return {
            "sentences": self.sentences,
            "empty_lines": self.empty_lines,
            "words": self.words,
            "unknown_words": self.unknown_words,
            "markers": self.markers,
            "removed_markers": self.removed_markers,
            "dropped_lines": self.dropped_lines,
        }

    def is_target(self) -> np.ndarray:
        """Whether the model predicts each id (N,), bool: all but ``<s>``, and markers where they are targets."""
        counted = self.tokens != START_ID
        return counted if self.markers_are_targets else counted & ~is_marker(self.tokens)


def is_marker(tokens: np.ndarray) -> np.ndarray:
    """Whether each id is a marker."""
    return (tokens >= _MARKER_IDS[0]) & (tokens <= _MARKER_IDS[-1])


def overlap_of(maximum_tokens: int) -> int:
    """Number of positions that a later window of a long sentence reads as context in scoring: half a window."""
    return maximum_tokens // 2


def encode_text(text: str | Path | Sequence[str], vocabulary: Vocabulary, markers: MarkerUse = "none") -> EncodedText:
    """Read a text file, one sentence a line, or take its lines. Lines without a word are left out and counted; with
    ``drop``, so are lines with a marker.

    Raises ``CorpusError`` where no line is left.
    """
    split: Callable[[str], list[str]] = normalise if markers == "none" else normalise_masked
    tokens, offsets, lines = array("i"), array("q", [0]), array("q")
    empty = marker_like = removed = dropped = number = 0
    path, read = (text, read_lines(text)) if isinstance(text, str | Path) else ("lines", text)
    for number, line in enumerate(read, start=1):
        words = split(line)
        if markers in ("remove", "drop"):
            left = [word for word in words if word not in MARKERS]
            if markers == "drop" and len(left) < len(words):
                dropped += 1
                continue
            removed += len(words) - len(left)
            words = left
        if not words:
            empty += 1
            continue
        if markers == "none" and "[" in line:
            marker_like += count_markers(line)
        tokens.append(START_ID)
        tokens.extend(vocabulary.encode(words))
        tokens.append(END_ID)
        offsets.append(len(tokens))
        lines.append(number)
    if not lines:
        if dropped or removed:
            raise CorpusError(
                f"text {str(path)!r}: --markers {markers} leaves no word of {number} lines ({dropped} dropped, {empty} "
                "without a word); take --markers ignore, or mask less"
            )
        state = "is empty" if number == 0 else f"holds no word in {number} lines"
        raise CorpusError(f"text {str(path)!r} {state}; it needs at least one sentence")
    return EncodedText(
        tokens=np.frombuffer(tokens, dtype=np.int32),
        offsets=np.frombuffer(offsets, dtype=np.int64),
        lines=np.frombuffer(lines, dtype=np.int64),
        empty_lines=empty,
        marker_like=marker_like,
        markers_are_targets=markers != "ignore",
        removed_markers=removed,
        dropped_lines=dropped,
    )


def warn_of_markers(report: Report, marker_like: int) -> None:
    """Warn that a text, read as plain, holds strings that look like markers."""
    if marker_like:
        report.warn(
            f"the text holds {marker_like} marker-like strings such as [MASK] and was read as plain text, where they "
            "are ordinary words; for masked text give --markers token, ignore, remove or drop"
        )
