"""How many stages each step of the graph has, from ``dvc.yaml`` and the parameters; DVC itself is not asked.

DVC reads its own ``params.yaml``, and a profile that is only looked at has none yet. A step has as many stages as the
product of the lists under its ``matrix``, or as its ``foreach`` has entries.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tasks.errors import StageError
from tasks.parameters.parameter_file import Parameters
from tasks.settings.checks import as_plain

GRAPH = "dvc.yaml"


def stage_cells(parameters: Parameters, root: Path) -> dict[str, list[dict[str, Any]]]:
    """For each step, in the order of the graph, the item of each of its stages; a single stage has an empty one.

    Raises ``StageError`` where ``dvc.yaml`` is missing or holds what this does not know.
    """
    path = root / GRAPH
    try:
        steps = yaml.safe_load(path.read_text(encoding="utf-8"))["stages"]
    except (OSError, KeyError, TypeError, yaml.YAMLError):
        raise StageError(f"{str(path)!r} cannot be read as a graph of stages; run in the project's folder") from None
    tree = as_plain(parameters)
    return {name: list(_items(step, tree, name)) for name, step in steps.items()}


def _items(step: dict[str, Any], tree: Any, name: str) -> Iterator[dict[str, Any]]:
    if "matrix" in step:
        lists = {key: _resolve(value, tree, name) for key, value in step["matrix"].items()}
        sizes = [len(values) for values in lists.values()]
        for number in range(math.prod(sizes)):
            item = {}
            for key, values in reversed(lists.items()):
                number, index = divmod(number, len(values))
                item[key] = list(values)[index]
            yield item
    elif "foreach" in step:
        for key in _resolve(step["foreach"], tree, name):
            yield {"key": key}
    else:
        yield {}


def _resolve(value: Any, tree: Any, name: str) -> Any:
    if isinstance(value, list | dict):
        return value
    try:
        for key in str(value).removeprefix("${").removesuffix("}").split("."):
            tree = tree[key]
    except (KeyError, TypeError):
        raise StageError(
            f"{GRAPH}: the stage {name!r} is built from {value!r}, which the parameters have not"
        ) from None
    return tree
