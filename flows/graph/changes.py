"""Differences from the state in ``dvc.lock``, by DVC's own status of each dependency and output.

DVC decides; its rules are not restated here. A changed parameter is followed down to the keys whose values differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dvc.dependency import ParamsDependency
    from dvc.output import Output
    from dvc.stage import Stage


class Kind(StrEnum):
    """Changed part of a stage."""

    NEW = "new"
    COMMAND = "command"
    PARAMETER = "parameter"
    INPUT = "input"
    OUTPUT = "output"
    ALWAYS = "always"


NOT_IN_CACHE = "is not in DVC's cache"
_WORDS = {"deleted": "is missing", "modified": "changed", "new": "is new", "not in cache": NOT_IN_CACHE}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the recorded and the present state of a stage."""

    kind: Kind
    subject: str
    """Path of the input or output, key path of the parameter; empty for the other kinds."""
    text: str
    """The difference in words, as part of a sentence about the stage."""
    path: str = ""
    """Absolute path of the input or output."""


def changes_of(stage: "Stage") -> Iterator[Change]:
    """All changes of one of DVC's stages; none if DVC would skip it."""
    from dvc.dependency import ParamsDependency

    # An entry in ``dvc.lock`` would have recorded its files and parameters.
    was_recorded = any(entry.hash_info for entry in [*stage.deps, *stage.outs])
    if not was_recorded and stage.cmd and not stage.is_callback:
        yield Change(Kind.NEW, "", "has not run yet")
        for entry in stage.deps:
            if not isinstance(entry, ParamsDependency) and not entry.exists:
                yield Change(Kind.INPUT, str(entry), f"input {entry} is missing", entry.fs_path)
        return
    if stage.is_callback or stage.always_changed:
        yield Change(Kind.ALWAYS, "", "runs every time: it has no inputs and outputs to compare")
    if stage.changed_stage():
        yield Change(Kind.COMMAND, "", "its command changed")
    for entry in () if stage.frozen else stage.deps:
        if isinstance(entry, ParamsDependency):
            yield from _parameter_changes(entry)
        else:
            yield from _file_changes(Kind.INPUT, entry)
    for entry in stage.outs:
        yield from _file_changes(Kind.OUTPUT, entry)


def _file_changes(kind: Kind, entry: "Output") -> Iterator[Change]:
    for name, status in entry.status().items():
        yield Change(kind, name, f"{kind} {name} {_WORDS.get(status, status)}", entry.fs_path)


def _parameter_changes(entry: "ParamsDependency") -> Iterator[Change]:
    file = "" if str(entry) == entry.DEFAULT_PARAMS_FILE else f"{entry}:"
    for changed in entry.status().values():
        if isinstance(changed, str):
            yield Change(Kind.PARAMETER, str(entry), f"parameter file {entry} {_WORDS.get(changed, changed)}")
            return
        recorded, present = entry.hash_info.value or {}, entry.read_params()
        for key in changed:
            for path, text in value_changes(f"{file}{key}", recorded.get(key, _ABSENT), present.get(key, _ABSENT)):
                yield Change(Kind.PARAMETER, path, f"parameter {path} {text}")


class _Absent:
    """Value of a missing parameter; ``None`` is a valid value."""


_ABSENT = _Absent()


def value_changes(key: str, before: object, after: object) -> Iterator[tuple[str, str]]:
    """Key paths under ``key`` whose values differ, each with the difference in words."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from value_changes(f"{key}.{name}", before.get(name, _ABSENT), after.get(name, _ABSENT))
    elif before is _ABSENT:
        yield key, "is new" if isinstance(after, dict) else f"is new ({after!r})"
    elif after is _ABSENT:
        yield key, "is gone"
    elif before != after:
        yield key, f"changed from {before!r} to {after!r}"
