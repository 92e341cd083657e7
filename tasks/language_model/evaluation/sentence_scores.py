"""Scores of sentences, and their file: one line a sentence with counts and log-probabilities, numbers only.

The file is tab-separated: ``# `` and the signature of the protocol, then the names of the columns, then the sentences
in the order of the text. It has columns for all targets and for known ones. For each masking technique it also has
columns for the words that it masks, ``masked:allow_list``, and the known ones of them, ``masked_known:allow_list``. All
other groups, and differences between two models, are computed from these.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import read_lines, write_lines
from tasks.errors import CorpusError


@dataclass(frozen=True)
class SentenceSums:
    """Sums of log-probabilities for every sentence of a text (S,)."""

    targets: np.ndarray
    """Number of targets of each sentence (int64)."""
    log_probability: np.ndarray
    """Sum of each sentence in nats (float64)."""

    @classmethod
    def of_targets(
        cls, log_probability: np.ndarray, sentence: np.ndarray, sentences: int, counted: np.ndarray | None = None
    ) -> "SentenceSums":
        """Sum the targets that are ``counted`` (N,) by sentence; all targets by default."""
        if counted is not None:
            log_probability, sentence = log_probability[counted], sentence[counted]
        return cls(
            np.bincount(sentence, minlength=sentences).astype(np.int64),
            np.bincount(sentence, weights=log_probability, minlength=sentences).astype(np.float64),
        )

    def __sub__(self, other: "SentenceSums") -> "SentenceSums":
        """Subtract the targets of ``other``, which must be among these."""
        return SentenceSums(self.targets - other.targets, self.log_probability - other.log_probability)

    @property
    def count(self) -> int:
        """Number of targets of all sentences."""
        return int(self.targets.sum())

    @property
    def sum(self) -> float:
        """Log-probability of all sentences in nats."""
        return float(self.log_probability.sum())

    @property
    def mean(self) -> float | None:
        """Mean log-probability of a target in nats; ``None`` without targets."""
        return self.sum / self.count if self.count else None

    @property
    def perplexity(self) -> float | None:
        """exp of the mean negative log-probability; ``None`` without targets, or on overflow."""
        mean = self.mean
        return math.exp(-mean) if mean is not None and -mean < 700 else None


ALL, KNOWN, UNKNOWN = "all", "known", "unknown"
MASKED, MASKED_KNOWN, REST_KNOWN = "masked", "masked_known", "rest_known"
_FIRST_COLUMNS = ["line", "targets", "log_probability", "known_targets", "known_log_probability"]
_DECIMALS = 6


@dataclass(frozen=True)
class SentenceScores:
    """Scores of all sentences. They are numbers only, so they may be stored where the text may not."""

    line: np.ndarray
    """Line number in the text, from 1 (int64)."""
    sums: Mapping[str, SentenceSums]
    """``all`` targets (the words and the sentence end), ``known`` ones (in the vocabulary, as the sentence end is), and
    ``masked:TECHNIQUE`` and ``masked_known:TECHNIQUE`` for every technique with a sidecar."""

    @property
    def techniques(self) -> list[str]:
        """Techniques whose masked words are separate groups."""
        return [name.partition(":")[2] for name in self.sums if name.startswith(f"{MASKED}:")]

    def of(self, group: str) -> SentenceSums:
        """The sums of ``all``, ``known``, ``unknown``, ``masked:T``, ``masked_known:T`` or ``rest_known:T``.

        The rest has all targets that technique ``T`` leaves unchanged. Raises ``KeyError`` for another group.
        """
        if group == UNKNOWN:
            return self.sums[ALL] - self.sums[KNOWN]
        kind, _, technique = group.partition(":")
        if kind == REST_KNOWN:
            return self.sums[KNOWN] - self.sums[f"{MASKED_KNOWN}:{technique}"]
        return self.sums[group]


def write_scores(path: str | Path, scores: SentenceScores, signature: str) -> None:
    """Write the scores of every sentence; mode 0600. Log-probabilities are rounded to a millionth of a nat."""
    names, values = ["line"], [map(str, scores.line.tolist())]
    for group, sums in scores.sums.items():
        start = {ALL: "", KNOWN: "known_"}.get(group, f"{group}:")
        names += [f"{start}targets", f"{start}log_probability"]
        values += [map(str, sums.targets.tolist()), map(_short, sums.log_probability.tolist())]
    rows = ("\t".join(row) for row in zip(*values, strict=True))
    write_lines(path, [f"# {signature}", "\t".join(names), *rows], private=True)


def _short(value: float) -> str:
    """The shortest form, and ``0`` for the many sentences without a word of a group."""
    return repr(round(value, _DECIMALS)) if value else "0"


def read_scores(path: str | Path) -> tuple[SentenceScores, str]:
    """Read a scores file: the scores and the signature of their protocol.

    Raises ``CorpusError`` where it is not a scores file.
    """
    lines = list(read_lines(path))
    names = lines[1].split("\t") if len(lines) > 1 else []
    if len(lines) < 3 or not lines[0].startswith("# ") or names[: len(_FIRST_COLUMNS)] != _FIRST_COLUMNS:
        raise CorpusError(f"{str(path)!r} is not a scores file; 'palimpsest perplexity --scores FILE' writes one")
    line, *columns = zip(*(row.split("\t") for row in lines[2:]), strict=True)
    groups = [ALL, KNOWN, *(name.rpartition(":")[0] for name in names[len(_FIRST_COLUMNS) :: 2])]
    pairs = zip(groups, columns[::2], columns[1::2], strict=True)
    sums = {
        group: SentenceSums(np.array(counts, np.int64), np.array(logs, np.float64)) for group, counts, logs in pairs
    }
    return SentenceScores(np.array(line, np.int64), sums), lines[0][2:]
