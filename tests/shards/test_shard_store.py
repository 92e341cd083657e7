import os
import time

import pytest

from tasks.errors import ResourceError
from tasks.shards.shard_store import ShardStore


def store_in(folder, *, output="out.txt", key="k" * 64, resume=True):
    return ShardStore(folder / "shards", folder / output, key, resume=resume)


def test_half_a_file_of_a_killed_process_is_removed(tmp_path):
    store = store_in(tmp_path)
    store.save(0, ["first"])
    (store.folder / ".00000001.shard.x.partial").write_text("half")
    store.close()
    store = store_in(tmp_path)
    assert {file.name for file in store.folder.iterdir()} == {"lock", "00000000.shard"}
    store.close()
    store = store_in(tmp_path, resume=False)
    assert {file.name for file in store.folder.iterdir()} == {"lock"}


def test_stale_folders_are_removed_unless_in_use(tmp_path):
    def interrupted(output, key, days):
        store = store_in(tmp_path, output=output, key=key * 64)
        store.close()
        past = time.time() - days * 24 * 3600
        os.utime(store.folder, (past, past))
        return store.folder

    other_work = interrupted("out.txt", "a", 0)
    recent = interrupted("recent.txt", "b", 29)
    old = interrupted("old.txt", "c", 31)
    (tmp_path / "shards" / "not-ours").mkdir()
    in_use = store_in(tmp_path, output="in-use.txt")
    past = time.time() - 40 * 24 * 3600
    os.utime(in_use.folder, (past, past))
    store = store_in(tmp_path)
    with pytest.raises(ResourceError, match="another process is making"):
        store_in(tmp_path)
    assert not other_work.exists()
    assert not old.exists()
    left = {path.name for path in (tmp_path / "shards").iterdir()}
    assert left == {recent.name, in_use.folder.name, store.folder.name, "not-ours"}
