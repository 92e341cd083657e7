"""Errors of a recogniser by utterance, and rates as quotients of their sums (docs/word_error_rate.md).

References and hypotheses are paired by utterance id, and both are normalised as for the language model.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import jiwer
import numpy as np

from tasks.errors import SpeechError
from tasks.language_model.evaluation.bootstrap import percentile_interval, ratio_of_sums, resampled_means
from tasks.language_model.normalisation import normalise
from tasks.languages.segmentation import UNSPACED

EQUAL, SUBSTITUTE, DELETE, INSERT = "equal", "substitute", "delete", "insert"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Adjacent units with the same kind of result."""

    kind: str
    """``EQUAL``, ``SUBSTITUTE`` (as many on both sides), ``DELETE`` or ``INSERT``."""
    reference: range
    """Positions in the reference; empty where words were inserted, before its start."""
    hypothesis: range
    """Positions in the hypothesis; empty where words were deleted."""


def align_words(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]], *, characters: bool = False
) -> list[list[Stretch]]:
    """The alignment of each pair of normalised words; stretches are in order and cover both sides.

    ``characters``: of the characters of the words, with one blank between two words.
    """
    if not references:
        return []
    units = jiwer.ReduceToListOfListOfChars() if characters else jiwer.ReduceToListOfListOfWords()
    # Normalised words have no blanks, so joining and splitting them again changes nothing.
    output = jiwer.process_words(
        [" ".join(words) for words in references],
        [" ".join(words) for words in hypotheses],
        reference_transform=units,
        hypothesis_transform=units,
    )
    return [
        [
            Stretch(
                chunk.type, range(chunk.ref_start_idx, chunk.ref_end_idx), range(chunk.hyp_start_idx, chunk.hyp_end_idx)
            )
            for chunk in chunks
        ]
        for chunks in output.alignments
    ]


ALL, CHARACTERS, MIXED_UNITS = "all", "characters", "mixed units"
MASKED, REST, BEHIND, LANGUAGE = "masked", "rest", "behind", "language"
_IDS_SHOWN = 10

Difference = tuple[float, float | None, float | None]
"""A number and the ends of its interval; ``None`` where there is none."""


@dataclass(frozen=True)
class ErrorCounts:
    """Units of the references and their errors, by utterance: arrays (U,), int64."""

    units: np.ndarray
    """Words, or characters."""
    errors: np.ndarray
    """Substitutions, deletions and insertions."""
    hits: np.ndarray | None = None
    """Recognised units, if known."""


@dataclass(frozen=True)
class ErrorTable:
    """Counts for every utterance, in the order of the ids; numbers and ids only."""

    utterance_ids: tuple[str, ...]
    groups: Mapping[str, ErrorCounts]
    """``all`` words, ``characters`` with one blank between two words, the groups of ``WordGroups``, and ``mixed units``
    if some words are in a script without spaces."""

    def named(self, kind: str) -> list[str]:
        """Names of the groups of a kind, such as the techniques of ``masked``."""
        return [name.partition(":")[2] for name in self.groups if name.startswith(f"{kind}:")]

    def of(self, group: str) -> ErrorCounts:
        """The counts of a group, or of ``rest:T``, the words that technique T does not mask.

        Raises ``SpeechError`` for another group.
        """
        kind, _, technique = group.partition(":")
        if group in self.groups:
            return self.groups[group]
        masked = self.groups.get(f"{MASKED}:{technique}")
        if masked is None or kind != REST:
            raise SpeechError(
                f"these errors have no group {group!r}; count them again with "
                f"'palimpsest word-error-rate --sidecar', or with languages"
            )
        every = self.groups[ALL]
        return ErrorCounts(every.units - masked.units, every.errors - masked.errors)


@dataclass(frozen=True)
class UtteranceErrors(ErrorTable):
    """An ``ErrorTable`` with the kinds of errors: arrays (U,), int64."""

    insertions: np.ndarray
    deletions: np.ndarray
    substitutions: np.ndarray
    missing: np.ndarray
    """Utterances with words but without a hypothesis (U,), bool: all their words count as deleted."""
    empty_references: int
    """Number of references without a word after normalisation: all words recognised there are insertions."""

    @property
    def words(self) -> np.ndarray:
        """Words of the reference (U,)."""
        return self.groups[ALL].units

    @property
    def errors(self) -> np.ndarray:
        """Insertions, deletions and substitutions of words (U,)."""
        return self.groups[ALL].errors


WordGroups = Mapping[str, Mapping[str, np.ndarray]]
"""By group and utterance id, whether each word of the reference belongs to it (N,), bool. ``masked:TECHNIQUE``: words
that a technique masks; ``behind:TECHNIQUE:D``: the word D places after a masked one; ``language:...``: groups of
``mixed_units``."""

_UNITS = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


def mixed_units(words: Sequence[str]) -> list[str]:
    """The units of a mixed error rate: characters of Chinese and Japanese, and words, or parts of words between such
    characters, of scripts with spaces."""
    return [unit for word in words for unit in _UNITS.findall(word)]


def count_errors(
    references: Mapping[str, str], hypotheses: Mapping[str, str], groups: WordGroups | None = None
) -> UtteranceErrors:
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
    recognised = [normalise(hypotheses.get(name, "")) for name in spoken]
    alignments = align_words(list(spoken.values()), recognised)
    of_characters = align_words(list(spoken.values()), recognised, characters=True)
    counts = {ALL: _counts(alignments), CHARACTERS: _counts(of_characters)}
    of_units = alignments
    if any(_IS_UNSPACED.search(word) for words in spoken.values() for word in words):
        of_units = align_words(list(map(mixed_units, spoken.values())), list(map(mixed_units, recognised)))
        counts[MIXED_UNITS] = _counts(of_units)
    for group, places in (groups or {}).items():
        aligned = of_units if group.startswith(f"{LANGUAGE}:") else alignments
        rows = [
            _on_group(stretches, places[name] if words else np.zeros(0, dtype=bool))
            for (name, words), stretches in zip(spoken.items(), aligned, strict=True)
        ]
        counts[group] = ErrorCounts(*np.array(rows, dtype=np.int64).T)
    return UtteranceErrors(
        utterance_ids=tuple(spoken),
        groups=counts,
        insertions=_total(alignments, INSERT),
        deletions=_total(alignments, DELETE),
        substitutions=_total(alignments, SUBSTITUTE),
        missing=np.array([bool(words) and name not in hypotheses for name, words in spoken.items()], dtype=bool),
        empty_references=sum(not words for words in spoken.values()),
    )


def refuse_unknown_ids(found: Collection[str], references: Mapping[str, str], what: str) -> None:
    """Raise ``SpeechError`` if an utterance of ``found`` has no reference; ``what`` names ``found`` in messages."""
    unknown = sorted(set(found) - references.keys())
    if unknown:
        shown = ", ".join(map(repr, unknown[:_IDS_SHOWN])) + (", ..." if len(unknown) > _IDS_SHOWN else "")
        raise SpeechError(f"{len(unknown)} of {len(found)} {what}: {shown}; give the references of this test set")


def _total(alignments: Sequence[Sequence[Stretch]], kind: str) -> np.ndarray:
    """Units of one kind in each alignment (U,): of the hypothesis for insertions, else of the reference."""
    return np.array(
        [
            sum(len(s.hypothesis) if kind == INSERT else len(s.reference) for s in stretches if s.kind == kind)
            for stretches in alignments
        ],
        dtype=np.int64,
    )


def _counts(alignments: Sequence[Sequence[Stretch]]) -> ErrorCounts:
    hits, wrong = _total(alignments, EQUAL), _total(alignments, DELETE) + _total(alignments, SUBSTITUTE)
    return ErrorCounts(hits + wrong, _total(alignments, INSERT) + wrong, hits)


def _on_group(stretches: Sequence[Stretch], group: np.ndarray) -> tuple[int, int, int]:
    """Words of a group, errors on them, and recognised words among them.

    Inserted words belong to a group if a directly adjacent word of the group was not recognised: a name recognised as
    two words is a substitution and an insertion, both counted for the name. Other insertions belong to the rest.
    """
    wrong = np.zeros(len(group) + 2, dtype=bool)  # of the group, with a position before and one after
    for stretch in stretches:
        if stretch.kind in (SUBSTITUTE, DELETE):
            places = slice(stretch.reference.start, stretch.reference.stop)
            wrong[places.start + 1 : places.stop + 1] = group[places]
    errors = int(wrong.sum())
    hits = int(group.sum()) - errors
    for stretch in stretches:
        place = stretch.reference.start
        if stretch.kind == INSERT and (wrong[place] or wrong[place + 1]):
            errors += len(stretch.hypothesis)
    return int(group.sum()), errors, hits


def mean_over_seeds(
    errors: Sequence[ErrorTable], samples: int, confidence: float, seed: int, group: str = ALL
) -> Difference:
    """Mean rate over systems of several seeds on the same utterances, with its interval.

    With several systems the bootstrap resamples utterances and seeds (see ``bootstrap.paired_ratios``). If the group
    has no word the mean is NaN.
    """
    counts = [system.of(group) for system in errors]
    _check_same(errors, group)
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
    _check_same([system for pair in pairs for system in pair], group)
    sums = np.stack([first.of(group).errors - second.of(group).errors for first, second in pairs], axis=1)
    return mean_of(sums, pairs[0][0].of(group).units, samples, confidence, seed)


def mean_of(sums: np.ndarray, units: np.ndarray, samples: int, confidence: float, seed: int) -> Difference:
    """Mean over seeds of sums (U, n) divided by units (U,), and the ends of its interval."""
    rate = float(ratio_of_sums(sums.mean(axis=1).sum(keepdims=True), units.sum(keepdims=True).astype(np.float64))[0])
    if len(units) < 2:
        return rate, None, None
    means = resampled_means(
        sums[:, None, :].astype(np.float64), units[:, None].astype(np.float64), samples, confidence, seed
    )
    interval = percentile_interval(means[:, 0], confidence)
    return (rate, *interval) if interval else (rate, None, None)  # type: ignore[return-value]


def _check_same(systems: Sequence[ErrorTable], group: str) -> None:
    first = systems[0]
    for other in systems[1:]:
        same = first.utterance_ids == other.utterance_ids
        if not same or not np.array_equal(first.of(group).units, other.of(group).units):
            raise SpeechError(
                f"the systems were not measured on the same references ({len(first.utterance_ids)} and "
                f"{len(other.utterance_ids)} utterances); count the errors of both with the same references"
            )
