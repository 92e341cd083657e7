"""Private text that ``dvc push`` would send is refused before anything is made of it.

A source is private where a stage that reads its section of ``params.yaml`` has an output that never leaves
(``push: false`` in ``dvc.yaml``).
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from tasks.errors import ParameterError
from tasks.privacy.tracked_sources import sent_by_push

SOURCE = "source"
"""Name of the setting that names a file or folder of data, wherever it stands in ``params.yaml``."""


def sources_below(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
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


def refuse_pushed_sources(stages: Iterable[Any], root: Path) -> None:
    """``ParameterError`` where DVC tracks a private source of these stages of DVC's without ``push: false``.

    One that DVC does not track is allowed: it never gets into the cache, so no push sends it.
    """
    from dvc.dependency import ParamsDependency

    # Not by ``tasks.parameters``: with it come the settings of every step, for which a plan has no time.
    file = root / ParamsDependency.DEFAULT_PARAMS_FILE
    if not file.exists():
        return
    document = yaml.load(file.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for source in dict.fromkeys(_private_sources(stages, document)):
        sent = sent_by_push(source, root)
        if sent is not None:
            raise ParameterError(
                f"{source!r} is private text, and 'dvc push' would send {sent!r}: its .dvc file has no 'push: false'; "
                f"'palimpsest add {sent}' puts it there"
            )


def _private_sources(stages: Iterable[Any], document: Any) -> Iterator[str]:
    from dvc.dependency import ParamsDependency

    for stage in stages:
        if all(output.can_push for output in stage.outs):
            continue
        for entry in stage.deps:
            if isinstance(entry, ParamsDependency) and str(entry) == entry.DEFAULT_PARAMS_FILE:
                for key in entry.params or ():
                    yield from (source for _, source in sources_below(_section(document, key)))


def _section(document: Any, key: str) -> Any:
    for part in key.split("."):
        document = document.get(part) if isinstance(document, dict) else None
    return document
