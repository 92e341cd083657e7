"""Prints lines and modules of product, benchmarks and tests, options of commands, and lines of the graph."""

import statistics
import subprocess
from pathlib import Path

from benchmarks.frame import ROOT
from tasks.cli import COMMANDS, command_parser, load_command, plugin_commands

PRODUCT = ("tasks", "flows", "dashboards")


def modules(*folders: str) -> dict[Path, int]:
    """Lines of each Python file that git tracks below the folders."""
    command = ["git", "ls-files", *(f"{folder}/*.py" for folder in folders)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [path for line in listed.splitlines() if (path := ROOT / line).exists()]
    return {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def options() -> dict[str, int]:
    """Options of each command; those that all stages share are in each."""
    modules = {name: load_command(name) for name in (*COMMANDS, *plugin_commands())}
    parsers = {name: command_parser(name, module) for name, module in modules.items() if module}
    return {name: sum(action.dest != "help" for action in each._actions) for name, each in parsers.items()}


def main() -> None:
    for folders in (*((folder,) for folder in PRODUCT), PRODUCT, ("benchmarks",), ("tests",)):
        sizes = modules(*folders)
        print(f"{'+'.join(folders):<24}{sum(sizes.values()):>8,} lines in {len(sizes):>4} modules", end="; ")
        print(f"median {statistics.median(sizes.values()):.0f}, largest {max(sizes.values())}")
    counts = options()
    print(f"{'options':<24}{sum(counts.values()):>8,} of {len(counts)} commands")
    for file in ("dvc.yaml", "cells.yaml", "params.yaml"):
        print(f"{file:<24}{len((ROOT / file).read_text(encoding='utf-8').splitlines()):>8,} lines")


if __name__ == "__main__":
    main()
