"""Parts on the machines of a Ray cluster: the same results after a crash, and no private text in Ray.

A separate process leads: threads of Ray Data end it after ``ray.shutdown``.
"""

import functools
import importlib.util
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tasks.errors import PalimpsestError, ResourceError, StageError
from tasks.parts import computed
from tasks.ray_cluster import connect, room_of
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
        for _ in range(2):
            made.add(1, private=1)
        with leader() as made.leader:
            yield made


@contextmanager
def leader():
    """Runs functions in one process that leads, and raises what they raise."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:

        def lead(function, *given, **named):
            found, error = pool.submit(outcome, function, *given, **named).result(200)
            if error:
                raise error
            return found

        yield lead


def outcome(function, *given, **named):
    try:
        return function(*given, **named), None
    except PalimpsestError as error:
        # A new one: the frames of this one would hold what Ray has given.
        return None, type(error)(str(error))


def scripted(folder, part, advance):
    """Does what the part says, and notes who did it."""
    what, _, value = part.partition(" ")
    raylet = os.environ.get("RAY_RAYLET_PID", "0")
    with open(folder / "log", "a") as log:
        log.write(f"{raylet} {what}\n")
    if what == "wait":
        time.sleep(float(value.split()[0]))
    elif what == "wait-for":
        wait_for(value.split()[0], folder)
        time.sleep(4)
    elif what == "die-once" and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "defect":
        raise ValueError(f"{CANARY} private words")
    print(f"printed {part}", flush=True)
    return f"{part} done"


def make(folder):
    return functools.partial(scripted, folder)


def run(nodes, folder, parts, **given):
    """What comes of the parts, and the modes of the files that they passed through."""
    return nodes.leader(lead, nodes.address, folder, parts, **given)


def lead(address, folder, parts, label="private", code_hash=None, patience=60):
    cluster = ClusterSettings(address=address, private_nodes=label)
    resources = ResourceSettings(threads=1, parallel_stages=1, cluster=cluster, work_folder=str(folder / "work"))
    with pytest.MonkeyPatch.context() as patch:
        if code_hash:
            patch.setattr("tasks.surroundings.code_hash", code_hash)
        # Workers of an earlier call end a moment after it. Without room the leader would compute all itself.
        deadline = time.monotonic() + patience
        while room_of(connect(cluster), cluster, 1, on_gpu=False) < 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        found, modes = [], set()
        for result in computed(parts, functools.partial(make, folder), resources, uses_model=True):
            found.append(result)
            modes |= {path.stat().st_mode & 0o777 for path in folder.glob("work/*/*")}
        return found, modes


def done_by(folder):
    """The nodes that parts were done on."""
    lines = (folder / "log").read_text().splitlines() if (folder / "log").exists() else []
    return {line.split()[0] for line in lines} - {"0"}


def test_parts_come_in_order_from_two_nodes_and_ray_sees_no_text(nodes, tmp_path):
    """One worker dies meanwhile, and another takes its part over."""
    parts = [f"wait {0.5 if number % 3 else 1.5} {number} {LARGE}" for number in range(9)]
    parts.insert(2, f"die-once {LARGE}")
    found, modes = run(nodes, tmp_path, parts)
    assert found == [f"{part} done" for part in parts]
    assert (tmp_path / "died").exists()
    assert len(done_by(tmp_path)) == 2
    assert modes == {0o600}
    assert not list(tmp_path.glob("work/*/*"))
    assert holders(nodes) == []
    # As it would be seen.
    nodes.leader(put, parts[0])
    assert len(holders(nodes)) == 1


def put(text):
    put.reference = ray().put(text)


def ray():
    # Only in a leader: Ray reads the environment when it is imported.
    return importlib.import_module("ray")


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


def test_a_machine_that_goes_away_loses_no_part_however_often_ray_calls_its_worker(nodes, tmp_path):
    third = nodes.add(1, private=1)
    # On a busy machine the others would have done all before the third one has started.
    parts = [f"wait-for {third} {number}" for number in range(9)]

    def kill_at_work():
        wait_for(str(third), tmp_path)
        nodes.kill(third)

    killer = threading.Thread(target=kill_at_work)
    killer.start()
    try:
        assert run(nodes, tmp_path, parts)[0] == [f"{part} done" for part in parts]
    finally:
        killer.join()
    assert str(third) in done_by(tmp_path)


def wait_for(number, folder):
    """Return when a node has begun a part, or after a minute."""
    deadline = time.monotonic() + 60
    while number not in done_by(folder) and time.monotonic() < deadline:
        time.sleep(0.2)


def test_a_part_that_workers_die_of_ends_the_work_in_one_line(nodes, tmp_path):
    with pytest.raises(ResourceError, match=r"^workers of the cluster have died"):
        run(nodes, tmp_path, ["wait 0", "die"])


def test_an_error_of_a_worker_quotes_no_text(nodes, tmp_path):
    message = "^the worker on the machine .* failed: ValueError at test_ray_cluster.py:[0-9]+ in scripted$"
    with pytest.raises(StageError, match=message) as caught:
        run(nodes, tmp_path, ["wait 0", f"defect {CANARY}"])
    assert CANARY not in str(caught.value)


def test_a_cluster_that_cannot_be_used_is_one_line(nodes, tmp_path):
    with leader() as unconnected:
        for address in ("127.0.0.1:1", "127.0.0.1:99999"):
            with pytest.raises(ResourceError, match=f"'{address}': no Ray cluster answers there"):
                unconnected(connect_as, address)
        with pytest.raises(ResourceError, match=r"Version mismatch: .*2\.59\.0.*must run on all machines$") as caught:
            unconnected(connect_as, nodes.address, "2.59.0")
        assert "\n" not in str(caught.value)
        with pytest.raises(ResourceError, match=r"Ray is not installed: pip install -e '.\[cluster\]'"):
            unconnected(connect_as, "auto", None)
    with pytest.raises(ResourceError, match="no machine of the cluster has the label 'other'"):
        run(nodes, tmp_path, ["wait 0"] * 2, label="other")


def connect_as(address, version="2.60.0"):
    """Connect as another version of Ray would, or where it is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        if version:
            patch.setattr("ray.__version__", version)
        else:
            patch.setitem(sys.modules, "ray", None)
        connect(ClusterSettings(address=address, private_nodes="private"))


def test_a_machine_with_other_code_computes_nothing(nodes, tmp_path):
    with pytest.raises(ResourceError, match="has other code than the one that leads"):
        run(nodes, tmp_path, ["wait 0"] * 2, code_hash=str)
