"""Going on with smaller batches where a GPU runs out of memory.

The batch that did not fit is halved until its parts do, and later batches of that size are divided before they are
tried. Results are those of the whole batch but for the rounding of sums, which on a GPU depends on a batch's size.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from tasks.errors import ResourceError

Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchHalving:
    """Remembers what fits; one per model."""

    def __init__(self, name: str) -> None:
        """``name`` of the model, for the message where a batch of one does not fit."""
        self._name = name
        self._most: int | None = None
        self.counts: Counter[str] = Counter(halved_batches=0)
        """``halved_batches``: how often memory ran out and a batch was halved."""

    def run(
        self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result], cells: Callable[[Sequence[Item]], int]
    ) -> list[Result]:
        """The results of ``work`` on all items together, or on parts of them, in order.

        ``cells`` says how large a batch is (pieces with padding, for example). Raises ``ResourceError`` where one item
        alone does not fit.
        """
        import torch

        if len(items) == 1 or self._most is None or cells(items) <= self._most:
            try:
                return [work(items)]
            except torch.cuda.OutOfMemoryError:
                # Not handled in here: the error holds on to the memory of the frames it came through.
                pass
            torch.cuda.empty_cache()
            if len(items) == 1:
                raise ResourceError(
                    f"model {self._name!r}: the GPU has too little memory for a single sentence of {cells(items)} "
                    "pieces; free memory on it, or take a smaller model"
                )
            self.counts["halved_batches"] += 1
            self._most = max(1, cells(items) // 2)
        half = (len(items) + 1) // 2
        return [*self.run(items[:half], work, cells), *self.run(items[half:], work, cells)]
