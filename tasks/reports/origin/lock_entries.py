"""The part of ``dvc.lock`` that a number comes from: the entry of its stage, and of every stage before it."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.parameters.check_parameters_command import STAGE as CHECK_OF_PARAMETERS

LOCK_FILE = "dvc.lock"


def read_lock(folder: str | Path = ".") -> dict[str, Any]:
    """The stages of a checkout's ``dvc.lock`` by name; empty where there is none."""
    import yaml

    path = Path(folder) / LOCK_FILE
    if not path.exists():
        return {}
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(path.read_text(encoding="utf-8"), Loader=loader) or {}
    return dict(document.get("stages") or {})


class LockEntries:
    """The stages of a lock, and which of them made what the others read."""

    def __init__(self, stages: Mapping[str, Any]) -> None:
        self.stages = stages
        self._makers = {out["path"]: name for name, entry in stages.items() for out in entry.get("outs", ())}

    def chain(self, stage: str) -> dict[str, Any]:
        """The entries of a stage and of all stages before it; empty where the lock does not have the stage.

        That of the check of params.yaml is without its inputs, which are all parameters: no number comes from them.
        """
        found: dict[str, Any] = {}
        waiting = [stage] if stage in self.stages else []
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found[name] = entry = self.stages[name]
            if name == CHECK_OF_PARAMETERS:
                found[name] = {key: entry[key] for key in ("cmd", "outs") if key in entry}
                continue
            for dependency in entry.get("deps", ()):
                waiting += self._made(dependency["path"])
        return dict(sorted(found.items()))

    def _made(self, path: str) -> set[str]:
        """Stages that made a path, the folder it lies in, or files in it."""
        parents = (str(parent) for parent in (Path(path), *Path(path).parents))
        above = {self._makers[parent] for parent in parents if parent in self._makers}
        return above or {maker for out, maker in self._makers.items() if out.startswith(f"{path}/")}

    def digest_of(self, path: str) -> str | None:
        """MD5 that the lock has of an output that is a file."""
        maker = self._makers.get(path)
        outs = self.stages[maker].get("outs", ()) if maker else ()
        return next((out.get("md5") for out in outs if out["path"] == path), None)


def lock_text(entries: Mapping[str, Any]) -> str:
    """A lock that holds some entries: JSON, which DVC reads as the YAML that it is."""
    return json.dumps({"schema": "2.0", "stages": entries}, indent=1, sort_keys=True) + "\n"


def lock_digest(entries: Mapping[str, Any]) -> str:
    """Twelve digits that name a state of the entries."""
    return hashlib.sha256(lock_text(entries).encode()).hexdigest()[:12]


def agrees(lock: LockEntries, report: Path) -> bool:
    """Whether a report on disk is the one that the lock has: otherwise the lock is of another state."""
    digest = lock.digest_of(report.as_posix())
    return digest is not None and hashlib.md5(report.read_bytes(), usedforsecurity=False).hexdigest() == digest
