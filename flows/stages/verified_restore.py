"""What DVC has restored from its cache is held against its hash.

DVC 3.67 trusts a file of its cache that is read-only, as all of them are: one that a disk or a person has damaged is
copied into the workspace, and taken for the right one from then on.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tasks.results.origin.lock_entries import read_lock

_CACHE = Path(".dvc") / "cache" / "files" / "md5"


def remove_damaged(folder: Path, stage: str) -> bool:
    """Remove the outputs of a stage whose content is not what ``dvc.lock`` says, and their copies in the cache.

    Whether there was any: then the stage has to run. Reads each file of its outputs once.
    """
    damaged = False
    for out in read_lock(folder).get(stage, {}).get("outs", ()):
        for path, digest in _files_of(folder, out):
            with open(path, "rb") as stream:
                right = hashlib.file_digest(stream, "md5").hexdigest() == digest
            if not right:
                damaged = True
                path.unlink()
                (folder / _CACHE / digest[:2] / digest[2:]).unlink(missing_ok=True)
    return damaged


def _files_of(folder: Path, out: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Each file of an output with the hash that it should have; what DVC does not cache is left alone."""
    path, digest = folder / out["path"], str(out.get("md5", ""))
    if not digest or out.get("hash") != "md5":
        return
    if not digest.endswith(".dir"):
        yield path, digest
        return
    listing = folder / _CACHE / digest[:2] / digest[2:]
    for entry in json.loads(listing.read_text(encoding="utf-8")):
        yield path / entry["relpath"], entry["md5"]
