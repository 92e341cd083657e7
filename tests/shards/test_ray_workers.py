"""Shards on the machines of a Ray cluster: the same results, whoever dies, and no private text in Ray's hands."""

import functools
import importlib.util
import itertools
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from tasks.errors import CorpusError, ResourceError, StageError
from tasks.settings.resources import ClusterSettings, ResourceSettings
from tasks.shards import work_key
from tasks.shards.ray_workers import ShardActor, connect, room_of
from tasks.shards.sharded_work import ShardedWork

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is an extra: '.[cluster]'")
CANARY = "quetzalwort"
LARGE = f"{CANARY} " * 20_000
"""Ray passes what is smaller than 100 kB on beside its object store."""


@pytest.fixture(scope="module")
def nodes():
    from ray_nodes import ray_nodes

    with pytest.MonkeyPatch.context() as patch, ray_nodes() as made:
        for name, value in made.environment.items():
            patch.setenv(name, value)
        # Only now: Ray reads the environment when it is imported.
        made.ray = importlib.import_module("ray")
        made.add(2, private=1)
        yield made
        made.ray.shutdown()


def scripted(folder, shard, advance):
    """Does what the shard says, and notes who did it."""
    what, _, value = shard.partition(" ")
    is_actor = "RAY_RAYLET_PID" in os.environ
    with open(folder / "log", "a") as log:
        log.write(f"{os.getpid() if is_actor else 0} {what}\n")
    if what == "wait":
        time.sleep(float(value.split()[0]))
    elif what == "die-once" and is_actor and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "die-once":
        # The worker here does not take all of them before an actor has one.
        until(lambda: (folder / "died").exists())
    elif what == "user-error":
        raise CorpusError("line 7: is not what it should be")
    elif what == "defect":
        raise ValueError(f"{CANARY} private words")
    print(f"printed {shard}", flush=True)
    return f"{shard} done"


def until(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)


def make(folder):
    return functools.partial(scripted, folder)


def resources(nodes, folder, threads=1, label="private"):
    cluster = ClusterSettings(address=nodes.address, private_nodes=label)
    return ResourceSettings(threads=threads, parallel_stages=1, cluster=cluster, work_folder=str(folder / "work"))


def run(nodes, folder, shards, **given):
    work = ShardedWork(
        shards,
        functools.partial(make, folder),
        resources(nodes, folder, **given),
        uses_model=True,
        output=str(folder / "out"),
        key=lambda: "k" * 64,
    )
    try:
        return [each.result for each in work.finished()]
    finally:
        work.close()


def actors_of(folder):
    """Processes of actors that had shards."""
    lines = (folder / "log").read_text().splitlines() if (folder / "log").exists() else []
    return {line.split()[0] for line in lines} - {"0"}


def until_two_actors(folder):
    """Shards until two actors have joined."""
    deadline = time.monotonic() + 60
    while len(actors_of(folder)) < 2 and time.monotonic() < deadline:
        yield f"wait 0.1 {LARGE}"


def test_actors_take_shards_and_ray_sees_no_text(nodes, tmp_path):
    shards = []

    def until_joined():
        for shard in until_two_actors(tmp_path):
            shards.append(shard)
            yield shard

    assert run(nodes, tmp_path, until_joined()) == [f"{shard} done" for shard in shards]
    assert len(actors_of(tmp_path)) == 2
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("work/*/*")} == {0o600}
    assert not list(tmp_path.glob("work/*/*.given"))
    assert holders(nodes) == []
    # As it would be seen.
    kept = nodes.ray.put(shards[0])
    assert len(holders(nodes)) == 1, kept


def holders(nodes):
    """Files of Ray that hold the canary: logs, spilled objects, and the memory of its object stores."""
    files = [path for path in nodes.folder.rglob("*") if path.is_file()]
    raylets = [process for process in psutil.process_iter(["cmdline"]) if str(nodes.folder) in str(process.info)]
    descriptors = [path for process in raylets for path in Path(f"/proc/{process.pid}/fd").iterdir()]
    stores = {path.stat().st_ino: path for path in descriptors if path.exists() and "plasma" in os.readlink(path)}
    stores = [path for path in stores.values() if path.stat().st_size > 2**20]
    assert len(files) > 5
    assert stores
    return [path for path in (*files, *stores) if CANARY.encode() in path.read_bytes()]


def test_an_actor_that_dies_loses_one_shard_that_another_takes_over(nodes, tmp_path):
    found = run(nodes, tmp_path, itertools.chain(until_two_actors(tmp_path), ["die-once"] * 6))
    assert found[-6:] == ["die-once done"] * 6
    assert (tmp_path / "died").exists()


def test_where_every_core_is_taken_the_worker_here_does_all(nodes, tmp_path):
    taken = [nodes.ray.remote(ShardActor).options(num_cpus=1, resources={"private": 0.1}).remote(".") for _ in range(2)]
    nodes.ray.get([actor.begin.remote() for actor in taken])
    shards = [f"wait 0 {number}" for number in range(20)]
    try:
        assert run(nodes, tmp_path, shards) == [f"{shard} done" for shard in shards]
    finally:
        for actor in taken:
            nodes.ray.kill(actor)
    assert actors_of(tmp_path) == set()


def test_an_error_of_an_actor_is_as_that_of_a_process(nodes, tmp_path):
    for shard, error, message in (
        ("user-error", CorpusError, "^line 7: is not what it should be$"),
        ("defect", StageError, "^the worker on .* failed: ValueError at test_ray_workers.py:[0-9]+ in scripted;"),
    ):
        folder = tmp_path / shard
        folder.mkdir()
        with pytest.raises(error, match=message) as caught:
            run(nodes, folder, itertools.chain(until_two_actors(folder), [shard] * 6))
        assert CANARY not in str(caught.value)


def test_a_cluster_that_cannot_be_used_is_one_line(nodes, tmp_path, monkeypatch):
    def connected(address):
        nodes.ray.shutdown()
        return connect(ClusterSettings(address=address, private_nodes="private"))

    for address in ("127.0.0.1:1", "127.0.0.1:99999"):
        with pytest.raises(ResourceError, match=f"'{address}': no Ray cluster answers there"):
            connected(address)
    with pytest.raises(ResourceError, match="no machine of the cluster has the label 'other'"):
        run(nodes, tmp_path, ["wait 0"] * 2, label="other")
    monkeypatch.setattr("ray.__version__", "2.59.0")
    with pytest.raises(ResourceError, match=r"Version mismatch: .*2\.59\.0.*must run on all machines$") as caught:
        connected(nodes.address)
    assert "\n" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ResourceError, match=r"Ray is not installed: pip install -e '.\[cluster\]'"):
        connected("auto")


def test_a_machine_with_other_code_computes_nothing(nodes, tmp_path, monkeypatch):
    monkeypatch.setattr(work_key, "_code_hash", str)
    with pytest.raises(ResourceError, match="has other code than the one that leads"):
        run(nodes, tmp_path, until_two_actors(tmp_path))


def test_there_is_room_on_machines_that_may_see_private_text():
    nodes = [{"CPU": 9, "private": 1}, {"CPU": 8, "GPU": 1, "private": 1}, {"CPU": 64, "GPU": 8}]
    ray = SimpleNamespace(nodes=lambda: [{"Alive": True, "Resources": node} for node in nodes])
    cluster = ClusterSettings(address="auto", private_nodes="private")
    assert room_of(ray, cluster, 4, on_gpu=False) == 4
    assert room_of(ray, cluster, 4, on_gpu=True) == 1
