"""Differences of word error rates: a cell against the recogniser alone, the pretrained model and Oracle.

Paired over utterances, and over several seeds over utterances and seeds, as with perplexities (``comparisons``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.language_model.settings import EvaluationSettings
from tasks.records.cell import Cell
from tasks.records.cells import NO_LANGUAGE_MODEL, ORACLE, PRETRAINED, word_error_file

if TYPE_CHECKING:
    from tasks.speech.word_errors.word_errors import UtteranceErrors

REFERENCES = (NO_LANGUAGE_MODEL, PRETRAINED, ORACLE)
_Pair = tuple[Cell, Cell]


class WordErrorComparisons:
    """Compares the cells of data sets with speech by the errors of utterances."""

    def __init__(self, cells: Sequence[Cell], folder: Path, evaluation: EvaluationSettings) -> None:
        """``cells``: those that were recognised; all others have nulls. ``folder``: what recognition wrote."""
        self._cells, self._folder, self._evaluation = list(cells), folder, evaluation

    def columns(self, cell: Cell) -> dict[str, Any]:
        """``wer_difference_to_...`` of each reference with its interval, a share: -0.02 is two points fewer."""
        return self._columns(cell, [cell])

    def columns_over_seeds(self, cell: Cell) -> dict[str, Any]:
        """The same over all seeds of the cell's condition, and the mean rates' intervals over utterances and seeds."""
        from tasks.speech.word_errors.word_errors import mean_over_seeds

        mine = [other for other in self._cells if replace(other, seed=None) == replace(cell, seed=None)]
        columns = self._columns(cell, mine)
        if len(mine) > 1:
            mean, low, high = mean_over_seeds([self._errors[other] for other in mine], *self._resampling())
            columns |= {"wer": mean, "wer_ci": None if low is None else [low, high]}
            columns |= self._masked_over_seeds(cell, mine)
        return columns

    def _masked_over_seeds(self, cell: Cell, cells: Sequence[Cell]) -> dict[str, Any]:
        """The mean rate on the words that the cell's technique masks; nothing where they are not told apart."""
        from tasks.speech.word_errors.word_errors import MASKED, mean_over_seeds

        group = f"{MASKED}:{cell.technique}"
        errors = [self._errors[other] for other in cells]
        if not all(group in each.groups and each.of(group).units.sum() for each in errors):
            return {}
        mean, low, high = mean_over_seeds(errors, *self._resampling(), group)
        return {"wer_masked": mean, "wer_masked_ci": None if low is None else [low, high]}

    def _columns(self, cell: Cell, cells: Sequence[Cell]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in REFERENCES:
            pairs = self._pairs(cell, cells, name)
            difference = self._difference(pairs) if pairs else None
            column = f"wer_difference_to_{name}"
            found[column] = difference[0] if difference else None
            ends = difference is not None and difference[1] is not None
            found[f"{column}_ci"] = list(difference[1:]) if difference and ends else None
        return found

    def _pairs(self, cell: Cell, cells: Sequence[Cell], reference: str) -> list[_Pair]:
        """Each cell with the reference of its seed, or with the only one there is; empty for the reference itself."""
        if cell.method == reference or cell not in self._errors:
            return []
        others = [other for other in self._cells if (other.dataset, other.method) == (cell.dataset, reference)]
        if cell.seed is None:
            return [(cell, other) for other in others]
        by_seed = {other.seed: other for other in others}
        pairs = [(mine, by_seed.get(mine.seed) or by_seed.get(None)) for mine in cells]
        return [(first, second) for first, second in pairs if second is not None]

    def _difference(self, pairs: Sequence[_Pair]) -> tuple[float, float | None, float | None]:
        from tasks.speech.word_errors.word_errors import paired_difference_over_seeds

        read = [(self._errors[first], self._errors[second]) for first, second in pairs]
        return paired_difference_over_seeds(read, *self._resampling())

    def _resampling(self) -> tuple[int, float, int]:
        return self._evaluation.bootstrap_samples, self._evaluation.confidence, self._evaluation.seed

    @cached_property
    def _errors(self) -> Mapping[Cell, "UtteranceErrors"]:
        if not self._cells:
            return {}
        from tasks.speech.word_errors.error_counts_file import read_errors

        return {cell: read_errors(self._folder / word_error_file(cell))[0] for cell in self._cells}
