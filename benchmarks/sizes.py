"""How large the house is: lines, modules and options of the product, lines of the graph, lines and cases of the tests.

    python -m benchmarks.sizes [--cases]

``--cases`` collects the tests too, which takes half a minute.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("tasks", "flows", "dashboards")


def modules(*folders: str) -> dict[Path, int]:
    """Lines of each Python file that git tracks below the folders."""
    listed = subprocess.run(
        ["git", "ls-files", *(f"{folder}/*.py" for folder in folders)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    return {path: len(path.read_text(encoding="utf-8").splitlines()) for path in paths if path.exists()}


def options() -> dict[str, tuple[int, int]]:
    """For each command the options of its own, and those that stages have in common, the cell's included."""
    from tasks.cli import COMMANDS, command_parser, load_command, plugin_commands
    from tasks.command import StageCommand
    from tasks.records.cell import Cell

    of_stages = {"params", "name", "overrides", "threads", "report", "cell", *Cell.__dataclass_fields__}

    counts = {}
    for name in (*COMMANDS, *plugin_commands()):
        module = load_command(name)
        assert module is not None
        actions = [action for action in command_parser(name, module)._actions if action.dest != "help"]
        common = of_stages if isinstance(module.COMMAND, StageCommand) else set()
        shared = sum(action.dest in common for action in actions)
        counts[name] = (len(actions) - shared, shared)
    return counts


def main() -> None:
    """Print the sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", action="store_true", help="collect the tests and count their cases")
    asked = parser.parse_args()
    for folder in PRODUCT:
        sizes = modules(folder)
        print(f"{folder:<12}{sum(sizes.values()):>8,} lines in {len(sizes):>4} modules")
    sizes = modules(*PRODUCT)
    largest = max(sizes, key=lambda path: sizes[path])
    filled = [lines for path, lines in sizes.items() if path.name != "__init__.py"]
    print(
        f"{'product':<12}{sum(sizes.values()):>8,} lines in {len(sizes):>4} modules; median "
        f"{statistics.median(filled):.0f} without __init__.py, {statistics.median(sizes.values()):.0f} with; largest "
        f"{largest.relative_to(ROOT)} with {sizes[largest]}"
    )
    counts = options()
    own, common = (sum(pair[index] for pair in counts.values()) for index in (0, 1))
    stages = sum(pair[1] > 0 for pair in counts.values())
    print(f"{'options':<12}{own:>8} of {len(counts)} commands, and {common} that {stages} stages have in common")
    for file in ("dvc.yaml", "cells.yaml", "params.yaml"):
        print(f"{file:<12}{len((ROOT / file).read_text(encoding='utf-8').splitlines()):>8} lines")
    sizes = modules("tests")
    print(f"{'tests':<12}{sum(sizes.values()):>8,} lines in {len(sizes):>4} files")
    if asked.cases:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider"]
        collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
        print(f"{'':<12}{collected.strip().splitlines()[-1]}")


if __name__ == "__main__":
    main()
