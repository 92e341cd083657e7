"""Differences from the state in ``dvc.lock``, by DVC's own status; each file is hashed once.

DVC's own ``status()`` of every dependency and output decides; its rules are not restated here. Two things are added. A
hash or a parameter file that many stages depend on is read once instead of once per stage. A changed parameter is
followed down to the keys whose values differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dvc.dependency import ParamsDependency
    from dvc.output import Output
    from dvc.repo import Repo
    from dvc.stage import Stage
    from dvc_data.hashfile.hash_info import HashInfo


class Kind(StrEnum):
    """Changed part of a stage."""

    NEW = "new"
    COMMAND = "command"
    PARAMETER = "parameter"
    INPUT = "input"
    OUTPUT = "output"
    ALWAYS = "always"


NOT_IN_CACHE = "is not in DVC's cache"
_WORDS = {
    "deleted": "is missing",
    "modified": "changed",
    "new": "is new",
    "not in cache": NOT_IN_CACHE,
    "update available": "has a newer version",
}


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


class ChangeReader:
    """Reads changes of many stages of one repository; hashes each file only once."""

    def __init__(self, repository: "Repo") -> None:
        self._repository = repository
        self._hashes: dict[tuple[str, str], HashInfo] = {}
        self._parameters: dict[tuple[str, tuple[str, ...]], dict[str, Any]] = {}

    def changes(self, stage: "Stage") -> Iterator[Change]:
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
        if not stage.frozen:
            for entry in stage.deps:
                if isinstance(entry, ParamsDependency):
                    yield from self._parameter_changes(entry)
                else:
                    yield from self._file_changes(Kind.INPUT, entry)
        for entry in stage.outs:
            yield from self._file_changes(Kind.OUTPUT, entry)

    def restorable(self, stage: "Stage") -> bool:
        """Whether DVC's run-cache has the outputs for the stage's present inputs, so that nothing is computed.

        Meaningful only if nothing upstream will run. Calls DVC's own function for restoring, as a dry run on a copy of
        the stage.
        """
        from copy import copy

        from dvc.exceptions import DvcException
        from dvc_data.hashfile.hash_info import HashInfo

        if not stage.cmd or stage.frozen:
            return False
        trial = copy(stage)
        trial.deps = [copy(entry) for entry in stage.deps]
        try:
            for entry in trial.deps:
                self._remember(entry)
            if stage.changed_stage() or not stage.deps_cached() or not all(entry.hash_info for entry in stage.outs):
                for entry in trial.deps:
                    entry.save()
                # Without recorded outputs DVC looks the present inputs up, as it does for inputs that changed.
                trial.outs = [copy(entry) for entry in stage.outs]
                for entry in trial.outs:
                    entry.hash_info = HashInfo()
            self._repository.stage_cache.restore(trial, dry=True)
        except DvcException:
            # Not in the cache, or an input is missing or unreadable: the stage itself reports it when it runs.
            return False
        return True

    def _file_changes(self, kind: Kind, entry: "Output") -> Iterator[Change]:
        self._remember(entry)
        for name, status in entry.status().items():
            yield Change(kind, name, f"{kind} {name} {_WORDS.get(status, status)}", entry.fs_path)

    def _parameter_changes(self, entry: "ParamsDependency") -> Iterator[Change]:
        self._remember(entry)
        status = entry.status()
        if not status:
            return
        (changed,) = status.values()
        file = "" if str(entry) == entry.DEFAULT_PARAMS_FILE else f"{entry}:"
        if isinstance(changed, str):
            yield Change(Kind.PARAMETER, str(entry), f"parameter file {entry} {_WORDS.get(changed, changed)}")
            return
        recorded, present = entry.hash_info.value or {}, entry.read_params()
        for key in changed:
            for path, text in value_changes(f"{file}{key}", recorded.get(key, _ABSENT), present.get(key, _ABSENT)):
                yield Change(Kind.PARAMETER, path, f"parameter {path} {text}")

    def _remember(self, entry: "Output") -> None:
        """Let the entry's own status reuse hashes and parameters that were read for another stage's entry."""
        from dvc.dependency import ParamsDependency

        if isinstance(entry, ParamsDependency):
            file_key = (entry.fs_path, tuple(entry.params))
            read_params = type(entry).read_params

            def parameters(flatten: bool = True, **options: object) -> dict[str, Any]:
                if file_key not in self._parameters:
                    self._parameters[file_key] = read_params(entry, flatten=flatten, **options)
                return self._parameters[file_key]

            entry.read_params = parameters
            return
        hash_key = (entry.fs_path, entry.hash_name)
        get_hash = type(entry).get_hash

        def content_hash() -> "HashInfo":
            if hash_key not in self._hashes:
                self._hashes[hash_key] = get_hash(entry)
            return self._hashes[hash_key]

        entry.get_hash = content_hash


class _Absent:
    """Value of a missing parameter; ``None`` is a valid value."""


_ABSENT = _Absent()


def value_changes(key: str, before: object, after: object) -> Iterator[tuple[str, str]]:
    """Key paths under ``key`` whose values differ, each with the difference in words."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from value_changes(f"{key}.{name}", before.get(name, _ABSENT), after.get(name, _ABSENT))
    elif before is _ABSENT:
        if after is not _ABSENT:
            yield key, f"is new ({after!r})" if not isinstance(after, dict) else "is new"
    elif after is _ABSENT:
        yield key, "is gone"
    elif before != after:
        yield key, f"changed from {before!r} to {after!r}"
