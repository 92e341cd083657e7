"""Hashes that say which training a checkpoint belongs to."""

import hashlib
import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tasks


def hash_of(document: Any) -> str:
    """Hash of what JSON can hold."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def work_key(
    identity: dict[str, str],
    *,
    packages: Sequence[str],
    libraries: Sequence[str],
    log_every_steps: int,
    **decisive: Any,
) -> str:
    """One hash of everything that decides what a training run comes to: the name of its checkpoints' folder.

    Besides the identity, without which a checkpoint is no state of this run, that is what ``decisive`` names, such as
    the settings, the code of ``packages`` (folders of ``tasks``; this one is always among them) and the versions of the
    libraries. Not in it: devices, threads and compilation, which change last digits only.
    """
    from tasks.torch_setup import has_bfloat16

    return hash_of(
        {
            **identity,
            **decisive,
            "bfloat16": has_bfloat16(),
            "log_every_steps": log_every_steps,
            "code": _code_hash(["training", *packages]),
            "versions": {"python": platform.python_version(), **{name: version(name) for name in libraries}},
        }
    )


def _code_hash(packages: Sequence[str]) -> str:
    root = Path(tasks.__file__).parent
    digest = hashlib.sha256()
    for package in packages:
        for file in sorted((root / package).rglob("*.py")):
            digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
