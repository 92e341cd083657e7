"""Private names and functions of other packages may change in any version.

The product uses or replaces none but those below.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("dvc", "dvc_data", "prefect", "mlflow", "ray", "torchaudio")
MODULE = re.compile(rf"({'|'.join(PACKAGES)})(\.\w+)+")
"""Text that names a module of theirs."""
STANDARD = {"_exit"}
"""Documented names of Python itself that begin with an underscore."""
ALLOWED = {
    "flows/stages/lock_entry.py: dump_stages = ": "DVC writes the whole dvc.lock for each stage: 2.2 s more of "
    "processor time at 5,700 lines than one entry",
    "tasks/torch_setup.py: _extension": "a CPU build of PyTorch lacks a library that torchaudio loads on import",
}
"""Uses that remain, each with its reason; at most five."""


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def product() -> dict[str, str]:
    files = [
        CHECKOUT / "palimpsest.py",
        *(file for room in ("tasks", "flows", "dashboards") for file in (CHECKOUT / room).rglob("*.py")),
    ]
    return {file.relative_to(CHECKOUT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def defined(tree: ast.AST) -> Iterator[str]:
    """Private names that a module defines: functions, classes, variables, arguments and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            yield node.attr


def is_own(node: ast.expr) -> bool:
    """Whether it is the object or class of the method."""
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def uses(tree: ast.Module, own: set[str]) -> Iterator[str]:
    """Private names that a module uses of other packages."""
    foreign: set[str] = set()
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE.fullmatch(node.value):
            yield from filter(private, node.value.split("."))
        if isinstance(node, ast.Import):
            names = [(alias.name, alias.asname or alias.name.split(".")[0]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [(f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names]
        else:
            continue
        for path, bound in names:
            if path.split(".")[0] in PACKAGES:
                foreign.add(bound)
                yield from filter(private, path.split("."))
    own_functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    for node in nodes if foreign else ():
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Attribute):
            is_function = isinstance(node.value, ast.Lambda) or (
                isinstance(node.value, ast.Name) and node.value.id in own_functions
            )
            if is_function and not is_own(target.value):
                yield f"{target.attr} = "
    # Without an import, not even of a type, a module handles no object of these packages.
    for node in nodes if foreign else ():
        if isinstance(node, ast.Attribute) and private(node.attr) and node.attr not in STANDARD:
            root: ast.expr = node.value
            while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
                root = root.func if isinstance(root, ast.Call) else root.value
            is_foreign = isinstance(root, ast.Name) and root.id in foreign
            if not is_own(node.value) and (is_foreign or node.attr not in own):
                yield node.attr


def found(sources: dict[str, str]) -> set[str]:
    trees = {file: ast.parse(source) for file, source in sources.items()}
    own = {name for tree in trees.values() for name in defined(tree)}
    foreign = [file for file, source in sources.items() if any(package in source for package in PACKAGES)]
    return {f"{file}: {name}" for file in foreign for name in uses(trees[file], own)}


def test_the_product_uses_no_further_private_name_of_another_package() -> None:
    assert found(product()) == set(ALLOWED)
    assert len(ALLOWED) <= 5


def test_a_new_use_is_found() -> None:
    code = (
        "from dvc.stage import run\nfrom prefect._internal import x\nrun._run = 1\ndef f(client): client._store.rows\n"
        "run.cmd_run = f\n"
    )
    assert found({"a.py": code}) == {"a.py: _run", "a.py: _internal", "a.py: _store", "a.py: cmd_run = "}
