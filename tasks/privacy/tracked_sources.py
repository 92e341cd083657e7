"""Whether DVC would push a source, by the ``.dvc`` files next to it, which are YAML.

A source without a ``.dvc`` file stays local: DVC sends its cache, and of an untracked input it stores only the hash.
"""

from collections.abc import Iterator
from pathlib import Path

import yaml

PUSH = "push"
"""Key of an output; ``false`` excludes it from ``dvc push``."""


def sent_by_push(source: str | Path, root: Path) -> str | None:
    """The path that ``dvc push`` would send for a source: it, a folder above it or a part of it; ``None`` for
    nothing.

    The path is relative to ``root``, the checkout; a source outside of it is never sent.
    """
    place = (root / source).absolute()
    if not place.is_relative_to(root.absolute()):
        return None
    for file in _files_about(place, root.absolute()):
        for output in (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get("outs") or ():
            tracked = file.parent / output["path"]
            about_it = tracked.is_relative_to(place) or place.is_relative_to(tracked)
            if about_it and output.get(PUSH, True):
                return tracked.relative_to(root.absolute()).as_posix()
    return None


def is_tracked(source: str | Path, root: Path) -> bool:
    """Whether DVC tracks a file or folder in the checkout, a folder above it or a part of it."""
    return any(True for _ in _files_about((root / source).absolute(), root.absolute()))


def _files_about(place: Path, root: Path) -> Iterator[Path]:
    for path in (place, *place.parents):
        if path == root:
            break
        file = path.with_name(f"{path.name}.dvc")
        if file.is_file():
            yield file
    if place.is_dir():
        yield from sorted(place.rglob("*.dvc"))
