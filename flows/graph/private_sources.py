"""Sources of data in ``params.yaml``: refusal of private ones that ``dvc push`` would send, and detection of changed
ones. Every source is private but those of ``generic``.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import yaml

from flows.graph.changes import Kind
from flows.graph.graph import Graph
from tasks.errors import ParameterError
from tasks.privacy.tracked_sources import sent_by_push

SOURCE = "source"
"""Name of the setting that names a file or folder of data, anywhere in ``params.yaml``."""


def named_sources(root: Path) -> list[tuple[tuple[str, ...], str]]:
    """Every source in ``params.yaml``, with the keys that lead to it; empty without the file."""
    # Not by ``tasks.parameters``: it imports the settings of every step.
    file = root / "params.yaml"
    return list(_sources_below(yaml.safe_load(file.read_text(encoding="utf-8")))) if file.exists() else []


def _sources_below(value: object, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, part in value.items():
            if key == SOURCE and isinstance(part, str):
                yield above, part
            else:
                yield from _sources_below(part, (*above, str(key)))
    elif isinstance(value, list):
        for part in value:
            yield from _sources_below(part, above)


def refuse_pushed_sources(root: Path) -> None:
    """Raise ``ParameterError`` if DVC tracks a private source without ``push: false``.

    An untracked source is allowed: it never gets into the cache, so no push sends it.
    """
    named = named_sources(root)
    public = {source for keys, source in named if keys[:1] == ("generic",)}
    for source in dict.fromkeys(source for _, source in named if source not in public):
        sent = sent_by_push(source, root)
        if sent is not None:
            raise ParameterError(
                f"{source!r} is private text, and 'dvc push' would send {sent!r}: its .dvc file has no 'push: false'; "
                f"'palimpsest add {sent}' puts it there"
            )


def changed_sources(plan: Graph, folder: Path) -> list[str]:
    """Sources whose content differs from ``dvc.lock``, and data added with ``dvc add`` that changed.

    A stage that has never run has read no version of its data yet, so its sources count as changed.
    """
    sources = {os.path.normpath(path) for _, path in named_sources(folder)}
    changed: dict[str, None] = {}
    for name, node in plan.items():
        for change in node.changes:
            read = node.dependencies if change.kind is Kind.NEW else [change.subject]
            if change.kind in (Kind.NEW, Kind.INPUT):
                changed |= {path: None for path in read if os.path.normpath(path) in sources}
            elif not node.command:
                changed[name] = None
    return list(changed)
