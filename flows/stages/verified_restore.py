"""What DVC restores from its cache is held against its hash first.

DVC 3.67 trusts a file of its cache that is read-only, as all of them are: one that a disk or a person has damaged is
copied into the workspace, and taken for the right one from then on. Here every file that is about to be restored is
read once more; a damaged one is removed, and the stage runs. So is an entry of the cache of runs that a full disk has
left empty, which DVC stumbles over.

Imports nothing of this project: the supervisor loads it by its path.
"""

import os
from contextlib import suppress
from typing import Any


def verify_what_is_restored() -> None:
    """From now on, in this process, no output is restored whose content does not fit its hash."""
    from dvc.stage.cache import StageCache, _get_stage_hash
    from dvc_data.hashfile.db.local import LocalHashFileDB
    from dvc_data.hashfile.hash import hash_file
    from dvc_objects.errors import ObjectFormatError

    restore, load, trust = StageCache.restore, StageCache._load, LocalHashFileDB.check
    restoring: list[Any] = []

    def check(self: Any, oid: str, check_hash: bool = True, _info: Any = None) -> Any:
        if restoring and check_hash:
            path = self.oid_to_path(oid)
            # Without DVC's memory of hashes, which knows a file by its time and size.
            _, found = hash_file(path, self.fs, self.hash_name, None)
            if str(found.value).split(".")[0] != oid.split(".")[0]:
                with suppress(FileNotFoundError):
                    self.fs.remove(path)
                raise ObjectFormatError(f"{path} is corrupted")
        return trust(self, oid, check_hash, _info)

    def restore_verified(self: Any, stage: Any, *arguments: Any, **options: Any) -> Any:
        restoring.append(stage)
        try:
            return restore(self, stage, *arguments, **options)
        finally:
            restoring.pop()

    def load_what_is_there(self: Any, stage: Any) -> Any:
        key = _get_stage_hash(stage)
        if key:
            # Removes nothing but an empty folder.
            with suppress(OSError):
                os.rmdir(self._get_cache_dir(key))
        return load(self, stage)

    StageCache._load = load_what_is_there
    setattr(LocalHashFileDB, "check", check)  # noqa: B010 - a method is not assigned to
    StageCache.restore = restore_verified
