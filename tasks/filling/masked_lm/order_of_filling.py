"""In which order the slots of a sentence are filled, and so which fills a slot sees when it is filled.

- ``left_to_right`` (paper 3.2): one slot after the other, each seeing the fills before it and mask tokens behind it;
- ``all_at_once``: every slot sees mask tokens at all others, and one forward pass per sentence does;
- ``most_confident_first``: in each round the slot whose best allowed word has the highest probability among all words
  that the filler can write, of equal ones the first; the others are scored anew once it is filled.

Filling goes in rounds over many sentences. In each round an order asks for scores of some of the open slots of a
sentence, and settles some of these. A line that is longer than the model's positions would need thousands of rounds
where it has thousands of markers; in such a line slots that are at least ``reach`` pieces apart may be settled in the
same round, so the order holds among slots that are nearer to each other than that. Elsewhere ``reach`` is infinite.
What is surest is looked for in each window of such a line by itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, Literal, Protocol

from tasks.errors import ParameterError

OrderName = Literal["left_to_right", "all_at_once", "most_confident_first"]


class Order(Protocol):
    """One order; positions are those of the open slots in the pieces of their sentence, ascending."""

    needs_confidence: bool
    """Whether ``settled`` looks at confidences."""

    def asked(self, positions: Sequence[int], reach: float) -> list[int]:
        """Which slots, as ascending indices into ``positions``, are scored in this round; at least one."""
        ...

    def settled(
        self, positions: Sequence[int], confidences: Sequence[float], reach: float, taken: Sequence[int]
    ) -> list[int]:
        """Which of the scored slots that share a window, as indices into their ``positions``, are filled now.

        ``taken``: positions that an earlier window of the sentence had filled in this round. The first window of a
        sentence has at least one slot filled.
        """
        ...


class LeftToRight:
    """The first open slot, and in a long line each next one that is far enough from the one before it."""

    needs_confidence = False

    def asked(self, positions: Sequence[int], reach: float) -> list[int]:
        """The first, and those that are far enough from the one before them."""
        chosen = [0]
        while (following := bisect_left(positions, positions[chosen[-1]] + reach)) < len(positions):
            chosen.append(following)
        return chosen

    def settled(
        self, positions: Sequence[int], confidences: Sequence[float], reach: float, taken: Sequence[int]
    ) -> list[int]:
        """All that were asked for."""
        return list(range(len(positions)))


class AllAtOnce:
    """Every slot in the first round."""

    needs_confidence = False

    def asked(self, positions: Sequence[int], reach: float) -> list[int]:
        """All."""
        return list(range(len(positions)))

    def settled(
        self, positions: Sequence[int], confidences: Sequence[float], reach: float, taken: Sequence[int]
    ) -> list[int]:
        """All that were asked for."""
        return list(range(len(positions)))


class MostConfidentFirst:
    """The slot with the highest confidence, and in a long line each next best that is far enough from better ones."""

    needs_confidence = True

    def asked(self, positions: Sequence[int], reach: float) -> list[int]:
        """All."""
        return list(range(len(positions)))

    def settled(
        self, positions: Sequence[int], confidences: Sequence[float], reach: float, taken: Sequence[int]
    ) -> list[int]:
        """The best, and then the best of those that are far enough from it and from what is taken, and so on."""
        too_near = [False] * len(positions)

        def block(position: int) -> None:
            for index in range(bisect_right(positions, position - reach), bisect_left(positions, position + reach)):
                too_near[index] = True

        for position in taken:
            block(position)
        chosen = []
        for index in sorted(range(len(positions)), key=lambda index: (-confidences[index], index)):
            if not too_near[index]:
                chosen.append(index)
                block(positions[index])
        return chosen


def refuse_order(settings: Any, filler: str) -> None:
    """Raise ``ParameterError`` where a filler that writes from left to right is asked for another order."""
    order = getattr(settings, "order", "left_to_right")
    if order != "left_to_right":
        raise ParameterError(
            f"order {order!r} is for masked language models, and filler {filler!r} is a causal one; use 'left_to_right'"
        )


ORDERS: dict[OrderName, type[Order]] = {
    "left_to_right": LeftToRight,
    "all_at_once": AllAtOnce,
    "most_confident_first": MostConfidentFirst,
}
