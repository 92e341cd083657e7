"""Options that the commands which train have in common."""

import argparse
from typing import TYPE_CHECKING

from tasks.threads import available_cores, threads_of
from tasks.training.checkpoints import DEFAULT_WORK_FOLDER

if TYPE_CHECKING:
    from tasks.settings.resources import ResourceSettings

TRAINING_PATHS = ("text", "valid", "resume_from")
"""Options of ``add_training_options`` that name files to read."""
_RESOURCES = ("devices", "nodes", "strategy", "compile", "checkpoint_seconds", "checkpoint_steps")


def add_training_options(parser: argparse.ArgumentParser) -> None:
    """What ``pretrain``, ``adapt`` and ``train-recogniser`` take."""
    parser.add_argument("--params", help="parameter file to take the settings from, such as params.yaml")
    parser.add_argument("--text", required=True, help="text to train on, one sentence a line")
    parser.add_argument(
        "--valid",
        help="plain text to measure progress on; a result depends on it with patience, and in an n-gram model's weight",
    )
    parser.add_argument("--output", required=True, help="model folder to write; an earlier model there is replaced")
    parser.add_argument("--report", help="report file to write (JSON)")
    parser.add_argument("--threads", type=int, help="processor threads (default: of the parameter file, or all cores)")
    group = parser.add_argument_group(
        "resources", "how a Transformer is trained: no meaning of a result depends on them; defaults as in params.yaml"
    )
    group.add_argument("--devices", type=int, help="GPUs of this machine, or processes without one (default: 1)")
    group.add_argument("--nodes", type=int, help="machines; torchrun starts the command on each (default: 1)")
    group.add_argument(
        "--strategy",
        choices=("auto", "ddp", "fsdp"),
        help="what several devices have: the whole model each (ddp), or parts of it (fsdp) (default: auto: ddp)",
    )
    group.add_argument(
        "--compile",
        action=argparse.BooleanOptionalAction,
        help="compile the model first, which takes a minute or two (default: no)",
    )
    group.add_argument(
        "--checkpoint-seconds", type=float, help="time between two checkpoints; 0: none by time (default: 600)"
    )
    group.add_argument(
        "--checkpoint-steps", type=int, help="optimiser steps between two checkpoints; 0: none by steps (default: 0)"
    )
    group.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="go on from the last checkpoint of an interrupted run of the same work (default), or start anew",
    )
    group.add_argument("--resume-from", metavar="FILE", help="go on from this checkpoint (its .json)")
    group.add_argument(
        "--work-folder",
        metavar="FOLDER",
        help=f"where checkpoints lie until the model is complete; private (default: {DEFAULT_WORK_FOLDER})",
    )


def resources_of(arguments: argparse.Namespace) -> "ResourceSettings":
    """What training may use: the options over the parameter file's section ``resources``, or over the defaults.

    Raises ``ParameterError`` where a value is not allowed.
    """
    from tasks.parameters.parameter_file import read_sections
    from tasks.settings.checks import check_settings
    from tasks.settings.resources import ResourceSettings

    values = {"parallel_stages": 1}
    if arguments.params:
        values = read_sections(arguments.params, ["resources"])["resources"].model_dump()
    given = {name: getattr(arguments, name) for name in _RESOURCES if getattr(arguments, name) is not None}
    threads = threads_of(arguments, available_cores())
    return check_settings(ResourceSettings, {**values, **given, "threads": threads}, "resource options")
