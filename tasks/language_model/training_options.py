"""Options that the commands of the language model share."""

import argparse
import os

from tasks.errors import ParameterError


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """The options that ``pretrain`` and ``adapt`` have in common."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    parser.add_argument("--text", required=True, help="text to train on, one sentence a line, or - for standard input")
    parser.add_argument("--valid", help="plain text to measure progress on after each epoch; no result depends on it")
    parser.add_argument("--output", required=True, help="model folder to write; an earlier model there is replaced")
    parser.add_argument("--report", help="report file to write (JSON)")
    parser.add_argument("--threads", type=int, help="processor threads (default: of the parameter file, or all cores)")


def threads_of(arguments: argparse.Namespace) -> int:
    """Threads to use: the option, the parameter file's, or one for each core that this process may use.

    Raises ``ParameterError`` where the option is below 1.
    """
    if arguments.threads is not None:
        if arguments.threads < 1:
            raise ParameterError(f"--threads is {arguments.threads!r}; give 1 or more")
        return arguments.threads
    if arguments.params:
        from tasks.params import read_sections

        return read_sections(arguments.params, ["resources"])["resources"].threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
