"""Scores of sentences, and their file: one line a sentence with counts and log-probabilities, numbers only.

The file is tab-separated: ``# `` and the signature of the protocol, then the names of the columns, then the sentences
in the order of the text. It has columns for all targets and for known ones. For each masking technique it also has
columns for the words that it masks, ``masked:allow_list``, and the known ones of them, ``masked_known:allow_list``. All
other groups, and differences between two models, are computed from these.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import read_lines, write_lines
from tasks.errors import CorpusError


@dataclass(frozen=True, slots=True)
class LogProbabilitySum:
    """A sum of log-probabilities over targets."""

    log_probability: float = 0.0
    """Sum in nats."""
    targets: int = 0

    @property
    def mean(self) -> float | None:
        """Mean log-probability of a target in nats; ``None`` without targets."""
        return self.log_probability / self.targets if self.targets else None

    @property
    def perplexity(self) -> float | None:
        """exp of the mean negative log-probability; ``None`` without targets, or on overflow."""
        mean = self.mean
        return math.exp(-mean) if mean is not None and -mean < 700 else None


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
    def total(self) -> LogProbabilitySum:
        """The sum over all sentences."""
        return LogProbabilitySum(float(self.log_probability.sum()), int(self.targets.sum()))


COLUMNS = ("line", "targets", "log_probability", "known_targets", "known_log_probability")
ALL, KNOWN, UNKNOWN = "all", "known", "unknown"
MASKED, MASKED_KNOWN, REST_KNOWN = "masked", "masked_known", "rest_known"
_ENDS = ("targets", "log_probability")
_DECIMALS = 6


@dataclass(frozen=True)
class SentenceScores:
    """Scores of all sentences. They are numbers only, so they may be stored where the text may not."""

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
    groups: Mapping[str, SentenceSums] = field(default_factory=dict)
    """``masked:TECHNIQUE`` and ``masked_known:TECHNIQUE`` for every technique with a sidecar."""

    @property
    def techniques(self) -> list[str]:
        """Techniques whose masked words are separate groups."""
        return list(dict.fromkeys(name.partition(":")[2] for name in self.groups))

    def of(self, group: str) -> SentenceSums:
        """The sums of ``all``, ``known``, ``unknown``, ``masked:T``, ``masked_known:T`` or ``rest_known:T``.

        The rest has all targets that technique ``T`` leaves unchanged. Raises ``KeyError`` for another group.
        """
        if group == ALL:
            return SentenceSums(self.targets, self.log_probability)
        if group == KNOWN:
            return SentenceSums(self.known_targets, self.known_log_probability)
        if group == UNKNOWN:
            return self.of(ALL) - self.of(KNOWN)
        kind, _, technique = group.partition(":")
        if kind == REST_KNOWN:
            return self.of(KNOWN) - self.groups[f"{MASKED_KNOWN}:{technique}"]
        return self.groups[group]


def write_scores(path: str | Path, scores: SentenceScores, signature: str) -> None:
    """Write the scores of every sentence; mode 0600. Log-probabilities are rounded to a millionth of a nat."""
    columns = {name: getattr(scores, name) for name in COLUMNS}
    for name, sums in scores.groups.items():
        columns |= {f"{name}:{end}": getattr(sums, end) for end in _ENDS}
    values = [
        [_short(value) for value in column.tolist()] if column.dtype.kind == "f" else map(str, column.tolist())
        for column in columns.values()
    ]
    rows = ("\t".join(row) for row in zip(*values, strict=True))
    write_lines(path, [f"# {signature}", "\t".join(columns), *rows], private=True)


def _short(value: float) -> str:
    """The shortest form, and ``0`` for the many sentences without a word of a group."""
    return repr(round(value, _DECIMALS)) if value else "0"


def read_scores(path: str | Path) -> tuple[SentenceScores, str]:
    """Read a scores file: the scores and the signature of their protocol.

    Raises ``CorpusError`` where it is not a scores file.
    """
    lines = list(read_lines(path))
    names = lines[1].split("\t") if len(lines) > 1 else []
    if len(lines) < 3 or not lines[0].startswith("# ") or names[: len(COLUMNS)] != list(COLUMNS):
        raise CorpusError(f"{str(path)!r} is not a scores file; 'palimpsest perplexity --scores FILE' writes one")
    cells = zip(*(line.split("\t") for line in lines[2:]), strict=True)
    columns = {
        name: np.array(column, dtype=np.float64 if name.endswith("log_probability") else np.int64)
        for name, column in zip(names, cells, strict=True)
    }
    groups = [name.rpartition(":")[0] for name in names[len(COLUMNS) :: len(_ENDS)]]
    sums = {group: SentenceSums(*(columns[f"{group}:{end}"] for end in _ENDS)) for group in groups}
    return SentenceScores(**{name: columns[name] for name in COLUMNS}, groups=sums), lines[0][2:]
