"""What DVC has restored from its cache is held against its hash.

DVC 3.67 trusts a file of its cache that is read-only, as all of them are: one that a disk or a person has damaged is
copied into the workspace, and taken for the right one from then on.
"""

import hashlib
import json
import shutil
from functools import cache
from pathlib import Path

from tasks.results.origin.lock_entries import read_lock


@cache
def cache_folder(folder: Path) -> Path:
    """Where DVC keeps the files of a checkout by their hashes, as its settings say."""
    from dvc.repo import Repo

    with Repo(str(folder)) as repository:
        return Path(repository.cache.local.path)


def remove_damaged(folder: Path, stage: str, cached: Path) -> bool:
    """Remove the outputs of a stage whose content is not what ``dvc.lock`` says, and their copies in the cache.

    ``cached``: the ``cache_folder``. Whether there was any: then the stage has to run. Reads each file of its outputs
    once; what DVC does not cache is left alone.
    """
    damaged = False
    for out in read_lock(folder).get(stage, {}).get("outs", ()):
        if out.get("hash") != "md5":
            continue
        path, digest = folder / out["path"], out["md5"]
        files = {path: digest}
        if digest.endswith(".dir"):
            listing = _copy(cached, digest)
            if _hash(listing) != digest.removesuffix(".dir"):
                # What it names cannot be trusted, so nothing of the folder can.
                damaged = True
                shutil.rmtree(path)
                listing.unlink()
                continue
            files = {path / entry["relpath"]: entry["md5"] for entry in json.loads(listing.read_text("utf-8"))}
        for file, expected in files.items():
            if _hash(file) != expected:
                damaged = True
                file.unlink()
                _copy(cached, expected).unlink()
    return damaged


def _copy(cached: Path, digest: str) -> Path:
    return cached / digest[:2] / digest[2:]


def _hash(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "md5").hexdigest()
