"""Sources of data in ``params.yaml``: refusal of private ones that ``dvc push`` would send, and detection of changed
ones.

A source is private if a stage that reads its section of ``params.yaml`` has an output with ``push: false`` in
``dvc.yaml``.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from flows.graph.changes import Kind
from tasks.errors import ParameterError
from tasks.privacy.tracked_sources import sent_by_push

if TYPE_CHECKING:
    from dvc.stage import Stage

    from flows.graph.plan import Plan

SOURCE = "source"
"""Name of the setting that names a file or folder of data, anywhere in ``params.yaml``."""


def named_sources(root: Path) -> list[tuple[tuple[str, ...], str]]:
    """Every source in ``params.yaml``, with the keys that lead to it; empty without the file."""
    return list(sources_below(_parameters(root)))


def _parameters(root: Path) -> object:
    # Not by ``tasks.parameters``: it imports the settings of every step, which takes too long for a plan.
    file = root / "params.yaml"
    if not file.exists():
        return None
    return yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def sources_below(value: object, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every source in a part of ``params.yaml``, with the keys that lead to it."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key == SOURCE and isinstance(part, str):
                yield above, part
            else:
                yield from sources_below(part, (*above, str(key)))
    elif isinstance(value, list):
        for part in value:
            yield from sources_below(part, above)


def refuse_pushed_sources(stages: "Iterable[Stage]", root: Path) -> None:
    """Raise ``ParameterError`` if DVC tracks a private source of these DVC stages without ``push: false``.

    An untracked source is allowed: it never gets into the cache, so no push sends it.
    """
    for source in dict.fromkeys(_private_sources(stages, _parameters(root))):
        sent = sent_by_push(source, root)
        if sent is not None:
            raise ParameterError(
                f"{source!r} is private text, and 'dvc push' would send {sent!r}: its .dvc file has no 'push: false'; "
                f"'palimpsest add {sent}' puts it there"
            )


def _private_sources(stages: "Iterable[Stage]", document: object) -> Iterator[str]:
    from dvc.dependency import ParamsDependency

    for stage in stages:
        if all(output.can_push for output in stage.outs):
            continue
        for entry in stage.deps:
            if isinstance(entry, ParamsDependency) and str(entry) == entry.DEFAULT_PARAMS_FILE:
                for key in entry.params or ():
                    yield from (source for _, source in sources_below(_section(document, key)))


def _section(document: object, key: str) -> object:
    for part in key.split("."):
        document = document.get(part) if isinstance(document, dict) else None
    return document


def changed_sources(plan: "Plan", folder: Path) -> list[str]:
    """Sources whose content differs from ``dvc.lock``, and data added with ``dvc add`` that changed.

    A stage that has never run has read no version of its data yet, so its sources count as changed.
    """
    sources = {str((folder / path).absolute()) for _, path in named_sources(folder)}
    changed: dict[str, None] = {}
    for name, planned in plan.stages.items():
        node = plan.graph.nodes[name]
        for change in planned.changes:
            if change.kind is Kind.NEW:
                changed |= dict.fromkeys(
                    path for path in node.dependencies if str((folder / path).absolute()) in sources
                )
            elif change.kind is Kind.INPUT and change.path in sources:
                changed[change.subject] = None
            elif not node.command:
                changed[name] = None
    return list(changed)
