"""Number of threads of a command, and detection of one of several processes."""

import os

TORCHRUN_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
"""Environment variables that torchrun, or this package when it starts the processes itself, sets for each of them."""


def available_cores() -> int:
    """The number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_first_process() -> bool:
    """Whether this process writes: it is the only one, or the first of a group."""
    return any(name not in os.environ for name in TORCHRUN_VARIABLES) or os.environ["RANK"] == "0"
