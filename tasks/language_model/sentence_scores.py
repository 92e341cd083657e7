"""Scores of sentences, and their file: one line per sentence with its counts and log-probabilities, numbers only.

The file is tab-separated: first ``# `` and the signature of the protocol, then the names of the columns, then the
sentences in the order of the text. Differences between two models are computed from it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import read_lines, write_lines
from tasks.errors import CorpusError

COLUMNS = ("line", "targets", "log_probability", "known_targets", "known_log_probability")


@dataclass(frozen=True)
class SentenceScores:
    """Per sentence: numbers only, so that they may be kept where the text may not."""

    line: np.ndarray
    """Line number in the text, from 1 (int64)."""
    targets: np.ndarray
    """Predicted tokens: the words and the sentence end (int64)."""
    log_probability: np.ndarray
    """Sum over the targets, in nats (float64)."""
    known_targets: np.ndarray
    """Targets that are in the vocabulary, the sentence end among them (int64)."""
    known_log_probability: np.ndarray
    """Sum over the known targets, in nats (float64)."""


def write_scores(path: str | Path, scores: SentenceScores, signature: str) -> None:
    """Write the scores of every sentence; mode 0600."""
    columns = [getattr(scores, name).tolist() for name in COLUMNS]
    rows = ("\t".join(map(repr, row)) for row in zip(*columns, strict=True))
    write_lines(path, [f"# {signature}", "\t".join(COLUMNS), *rows], private=True)


def read_scores(path: str | Path) -> tuple[SentenceScores, str]:
    """Read a scores file: the scores and the signature of the protocol they follow.

    Raises ``CorpusError`` with the line that is not what it should be.
    """
    lines = list(read_lines(path))
    if len(lines) < 3 or not lines[0].startswith("# ") or lines[1].split("\t") != list(COLUMNS):
        raise CorpusError(f"{str(path)!r} is not a scores file; 'palimpsest perplexity --scores FILE' writes one")
    rows = []
    for number, line in enumerate(lines[2:], start=3):
        cells = line.split("\t")
        try:
            if len(cells) != len(COLUMNS):
                raise ValueError
            rows.append([int(cells[0]), int(cells[1]), float(cells[2]), int(cells[3]), float(cells[4])])
        except ValueError:
            raise CorpusError(f"{str(path)!r}: line {number} does not hold the five numbers of a sentence") from None
    columns = list(zip(*rows, strict=True))
    kinds = (np.int64, np.int64, np.float64, np.int64, np.float64)
    return SentenceScores(*(np.array(values, dtype=kind) for values, kind in zip(columns, kinds, strict=True))), lines[
        0
    ][2:]
