"""Differences of a cell from its references, with paired intervals: ratios of perplexities to Oracle and Baseline1, and
differences of word error rates to the recogniser alone, the pretrained model and Oracle.

A cell is compared with the reference of its own seed by a paired bootstrap over test sentences (or utterances). If a
condition has several seeds, a comparison over all of them resamples sentences and seeds: another seed would give other
models.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.language_model.settings import EvaluationSettings
from tasks.records.cell import Cell
from tasks.records.cells import NO_LANGUAGE_MODEL, ORACLE, PRETRAINED, is_filled, score_file, word_error_file

BASELINE1 = "baseline1"
_GROUPS = {"": "all", "_known": "known", "_masked_known": "masked_known:{}", "_rest_known": "rest_known:{}"}
"""Groups of targets (``SentenceScores.of``) by the ending of the columns."""

_Pair = tuple[Cell, Cell]
_Interval = tuple[float, float | None, float | None]
"""A number and the ends of its interval."""


class Comparisons:
    """Compares the cells of an experiment by the scores of sentences, and recognised cells by the errors of
    utterances."""

    def __init__(
        self,
        rows: Mapping[Cell, Mapping[str, Any]],
        recognised: Sequence[Cell],
        folder: Path,
        evaluation: EvaluationSettings,
    ) -> None:
        """``rows``: the measurements of each cell; ``folder``: that of scores and errors."""
        self._rows, self._folder = rows, folder
        self._resampling = evaluation.bootstrap_samples, evaluation.confidence, evaluation.seed
        self._errors = {}
        if recognised:
            from tasks.speech.word_errors.word_errors import read_errors

            self._errors = {cell: read_errors(folder / word_error_file(cell)) for cell in recognised}

    def columns(self, cell: Cell) -> dict[str, Any]:
        """Ratios to Oracle and Baseline1, the share of the gap, and ``wer_difference_to_...``, with intervals.

        A difference of rates is a share: -0.02 is two points fewer. A cell that was not recognised has nulls.
        """
        return self._columns(cell, [cell], self._pairs(cell, self._oracle, [cell]))

    def columns_over_seeds(self, cell: Cell) -> dict[str, Any] | None:
        """The same over all seeds of the cell's condition, and mean word error rates with intervals.

        ``None`` if there is only one pair of models.
        """
        mine = [other for other in self._rows if replace(other, seed=None) == replace(cell, seed=None)]
        to_oracle = self._pairs(cell, self._oracle, mine)
        if cell.method == PRETRAINED:
            to_oracle = [(cell, other) for other in self._oracles(cell) if self._comparable(cell, other)]
        if max(len(mine), len(to_oracle)) < 2:
            return None
        rates = self._rates_over_seeds(cell, mine) if len(mine) > 1 and cell in self._errors else {}
        return {"seeds": [other.seed for other in mine], **self._columns(cell, mine, to_oracle), **rates}

    def _columns(self, cell: Cell, mine: Sequence[Cell], to_oracle: Sequence[_Pair]) -> dict[str, Any]:
        found = {
            **self._ratios("oracle", to_oracle),
            **self._ratios(BASELINE1, self._pairs(cell, self._baseline, mine)),
            **self._gap(mine),
        }
        for name in (NO_LANGUAGE_MODEL, PRETRAINED, ORACLE):
            pairs = self._recognised_pairs(cell, mine, name)
            found |= _named(f"wer_difference_to_{name}", self._difference(pairs) if pairs else None)
        return found

    def _comparable(self, first: Cell, second: Cell) -> bool:
        """Whether two cells follow the same protocol."""
        return bool(self._rows[first]["signature"] == self._rows[second]["signature"])

    def _oracles(self, cell: Cell) -> list[Cell]:
        return [other for other in self._rows if (other.dataset, other.method) == (cell.dataset, ORACLE)]

    def _oracle(self, cell: Cell) -> Cell | None:
        """The Oracle of the same seed; for the pretrained model, which has no seed, the first one."""
        oracles = self._oracles(cell)
        if cell.method == PRETRAINED:
            return oracles[0] if oracles else None
        return next((oracle for oracle in oracles if oracle.seed == cell.seed), None)

    def _baseline(self, cell: Cell) -> Cell | None:
        found = replace(cell, method=BASELINE1, filler=None)
        return found if cell.technique and found in self._rows else None

    def _pairs(self, cell: Cell, reference: Callable[[Cell], Cell | None], cells: Sequence[Cell]) -> list[_Pair]:
        """Each cell with its reference; empty if one has none, is the reference, or follows another protocol."""
        pairs = [(other, reference(other)) for other in cells if other.method != NO_LANGUAGE_MODEL]
        found = [(a, b) for a, b in pairs if b is not None and b != a and self._comparable(a, b)]
        return found if len(found) == len(pairs) else []

    def _ratios(self, name: str, pairs: Sequence[_Pair]) -> dict[str, Any]:
        from tasks.language_model.evaluation.bootstrap import paired_ratios

        apart = bool(pairs) and all(first.technique in self._rows[first]["masked_words"] for first, _ in pairs)
        endings = [ending for ending, group in _GROUPS.items() if pairs and ("{}" not in group or apart)]
        groups = [_GROUPS[ending].format(pairs[0][0].technique) for ending in endings]
        found = paired_ratios(self._files(pairs), groups, *self._resampling) if groups else []
        by_ending = dict(zip(endings, found, strict=True))
        columns: dict[str, Any] = {}
        for ending in _GROUPS:
            columns |= _named(f"ratio_to_{name}{ending}", by_ending.get(ending))
        return columns

    def _gap(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """The share of the gap between Baseline1 and Oracle that fills close, over known words."""
        from tasks.language_model.evaluation.bootstrap import gap_closed

        filled = [cell for cell in cells if is_filled(cell)]
        above, below = ([(cell, one_of(cell)) for cell in filled] for one_of in (self._baseline, self._oracle))
        if not filled or not all(other and self._comparable(cell, other) for cell, other in (*above, *below)):
            return _named("gap_closed_known", None)
        between = self._files([(other, cell) for cell, other in above if other])
        whole = self._files([(a, b) for (_, a), (_, b) in zip(above, below, strict=True) if a and b])
        return _named("gap_closed_known", gap_closed(between, whole, "known", *self._resampling))

    def _files(self, pairs: Sequence[_Pair]) -> list[tuple[Path, Path]]:
        return [(self._folder / score_file(first), self._folder / score_file(second)) for first, second in pairs]

    def _recognised_pairs(self, cell: Cell, cells: Sequence[Cell], reference: str) -> list[_Pair]:
        """Each cell with the reference of its seed, or with the only one; empty for the reference itself."""
        if cell.method == reference or cell not in self._errors:
            return []
        others = [other for other in self._errors if (other.dataset, other.method) == (cell.dataset, reference)]
        if cell.seed is None:
            return [(cell, other) for other in others]
        by_seed = {other.seed: other for other in others}
        pairs = [(mine, by_seed.get(mine.seed) or by_seed.get(None)) for mine in cells]
        return [(first, second) for first, second in pairs if second is not None]

    def _difference(self, pairs: Sequence[_Pair]) -> _Interval:
        from tasks.speech.word_errors.word_errors import paired_difference_over_seeds

        read = [(self._errors[first], self._errors[second]) for first, second in pairs]
        return paired_difference_over_seeds(read, *self._resampling)

    def _rates_over_seeds(self, cell: Cell, cells: Sequence[Cell]) -> dict[str, Any]:
        """The mean rate, and that on the words that the cell's technique masks if all seeds have it."""
        from tasks.speech.word_errors.word_errors import MASKED, mean_over_seeds

        group, errors = f"{MASKED}:{cell.technique}", [self._errors[other] for other in cells]
        found = _named("wer", mean_over_seeds(errors, *self._resampling))
        if all(group in each.groups and each.of(group).units.sum() for each in errors):
            found |= _named("wer_masked", mean_over_seeds(errors, *self._resampling, group))
        return found


def _named(name: str, ratio: _Interval | None) -> dict[str, Any]:
    """A number and its interval as two columns; null if undefined or infinite."""
    if ratio is None or not all(value is None or math.isfinite(value) for value in ratio):
        return {name: None, f"{name}_ci": None}
    value, low, high = ratio
    return {name: value, f"{name}_ci": None if low is None or high is None else [low, high]}
