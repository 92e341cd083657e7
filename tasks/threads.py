"""How many threads a command uses."""

import argparse
import os

from tasks.errors import ParameterError


def threads_of(arguments: argparse.Namespace, default: int = 1) -> int:
    """Threads to use: those of ``--threads``, or of the parameter file, or else ``default``.

    Raises ``ParameterError`` where the option is below 1.
    """
    if arguments.threads is not None:
        if arguments.threads < 1:
            raise ParameterError(f"--threads {arguments.threads!r} is not allowed; give 1 or more")
        return arguments.threads
    if arguments.params:
        from tasks.parameters.parameter_file import read_sections

        return read_sections(arguments.params, ["resources"])["resources"].threads
    return default


def available_cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
