"""The rooms of ``flows`` import only those below them, so that each can be read without the ones above."""

import ast
from pathlib import Path

import flows

ROOMS = ("checkout", "graph", "erasure", "stages", "runs", "sharing", "prefect_flow")
"""From the bottom to the top; the commands stand above all of them."""
FOLDER = Path(flows.__file__).parent


def imported(path: Path) -> set[str]:
    """Modules of ``flows`` that a file imports anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("flows.")}


def test_the_rooms_are_these() -> None:
    assert {path.parent.name for path in FOLDER.glob("*/__init__.py")} == set(ROOMS)


def test_rooms_import_only_what_is_below() -> None:
    seen = 0
    for place, room in enumerate(ROOMS):
        for path in (FOLDER / room).glob("*.py"):
            rooms = {name.split(".")[1] for name in imported(path)}
            assert rooms <= set(ROOMS[: place + 1]), path.name
            seen += len(rooms)
    assert seen > 0


def test_what_the_supervisor_loads_imports_nothing_of_ours() -> None:
    for name in ("supervisor", "single_lock_entry", "verified_restore", "whole_files"):
        assert not imported(FOLDER / "stages" / f"{name}.py")
