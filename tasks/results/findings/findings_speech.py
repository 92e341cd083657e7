"""Word error rates in the shape of the paper's Table 6, and where adaptation moves nothing, what speaks for it.

Rates and differences are shares. Intervals are those of the summary: over utterances, and with several seeds over
utterances and seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.records.cells import NO_LANGUAGE_MODEL, ORACLE, PRETRAINED
from tasks.results.measure import Row
from tasks.results.summary.estimate import estimate, mean, over_seeds
from tasks.results.tables import Line, Table, tables

REFERENCES = (NO_LANGUAGE_MODEL, PRETRAINED, ORACLE)


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate or a difference of rates, with its interval where there is one."""

    value: float
    low: float | None
    high: float | None

    @property
    def undecided(self) -> bool | None:
        """Of a difference, whether its interval holds 0; ``None`` without an interval."""
        return None if self.low is None or self.high is None else self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class System:
    """The recogniser with one language model."""

    label: str
    technique: str | None
    """``None`` for the references, which are the same under every technique."""
    seeds: int
    wer: Rate
    wer_masked: dict[str, Rate | None]
    """By technique, on the words that it would mask: of its own alone, of references under each."""
    differences: dict[str, Rate | None]
    """To the recogniser alone, to the one with the pretrained model and to Oracle."""
    difference_to_insertion_bonus_alone: Rate | None
    """Of lists: to an insertion bonus without a language model; several seeds have no interval together."""
    lm_weight: float | None
    """Chosen on dev; the mean over seeds, as with the two others."""
    insertion_bonus: float | None
    source_weight: float | None
    """Of the source model that is subtracted (LODR, density ratio); ``None``: there is none."""


@dataclass(frozen=True, slots=True)
class Room:
    """What can be won by choosing among n-best lists."""

    insertion_bonus_alone: Rate
    """The rate with an insertion bonus tuned on dev, and no language model."""
    best_of_lists: float
    """The rate where the best hypothesis of every list is chosen."""
    best_first_share: float
    """Share of the lists whose first hypothesis is as good as any."""


@dataclass(frozen=True, slots=True)
class SpokenDataset:
    """Word error rates of one data set."""

    dataset: str
    kind: str
    """``recorded speech`` or ``synthetic speech``."""
    techniques: tuple[str, ...]
    utterances: int
    words: int
    systems: tuple[System, ...]
    room: Room | None
    """``None`` where the language models join the beam: there are no lists."""

    @property
    def oracle(self) -> System | None:
        """The model adapted on the unmasked text: no other adaptation can be expected to move more."""
        return next((system for system in self.systems if system.label == "Oracle"), None)

    @property
    def adaptation_moves(self) -> bool | None:
        """Whether Oracle differs from the pretrained model by an interval without 0; ``None`` where none is known."""
        difference = self.oracle.differences[PRETRAINED] if self.oracle else None
        return None if difference is None or difference.undecided is None else not difference.undecided


def spoken_datasets(rows: Sequence[Row]) -> list[SpokenDataset]:
    """What a summary says of each data set that has word error rates."""
    return [found for table in tables(rows) if (found := _spoken(table)) is not None]


def _spoken(table: Table) -> SpokenDataset | None:
    alone = table.recogniser_alone
    if alone is None or not table.techniques:
        return None
    first = alone.by_technique[table.techniques[0]][0]
    if first.get("wer") is None:
        return None
    systems = []
    for line in (alone, *table.lines):
        own = [name for name in table.techniques if line.by_technique[name] and _is_of(line, name)]
        if own:
            systems += [_system(line, [name], name) for name in own]
        else:
            systems.append(_system(line, table.techniques, None))
    return SpokenDataset(
        table.dataset,
        table.kind_of_speech,
        tuple(table.techniques),
        first["utterances"],
        first["reference_words"],
        tuple(system for system in systems if system is not None),
        _room(first),
    )


def _is_of(line: Line, technique: str) -> bool:
    return line.by_technique[technique][0]["technique"] == technique


def _system(line: Line, techniques: Sequence[str], technique: str | None) -> System | None:
    rows = line.by_technique[techniques[0]]
    wer = rate_of(rows, "wer")
    if wer is None:
        return None
    return System(
        label=line.label,
        technique=technique,
        seeds=len(rows),
        wer=wer,
        wer_masked={name: rate_of(line.by_technique[name], "wer_masked") for name in techniques},
        differences={name: rate_of(rows, f"wer_difference_to_{name}") for name in REFERENCES},
        difference_to_insertion_bonus_alone=rate_of(rows, "wer_difference_to_insertion_bonus_alone"),
        lm_weight=mean(rows, "lm_weight"),
        insertion_bonus=mean(rows, "insertion_bonus"),
        source_weight=mean(rows, "source_weight"),
    )


def _room(row: Row) -> Room | None:
    if row.get("wer_best_of_lists") is None:
        return None
    bonus = rate_of([row], "wer_insertion_bonus_alone")
    return None if bonus is None else Room(bonus, row["wer_best_of_lists"], row["best_first_share"])


def rate_of(rows: Sequence[Row], field: str) -> Rate | None:
    """A rate, or a difference of rates, over the rows of one condition; ``None`` where a row has none."""
    if not rows or any(row.get(field) is None for row in rows):
        return None
    found = estimate(rows, field)
    if found is None:
        return None
    # Of several seeds the summary has intervals over utterances and seeds, or none: their range is no interval.
    together = len(rows) == 1 or over_seeds(rows, field) is not None
    return Rate(found.value, found.low, found.high) if together else Rate(found.value, None, None)
