"""Errors of a recogniser by utterance, and the rates that are sums of them, divided once (docs/word_error_rate.md).

References and hypotheses are found by utterance id, and both go through the language model's normalisation.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import jiwer
import numpy as np

from tasks.errors import SpeechError
from tasks.language_model.evaluation.bootstrap import percentile_interval, ratio_of_sums, resampled_means
from tasks.language_model.normalisation import normalise
from tasks.languages.segmentation import UNSPACED

EQUAL, SUBSTITUTE, DELETE, INSERT = "equal", "substitute", "delete", "insert"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring units that were recognised in the same way."""

    kind: str
    """``EQUAL``, ``SUBSTITUTE`` (as many on both sides), ``DELETE`` or ``INSERT``."""
    reference: range
    """Places in the reference; empty where words were inserted in front of its start."""
    hypothesis: range
    """Places in the hypothesis; empty where words were deleted."""


def align_words(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]], *, characters: bool = False
) -> list[list[Stretch]]:
    """The alignment of each pair of normalised words; stretches stand in order and cover both sides.

    ``characters``: of the characters of the words, with one blank between two words.
    """
    if not references:
        return []
    units = jiwer.ReduceToListOfListOfChars() if characters else jiwer.ReduceToListOfListOfWords()
    # Normalised words hold no blanks, so joining and dividing them again changes nothing.
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
    """Units of the references and errors on them, by utterance: arrays (U,), int64."""

    units: np.ndarray
    """Words, or characters."""
    errors: np.ndarray
    """Substitutions, deletions and insertions."""
    hits: np.ndarray | None = None
    """Units that were recognised, where that is known."""


@dataclass(frozen=True)
class UtteranceErrors:
    """Counts for every utterance, in the order of the ids: numbers and ids only."""

    utterance_ids: tuple[str, ...]
    words: np.ndarray
    """Words of the reference (U,), int64, as all that follow."""
    hits: np.ndarray
    """Of them, the recognised ones."""
    insertions: np.ndarray
    deletions: np.ndarray
    substitutions: np.ndarray
    characters: np.ndarray
    """Characters of the reference's words, with one blank between two words."""
    character_errors: np.ndarray
    missing: np.ndarray
    """Utterances with words and without a hypothesis (U,), bool: all their words count as deleted."""
    empty_references: int = 0
    """Utterances whose reference holds no word after normalisation: all that was recognised there is inserted."""
    groups: Mapping[str, ErrorCounts] = field(default_factory=dict)
    """Of ``WordGroups``, and ``mixed units`` where some words are in a script without spaces."""

    @property
    def errors(self) -> np.ndarray:
        """Insertions, deletions and substitutions of words (U,)."""
        return self.insertions + self.deletions + self.substitutions

    @property
    def techniques(self) -> list[str]:
        """Techniques whose masked words are told apart."""
        return [name.partition(":")[2] for name in self.groups if name.startswith(f"{MASKED}:")]

    @property
    def by_language(self) -> list[str]:
        """Groups by the languages of the words, without what is common to their names."""
        return [name.partition(":")[2] for name in self.groups if name.startswith(f"{LANGUAGE}:")]

    def of(self, group: str) -> ErrorCounts:
        """The counts of ``all`` words, ``characters``, a group, or ``rest:T``, the words that technique T leaves alone.

        Raises ``SpeechError`` for another group.
        """
        if group == ALL:
            return ErrorCounts(self.words, self.errors, self.hits)
        if group == CHARACTERS:
            return ErrorCounts(self.characters, self.character_errors)
        kind, _, technique = group.partition(":")
        if group in self.groups:
            return self.groups[group]
        masked = self.groups.get(f"{MASKED}:{technique}")
        if masked is None or kind != REST:
            raise SpeechError(
                f"these errors do not tell apart {group!r}; count them again with "
                f"'palimpsest word-error-rate --sidecar', or with languages"
            )
        hits = None if masked.hits is None else self.hits - masked.hits
        return ErrorCounts(self.words - masked.units, self.errors - masked.errors, hits)


WordGroups = Mapping[str, Mapping[str, np.ndarray]]
"""By group and utterance id, which words of the reference belong to it (N,), bool: ``masked:TECHNIQUE``, those that a
technique masks; ``behind:TECHNIQUE:D``, D words behind one that it masks; and ``language:...``, whose words are
``mixed_units``."""

_UNITS = re.compile(f"[{UNSPACED}]|[^{UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


def mixed_units(words: Sequence[str]) -> list[str]:
    """What a mixed error rate counts: characters of Chinese and Japanese, and words, or parts of them between such
    characters, of scripts that divide words by spaces."""
    return [unit for word in words for unit in _UNITS.findall(word)]


def count_errors(
    references: Mapping[str, str], hypotheses: Mapping[str, str], groups: WordGroups | None = None
) -> UtteranceErrors:
    """Align each hypothesis with the reference of the same id and count.

    A missing hypothesis counts as an empty one and is counted as missing. Words that are recognised where the reference
    has none are insertions. Raises ``SpeechError`` where a hypothesis has an id that no reference has, and where
    no reference holds a word.
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
    counts: dict[str, ErrorCounts] = {}
    of_units = alignments
    if any(_IS_UNSPACED.search(word) for words in spoken.values() for word in words):
        of_units = align_words(list(map(mixed_units, spoken.values())), list(map(mixed_units, recognised)))
        kinds = {kind: _total(of_units, kind) for kind in (EQUAL, INSERT, DELETE, SUBSTITUTE)}
        hits, wrong = kinds[EQUAL], kinds[DELETE] + kinds[SUBSTITUTE]
        counts[MIXED_UNITS] = ErrorCounts(hits + wrong, kinds[INSERT] + wrong, hits)
    for group, places in (groups or {}).items():
        aligned = of_units if group.startswith(f"{LANGUAGE}:") else alignments
        rows = [
            _on_group(stretches, places[name] if words else np.zeros(0, dtype=bool))
            for (name, words), stretches in zip(spoken.items(), aligned, strict=True)
        ]
        counts[group] = ErrorCounts(*np.array(rows, dtype=np.int64).T)
    return UtteranceErrors(
        utterance_ids=tuple(spoken),
        words=_array(len(words) for words in spoken.values()),
        hits=_total(alignments, EQUAL),
        insertions=_total(alignments, INSERT),
        deletions=_total(alignments, DELETE),
        substitutions=_total(alignments, SUBSTITUTE),
        characters=_array(max(sum(map(len, words)) + len(words) - 1, 0) for words in spoken.values()),
        character_errors=np.sum([_total(of_characters, kind) for kind in (INSERT, DELETE, SUBSTITUTE)], axis=0),
        missing=np.array([bool(words) and name not in hypotheses for name, words in spoken.items()], dtype=bool),
        empty_references=sum(not words for words in spoken.values()),
        groups=counts,
    )


def refuse_unknown_ids(found: Collection[str], references: Mapping[str, str], what: str) -> None:
    """``SpeechError`` where something (``what`` in messages) is of an utterance that the references do not have."""
    unknown = sorted(set(found) - references.keys())
    if unknown:
        shown = ", ".join(map(repr, unknown[:_IDS_SHOWN])) + (", ..." if len(unknown) > _IDS_SHOWN else "")
        raise SpeechError(f"{len(unknown)} of {len(found)} {what}: {shown}; give the references of this test set")


def _array(counts: object) -> np.ndarray:
    return np.fromiter(counts, dtype=np.int64)  # type: ignore[call-overload]


def _total(alignments: Sequence[Sequence[Stretch]], kind: str) -> np.ndarray:
    """Units of one kind in each alignment (U,): of the hypothesis where they were inserted, else of the reference."""
    return _array(
        sum(len(s.hypothesis) if kind == INSERT else len(s.reference) for s in stretches if s.kind == kind)
        for stretches in alignments
    )


def _on_group(stretches: Sequence[Stretch], group: np.ndarray) -> tuple[int, int, int]:
    """Words of a group, errors on them, and how many of them were recognised.

    Inserted words belong to a group where a word directly beside them is of it and was not recognised: a name heard as
    two words is a substitution and an insertion, both the name's. All others belong to the rest.
    """
    wrong = np.zeros(len(group) + 2, dtype=bool)  # of the group, with a place in front and one behind
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


def word_error_rate(errors: UtteranceErrors, group: str = ALL) -> float | None:
    """Errors by words of the references, as a share (0.2 is 20 %); ``None`` where the group has no word."""
    counts = errors.of(group)
    units = int(counts.units.sum())
    return int(counts.errors.sum()) / units if units else None


def word_error_interval(
    errors: UtteranceErrors, samples: int, confidence: float, seed: int, group: str = ALL
) -> list[float] | None:
    """Ends of the percentile interval of the rate, by resampling utterances; ``None`` with fewer than two."""
    _, low, high = mean_over_seeds([errors], samples, confidence, seed, group)
    return None if low is None or high is None else [low, high]


def recall_with_interval(
    errors: UtteranceErrors, samples: int, confidence: float, seed: int, group: str
) -> tuple[float | None, list[float] | None]:
    """Recognised words of a group by all its words, and the ends of the interval; ``None`` of a group without words."""
    counts = errors.of(group)
    if counts.hits is None or not counts.units.sum():
        return None, None
    rate, low, high = mean_of(counts.hits[:, None], counts.units, samples, confidence, seed)
    return rate, None if low is None or high is None else [low, high]


def mean_over_seeds(
    errors: Sequence[UtteranceErrors], samples: int, confidence: float, seed: int, group: str = ALL
) -> Difference:
    """Mean rate of the systems of several seeds on the same utterances, with its interval.

    With more than one the bootstrap has two levels, utterances and seeds (``bootstrap.paired_ratios`` says how).
    Without a word in the group the mean is NaN.
    """
    counts = [system.of(group) for system in errors]
    _check_same(errors, group)
    return mean_of(np.stack([count.errors for count in counts], axis=1), counts[0].units, samples, confidence, seed)


def paired_difference(
    errors_a: UtteranceErrors, errors_b: UtteranceErrors, samples: int, confidence: float, seed: int, group: str = ALL
) -> Difference:
    """Rate of A less that of B, with its interval by paired bootstrap: negative where A makes fewer errors.

    Both are resampled alike, so an interval without 0 says that the two differ. Raises ``SpeechError`` where they were
    not measured on the same references.
    """
    return paired_difference_over_seeds([(errors_a, errors_b)], samples, confidence, seed, group)


def paired_difference_over_seeds(
    pairs: Sequence[tuple[UtteranceErrors, UtteranceErrors]],
    samples: int,
    confidence: float,
    seed: int,
    group: str = ALL,
) -> Difference:
    """The same for systems A and B of several seeds: the mean difference, resampled over utterances and seeds."""
    _check_same([system for pair in pairs for system in pair], group)
    sums = np.stack([first.of(group).errors - second.of(group).errors for first, second in pairs], axis=1)
    return mean_of(sums, pairs[0][0].of(group).units, samples, confidence, seed)


def mean_of(sums: np.ndarray, units: np.ndarray, samples: int, confidence: float, seed: int) -> Difference:
    """Mean over seeds of sums (U, n) by units (U,), and the ends of its interval."""
    rate = float(ratio_of_sums(sums.mean(axis=1).sum(keepdims=True), units.sum(keepdims=True).astype(np.float64))[0])
    if len(units) < 2:
        return rate, None, None
    means = resampled_means(
        sums[:, None, :].astype(np.float64), units[:, None].astype(np.float64), samples, confidence, seed
    )
    interval = percentile_interval(means[:, 0], confidence)
    return (rate, *interval) if interval else (rate, None, None)  # type: ignore[return-value]


def _check_same(systems: Sequence[UtteranceErrors], group: str) -> None:
    first = systems[0]
    for other in systems[1:]:
        same = first.utterance_ids == other.utterance_ids
        if not same or not np.array_equal(first.of(group).units, other.of(group).units):
            raise SpeechError(
                f"the systems were not measured on the same references: {len(first.utterance_ids)} utterances and "
                f"{int(first.words.sum())} words here, {len(other.utterance_ids)} and {int(other.words.sum())} there; "
                "count the errors of both with the same references"
            )
