"""Parts on the machines of a Ray cluster: the same results, whoever dies, and no private text in Ray's hands."""

import functools
import importlib.util
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pyarrow
import pyarrow.parquet
import pytest

from tasks.cli import main
from tasks.errors import CorpusError, ResourceError, StageError
from tasks.filling import filled_corpus
from tasks.masking import masked_lines
from tasks.parts import computed
from tasks.ray_cluster import PartWorker, connect, room_of
from tasks.settings.resources import ClusterSettings, ResourceSettings

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
        made.add(1, private=1)
        made.second = made.add(1, private=1)
        yield made
        made.ray.shutdown()


def scripted(folder, part, advance):
    """Does what the part says, and notes who did it."""
    what, _, value = part.partition(" ")
    raylet = os.environ.get("RAY_RAYLET_PID", "0")
    with open(folder / "log", "a") as log:
        log.write(f"{raylet} {what}\n")
    if what == "wait":
        time.sleep(float(value.split()[0]))
    elif what == "die-once" and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "user-error":
        raise CorpusError("line 7: is not what it should be")
    elif what == "defect":
        raise ValueError(f"{CANARY} private words")
    print(f"printed {part}", flush=True)
    return f"{part} done"


def make(folder):
    return functools.partial(scripted, folder)


def resources(nodes, folder, threads=1, label="private"):
    cluster = ClusterSettings(address=nodes.address, private_nodes=label)
    return ResourceSettings(threads=threads, parallel_stages=1, cluster=cluster, work_folder=str(folder / "work"))


def run(nodes, folder, parts, **given):
    return list(computed(parts, functools.partial(make, folder), resources(nodes, folder, **given), uses_model=True))


def done_by(folder):
    """The nodes that parts were done on."""
    lines = (folder / "log").read_text().splitlines() if (folder / "log").exists() else []
    return {line.split()[0] for line in lines} - {"0"}


def test_parts_come_in_order_from_two_nodes_and_ray_sees_no_text(nodes, tmp_path):
    parts = [f"wait {0.5 if number % 3 else 1.5} {number} {LARGE}" for number in range(12)]
    modes = set()
    found = computed(parts, functools.partial(make, tmp_path), resources(nodes, tmp_path), uses_model=True)
    for part, result in zip(parts, found, strict=True):
        assert result == f"{part} done"
        modes |= {path.stat().st_mode & 0o777 for path in tmp_path.glob("work/*/*")}
    assert len(done_by(tmp_path)) == 2
    assert modes == {0o600}
    assert not list(tmp_path.glob("work/*/*"))
    assert holders(nodes) == []
    # As it would be seen.
    kept = nodes.ray.put(parts[0])
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


def test_a_worker_that_dies_loses_one_part_that_another_takes_over(nodes, tmp_path):
    parts = ["wait 0 1", "die-once", "wait 0 2"]
    assert run(nodes, tmp_path, parts) == [f"{part} done" for part in parts]
    assert (tmp_path / "died").exists()


def test_a_part_that_workers_die_of_ends_the_work_in_one_line(nodes, tmp_path):
    with pytest.raises(ResourceError, match=r"^workers of the cluster have died"):
        run(nodes, tmp_path, ["wait 0", "die"])


def test_where_every_core_is_taken_this_process_does_all(nodes, tmp_path):
    taken = [nodes.ray.remote(PartWorker).options(num_cpus=1, resources={"private": 0.1}).remote(".") for _ in range(2)]
    nodes.ray.get([actor.__ray_ready__.remote() for actor in taken])
    parts = [f"wait 0 {number}" for number in range(3)]
    try:
        assert run(nodes, tmp_path, parts) == [f"{part} done" for part in parts]
    finally:
        for actor in taken:
            nodes.ray.kill(actor)
    assert done_by(tmp_path) == set()


def test_an_error_of_a_worker_quotes_no_text(nodes, tmp_path):
    for part, error, message in (
        ("user-error", CorpusError, "^line 7: is not what it should be$"),
        ("defect", StageError, "^the worker on .* failed: ValueError at test_ray_cluster.py:[0-9]+ in scripted$"),
    ):
        with pytest.raises(error, match=message) as caught:
            run(nodes, tmp_path, ["wait 0", part])
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
    monkeypatch.setattr("tasks.surroundings._code_hash", str)
    with pytest.raises(ResourceError, match="has other code than the one that leads"):
        run(nodes, tmp_path, ["wait 0"] * 2)


def test_there_is_room_on_idle_machines_that_may_see_private_text():
    nodes = [{"CPU": 9, "private": 1}, {"CPU": 8, "GPU": 1, "private": 1}, {"CPU": 64, "GPU": 8}]
    idle = {"CPU": 70, "GPU": 8}
    ray = SimpleNamespace(
        nodes=lambda: [{"Alive": True, "Resources": node} for node in nodes], available_resources=lambda: idle
    )
    cluster = ClusterSettings(address="auto", private_nodes="private")
    assert room_of(ray, cluster, 4, on_gpu=False) == 4
    assert room_of(ray, cluster, 4, on_gpu=True) == 1
    idle["CPU"] = 5
    assert room_of(ray, cluster, 4, on_gpu=False) == 1


@pytest.mark.slow
def test_mask_and_fill_write_on_a_cluster_what_one_process_writes_though_a_node_dies(nodes, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for module in (masked_lines, filled_corpus):
        monkeypatch.setattr(module, "PART_LINES", 20)
    names = ("Mary O'Neil", "Springfield", "two dogs", "bob@example.org")
    lines = [f"I told {names[number % 4]} about {number} cats" for number in range(300)]
    pyarrow.parquet.write_table(pyarrow.table({"text": lines}), "text.parquet", row_group_size=30)
    cluster = json.dumps({"address": nodes.address, "private_nodes": "private"})
    outputs = {}
    for name, more in (("one", []), ("many", ["--set", f"resources.cluster={cluster}"])):
        killer = threading.Thread(target=kill_when_at_work, args=(nodes,))
        if more:
            killer.start()
        mask = ["mask", "--technique", "crf", "--input", "text.parquet", "--output", f"{name}-masked.parquet"]
        assert main([*mask, "--sidecar", f"{name}.jsonl", "--threads", "1", *more]) == 0
        fill = ["fill", "--method", "unigram", "--input", f"{name}-masked.parquet", "--sidecar", f"{name}.jsonl"]
        assert main([*fill, "--output", f"{name}-filled.parquet", "--threads", "1", *more]) == 0
        files = [Path(f"{name}.jsonl"), *sorted(Path().glob(f"{name}-*.parquet/*"))]
        outputs[name] = [path.read_bytes() for path in files]
        if more:
            killer.join()
    assert len(outputs["one"]) == 3
    assert outputs["many"] == outputs["one"]


def kill_when_at_work(nodes):
    """Kill the second node as soon as a worker is placed there."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if nodes.ray.is_initialized() and any(
            process.info["environ"]
            and process.info["environ"].get("RAY_RAYLET_PID") == str(nodes.second)
            and "PartWorker" in " ".join(process.info["cmdline"] or [])
            for process in psutil.process_iter(["environ", "cmdline"])
        ):
            nodes.kill(nodes.second)
            return
        time.sleep(0.2)
    raise AssertionError("no worker was placed on the second node")
