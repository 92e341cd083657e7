"""How many threads a command uses, and whether it is one of several processes."""

import os

TORCHRUN_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
"""What torchrun, and this package where it starts the processes itself, tells each of them."""


def available_cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_first_process() -> bool:
    """Whether this process writes: it is alone, or the first of those that work together."""
    return any(name not in os.environ for name in TORCHRUN_VARIABLES) or os.environ["RANK"] == "0"
