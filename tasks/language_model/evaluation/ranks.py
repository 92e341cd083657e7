"""Processes that score one text together: those that torchrun has started."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.training.ranks.plan import RankPlan


@contextmanager
def ranks_of_torchrun(threads: int) -> "Iterator[RankPlan]":
    """Join the other processes for the block, where torchrun started this one; yields who takes part.

    The first alone reports and prints. Sums over the processes go through gloo, on a GPU too: they are small. Raises
    ``ParameterError`` where torchrun's variables make no sense.
    """
    from tasks.training.ranks.plan import plan_ranks

    plan = plan_ranks(1, 1, "auto", threads)
    if plan.world_size == 1:
        yield plan
        return
    from torch import distributed

    distributed.init_process_group("gloo")
    try:
        yield plan
    finally:
        distributed.destroy_process_group()
