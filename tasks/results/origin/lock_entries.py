"""The part of ``dvc.lock`` that produced a number: the entry of its stage, and of every stage before it.

It has DVC's hashes of private files. An attacker who knows all of a file but one word can test that word against such a
hash. So the recorded entries of a number stay in ``data/private/lineage``, and MLflow has only their name.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tasks.files.atomic_file import atomic_writer
from tasks.files.clone_key import clone_key, private_home
from tasks.parameters.cells_command import STAGE as CHECK_OF_PARAMETERS
from tasks.results.report_index import makers_of

LOCK_FILE = "dvc.lock"
Stages = Mapping[str, Any]
"""Entries of a ``dvc.lock`` by the name of their stage."""


def read_lock(folder: str | Path = ".") -> dict[str, Any]:
    """The stages of a checkout's ``dvc.lock`` by name; empty if there is none."""
    path = Path(folder) / LOCK_FILE
    return stages_of(path.read_text(encoding="utf-8")) if path.exists() else {}


def stages_of(text: str) -> dict[str, Any]:
    """The stages in the text of a ``dvc.lock`` by name; empty if it was cut off."""
    return dict(read_mapping(text).get("stages") or {})


def read_mapping(text: str) -> dict[str, Any]:
    """A mapping of YAML, read without DVC; empty if the text was cut off, or is something else."""
    import yaml

    try:
        document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return {}
    return document if isinstance(document, dict) else {}


def chain_of(stage: str, stages: Stages) -> dict[str, Any]:
    """The entries of a stage and of all stages before it; empty if the lock lacks the stage.

    The entry of the check of params.yaml omits its inputs, which are all parameters: no number depends on them.
    """
    makers = {out["path"]: name for name, entry in stages.items() for out in entry.get("outs", ())}
    found: dict[str, Any] = {}
    waiting = [stage] if stage in stages else []
    while waiting:
        name = waiting.pop()
        entry = found[name] = stages[name]
        if name == CHECK_OF_PARAMETERS:
            found[name] = entry = {key: entry[key] for key in ("cmd", "outs") if key in entry}
        for dependency in entry.get("deps", ()):
            waiting += (maker for maker in makers_of(dependency["path"], makers) if maker not in found)
    return dict(sorted(found.items()))


def entries_of(stage: str, report: Path, stages: Stages) -> dict[str, Any]:
    """The entries of the stage of a report; empty if the report on disk is not the one in the lock."""
    digests = {out["path"]: out.get("md5") for entry in stages.values() for out in entry.get("outs", ())}
    mine = hashlib.md5(report.read_bytes(), usedforsecurity=False).hexdigest()
    return chain_of(stage, stages) if digests.get(report.as_posix()) == mine else {}


def lock_text(entries: Stages) -> str:
    """A lock with some entries: JSON, which DVC reads as the YAML that it is."""
    return json.dumps({"schema": "2.0", "stages": entries}, indent=1, sort_keys=True) + "\n"


def lock_digest(entries: Stages) -> str:
    """Twelve digits that name a state of the entries; keyed, since the entries' own hashes have no key."""
    return hmac.digest(clone_key("lineage"), lock_text(entries).encode(), "sha256").hex()[:12]


def stored_lock(digest: str) -> Path:
    """The path where this clone stores the entries of a digest."""
    return private_home() / "lineage" / f"{digest}.json"


def keep_entries(entries: Stages) -> str:
    """Store the entries in this clone's private folder, once; return their digest."""
    digest = lock_digest(entries)
    if not stored_lock(digest).exists():
        with atomic_writer(stored_lock(digest), private=True) as stream:
            stream.write(lock_text(entries))
    return digest
