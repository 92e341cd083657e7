"""Errors of a recogniser by utterance, and rates as quotients of their sums (docs/word_error_rate.md).

References and hypotheses are paired by utterance id, and both are normalised as for the language model.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from tasks.corpora.text_lines import read_lines, write_lines
from tasks.errors import SpeechError
from tasks.language_model.evaluation.bootstrap import percentile_interval, ratio_of_sums, resampled_means
from tasks.language_model.normalisation import normalise
from tasks.languages.segmentation import UNSPACED

if TYPE_CHECKING:
    import jiwer

ALL, CHARACTERS, MIXED_UNITS = "all", "characters", "mixed units"
MASKED, REST, LANGUAGE = "masked", "rest", "language"
EQUAL, SUBSTITUTE, DELETE, INSERT = KINDS = ("equal", "substitute", "delete", "insert")
"""Kinds of an alignment's chunks, named by jiwer."""
_IDS_SHOWN = 10


class ErrorCounts(NamedTuple):
    """Units of the references and their errors, by utterance: arrays (U,), int64."""

    units: np.ndarray
    """Words, or characters."""
    errors: np.ndarray
    """Substitutions, deletions and insertions."""
    hits: np.ndarray | None = None
    """Recognised units, if known."""


@dataclass(frozen=True)
class ErrorTable:
    """Counts for every utterance (U,), in the order of the ids; numbers and ids only."""

    utterance_ids: tuple[str, ...]
    groups: Mapping[str, ErrorCounts]
    """``all`` words, ``characters`` with one blank between two words, the groups of ``WordGroups``, and ``mixed units``
    if some words are in a script without spaces."""
    of_kind: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Words (U,), int64, by kind: ``insert``, ``delete``, ``substitute`` and ``equal``; empty if read from a file."""
    missing: frozenset[str] = frozenset()
    """Ids of utterances with words but without a hypothesis: all their words count as deleted."""

    def named(self, kind: str) -> list[str]:
        """Names of the groups of a kind, such as the techniques of ``masked``."""
        return [name.partition(":")[2] for name in self.groups if name.startswith(f"{kind}:")]

    def of(self, group: str) -> ErrorCounts:
        """The counts of a group, or of ``rest:T``, the words that technique T does not mask."""
        kind, _, technique = group.partition(":")
        if kind != REST:
            return self.groups[group]
        every, masked = self.groups[ALL], self.groups[f"{MASKED}:{technique}"]
        return ErrorCounts(every.units - masked.units, every.errors - masked.errors)


WordGroups = Mapping[str, Mapping[str, np.ndarray]]
"""By group and utterance id, whether each word of the reference belongs to it (N,), bool. ``masked:TECHNIQUE``: words
that a technique masks; ``language:...``: groups of ``mixed_units``."""

_UNITS = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


def mixed_units(words: Sequence[str]) -> list[str]:
    """The units of a mixed error rate: characters of Chinese and Japanese, and words, or parts of words between such
    characters, of scripts with spaces."""
    return [unit for word in words for unit in _UNITS.findall(word)]


def align_words(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> "jiwer.WordOutput":
    """The alignment of each of at least one pair of normalised words; chunks are in order and cover both sides."""
    import jiwer

    # Normalised words have no blanks, so joining and splitting them again changes nothing.
    return jiwer.process_words(list(map(" ".join, references)), list(map(" ".join, hypotheses)))


def count_errors(
    references: Mapping[str, str], hypotheses: Mapping[str, str], groups: WordGroups | None = None
) -> ErrorTable:
    """Align each hypothesis with the reference of the same id and count.

    A missing hypothesis counts as empty and is counted as missing. Words recognised for a reference without words are
    insertions. Raises ``SpeechError`` if a hypothesis has an id that no reference has, or if no reference has a
    word.
    """
    refuse_unknown_ids(hypotheses.keys(), references, "hypotheses have ids that no reference has")
    spoken = {name: normalise(references[name]) for name in sorted(references)}
    if not any(spoken.values()):
        raise SpeechError(
            f"none of the {len(references)} references holds a word after normalisation; give the words that were said"
        )
    said, heard = list(spoken.values()), [normalise(hypotheses.get(name, "")) for name in spoken]
    aligned = align_words(said, heard)
    of_kind = _of_kind(aligned)
    spelled = [(" ".join(words), " ".join(others)) for words, others in zip(said, heard, strict=True)]
    characters = np.array([(len(one), Levenshtein.distance(one, other)) for one, other in spelled]).T
    counts = {ALL: _counts(of_kind), CHARACTERS: ErrorCounts(*characters)}
    of_units = aligned
    if any(_IS_UNSPACED.search(word) for words in said for word in words):
        of_units = align_words(list(map(mixed_units, said)), list(map(mixed_units, heard)))
        counts[MIXED_UNITS] = _counts(_of_kind(of_units))
    for group, places in (groups or {}).items():
        alignments = (of_units if group.startswith(f"{LANGUAGE}:") else aligned).alignments
        rows = [
            _on_group(chunks, places[name] if words else np.zeros(0, dtype=bool))
            for (name, words), chunks in zip(spoken.items(), alignments, strict=True)
        ]
        counts[group] = ErrorCounts(*np.array(rows, dtype=np.int64).T)
    missing = frozenset(name for name, words in spoken.items() if words and name not in hypotheses)
    return ErrorTable(tuple(spoken), counts, of_kind, missing)


def refuse_unknown_ids(found: Collection[str], references: Mapping[str, str], what: str) -> None:
    """Raise ``SpeechError`` if an utterance of ``found`` has no reference; ``what`` names ``found`` in messages."""
    unknown = sorted(set(found) - references.keys())
    if unknown:
        shown = ", ".join(map(repr, unknown[:_IDS_SHOWN])) + (", ..." if len(unknown) > _IDS_SHOWN else "")
        raise SpeechError(f"{len(unknown)} of {len(found)} {what}: {shown}; give the references of this test set")


def _of_kind(aligned: "jiwer.WordOutput") -> dict[str, np.ndarray]:
    """Units of each kind in each alignment (U,): of the hypothesis for insertions, else of the reference."""
    found = {kind: np.zeros(len(aligned.alignments), dtype=np.int64) for kind in KINDS}
    for row, chunks in enumerate(aligned.alignments):
        for chunk in chunks:
            units = chunk.ref_end_idx - chunk.ref_start_idx or chunk.hyp_end_idx - chunk.hyp_start_idx
            found[chunk.type][row] += units
    return found


def _counts(of_kind: Mapping[str, np.ndarray]) -> ErrorCounts:
    wrong = of_kind[DELETE] + of_kind[SUBSTITUTE]
    return ErrorCounts(of_kind[EQUAL] + wrong, of_kind[INSERT] + wrong, of_kind[EQUAL])


def _on_group(chunks: Sequence["jiwer.AlignmentChunk"], group: np.ndarray) -> tuple[int, int, int]:
    """Words of a group, errors on them, and recognised words among them.

    Inserted words belong to a group if a directly adjacent word of the group was not recognised: a name recognised as
    two words is a substitution and an insertion, both counted for the name. Other insertions belong to the rest.
    """
    wrong = np.zeros(len(group) + 2, dtype=bool)  # of the group, with a position before and one after
    for chunk in chunks:
        if chunk.type in (SUBSTITUTE, DELETE):
            begin, end = chunk.ref_start_idx, chunk.ref_end_idx
            wrong[begin + 1 : end + 1] = group[begin:end]
    words, errors = int(group.sum()), int(wrong.sum())
    hits = words - errors
    for chunk in chunks:
        if chunk.type == INSERT and wrong[chunk.ref_start_idx : chunk.ref_start_idx + 2].any():
            errors += chunk.hyp_end_idx - chunk.hyp_start_idx
    return words, errors, hits


_ENDS = ("units", "errors")


def write_errors(path: str | Path, errors: ErrorTable) -> None:
    """Write the counts of every utterance in the order of the ids, separated by tabs; mode 0600.

    Each group of words has two columns, such as ``all:units`` and ``all:errors``.
    """
    columns = {f"{name}:{end}": getattr(counts, end) for name, counts in errors.groups.items() for end in _ENDS}
    rows = zip(errors.utterance_ids, *(map(str, column.tolist()) for column in columns.values()), strict=True)
    write_lines(path, ["\t".join(["utterance_id", *columns]), *("\t".join(row) for row in rows)], private=True)


def read_errors(path: str | Path) -> ErrorTable:
    """Read a file of errors."""
    names, *lines = (line.split("\t") for line in read_lines(path))
    table = dict(zip(names[1:], np.array([cells[1:] for cells in lines], dtype=np.int64).T, strict=True))
    groups = dict.fromkeys(name.rpartition(":")[0] for name in table)
    counts = {group: ErrorCounts(*(table[f"{group}:{end}"] for end in _ENDS)) for group in groups}
    return ErrorTable(tuple(cells[0] for cells in lines), counts)


Difference = tuple[float, float | None, float | None]
"""A number and the ends of its interval; ``None`` where there is none."""


def mean_over_seeds(
    errors: Sequence[ErrorTable], samples: int, confidence: float, seed: int, group: str = ALL
) -> Difference:
    """Mean rate over systems of several seeds on the same utterances, with its interval.

    With several systems the bootstrap resamples utterances and seeds (see ``bootstrap.paired_ratios``). If the group
    has no word the mean is NaN.
    """
    counts = [system.of(group) for system in errors]
    return mean_of(np.stack([count.errors for count in counts], axis=1), counts[0].units, samples, confidence, seed)


def paired_difference_over_seeds(
    pairs: Sequence[tuple[ErrorTable, ErrorTable]],
    samples: int,
    confidence: float,
    seed: int,
    group: str = ALL,
) -> Difference:
    """Mean of the rate of A less the rate of B over the seeds, with its interval; negative if A makes fewer errors.

    Both are resampled alike, over utterances and seeds, so an interval without 0 shows a difference. Raises
    ``SpeechError`` if they were not measured on the same references.
    """
    counts = [(first.of(group), second.of(group)) for first, second in pairs]
    if any(
        system.utterance_ids != pairs[0][0].utterance_ids or not np.array_equal(of.units, counts[0][0].units)
        for pair, of_pair in zip(pairs, counts, strict=True)
        for system, of in zip(pair, of_pair, strict=True)
    ):
        raise SpeechError("the systems were measured on other references; count the errors of all with the same ones")
    sums = np.stack([first.errors - second.errors for first, second in counts], axis=1)
    return mean_of(sums, counts[0][0].units, samples, confidence, seed)


def mean_of(sums: np.ndarray, units: np.ndarray, samples: int, confidence: float, seed: int) -> Difference:
    """Mean over seeds of sums (U, n) divided by units (U,), and the ends of its interval."""
    rate = float(ratio_of_sums(sums.mean(axis=1).sum(keepdims=True), units.sum(keepdims=True).astype(np.float64))[0])
    if len(units) < 2:
        return rate, None, None
    means = resampled_means(
        sums[:, None, :].astype(np.float64), units[:, None].astype(np.float64), samples, confidence, seed
    )
    return rate, *(percentile_interval(means[:, 0], confidence) or (None, None))
