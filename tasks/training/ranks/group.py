"""How the processes of one training agree: sums, decisions and copies, over the network.

Every function is called by all ranks at the same point. With one process nothing is sent. The group talks over gloo,
from the processors' memory, so that asking the others never waits for a GPU's queue.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as distributed
from torch import Tensor

from tasks.training.ranks.plan import RankPlan
from tasks.training.ranks.processes import LostRankError

Plain = TypeVar("Plain")


class RankGroup:
    """The ranks of a plan; ``connect`` once Lightning has brought them together."""

    def __init__(self, plan: RankPlan):
        self.plan = plan
        self._group: distributed.ProcessGroup | None = None

    def connect(self) -> None:
        """Open the group's own channel."""
        if self.plan.world_size > 1:
            self._group = distributed.new_group(backend="gloo")

    def sums(self, values: Sequence[float]) -> list[float]:
        """The sum over ranks of each value, in float64."""
        return self._reduced(values, distributed.ReduceOp.SUM)

    def largest(self, values: Sequence[float]) -> list[float]:
        """The largest of each value over ranks: with 0 and 1, whether any rank says so."""
        return self._reduced(values, distributed.ReduceOp.MAX)

    def _reduced(self, values: Sequence[float], operation: distributed.ReduceOp.RedOpType) -> list[float]:
        if self._group is None:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)
        distributed.all_reduce(tensor, operation, group=self._group)
        return tensor.tolist()

    def from_first(self, value: Plain) -> Plain:
        """What the first rank has, on all ranks."""
        if self._group is None:
            return value
        box = [value]
        distributed.broadcast_object_list(box, src=0, group=self._group)
        return box[0]

    def tensors_from_first(self, tensors: dict[str, Tensor] | None) -> dict[str, Tensor]:
        """The first rank's tensors, on all ranks; the others give ``None``."""
        if self._group is None:
            return tensors or {}
        shapes = self.from_first({name: (value.shape, value.dtype) for name, value in (tensors or {}).items()})
        received = {}
        for name, (shape, kind) in shapes.items():
            value = tensors[name].contiguous() if tensors else torch.empty(shape, dtype=kind)
            if value.numel():
                distributed.broadcast(value, src=0, group=self._group)
            received[name] = value
        return received

    def gathered(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all ranks, of one shape, in the order of ranks."""
        if self._group is None:
            return [tensor]
        all_of_them = [torch.empty_like(tensor) for _ in range(self.plan.world_size)]
        distributed.all_gather(all_of_them, tensor, group=self._group)
        return all_of_them


@contextmanager
def lost_ranks_named(plan: RankPlan) -> Iterator[None]:
    """Turn what the network says when a process has gone into a ``LostRankError``."""
    try:
        yield
    except (RuntimeError, ConnectionError) as error:
        if plan.world_size == 1 or not _is_of_the_network(error):
            raise
        raise LostRankError(
            f"rank {plan.rank} of {plan.world_size} lost the connection to another one, which has ended; its message "
            "says why, and the same command goes on from the last checkpoint"
        ) from None


def _is_of_the_network(error: BaseException) -> bool:
    if isinstance(error, distributed.DistError | ConnectionError):
        return True
    text = str(error)
    return any(word in text for word in ("gloo", "Gloo", "NCCL", "Connection closed", "Connection reset", "TCPStore"))
