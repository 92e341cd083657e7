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
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from scratch_project import until

from tasks.errors import PalimpsestError, ResourceError
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
    raylet, (what, *_) = os.environ["RAY_RAYLET_PID"], part.split(" ")
    with open(folder / "log", "a") as log:
        log.write(f"{raylet}\n")
    if what == "wait":
        until((folder / "killed").exists, 120)
    elif what == "defect":
        raise ValueError(f"{CANARY} private words")
    elif what == "die" or (what == "die-once" and not (folder / "died").exists()):
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    print(f"printed {part}", flush=True)
    return f"{part} done"


def make(folder):
    return functools.partial(scripted, folder)


def run(nodes, folder, parts, **given):
    """What comes of the parts, and the modes of the files that they passed through."""
    return nodes.leader(lead, nodes.address, folder, parts, **given)


def lead(address, folder, parts, label="private", code_hash=None, workers=1):
    cluster = ClusterSettings(address=address, private_nodes=label)
    resources = ResourceSettings(threads=1, parallel_stages=1, cluster=cluster, work_folder=str(folder / "work"))
    with pytest.MonkeyPatch.context() as patch:
        if code_hash:
            patch.setattr("tasks.surroundings.code_hash", code_hash)
        # Workers of an earlier call end a moment after it. Without room the leader would compute all itself.
        until(lambda: room_of(connect(cluster), cluster, 1, on_gpu=False) >= workers)
        found, modes = [], set()
        for result in computed(parts, functools.partial(make, folder), resources, uses_model=True):
            found.append(result)
            modes |= {path.stat().st_mode & 0o777 for path in folder.glob("work/*/*")}
        return found, modes


def done_by(folder):
    """The nodes that parts were begun on."""
    return set((folder / "log").read_text().split()) if (folder / "log").exists() else set()


def test_parts_come_in_order_whoever_dies_and_ray_sees_no_text(nodes, tmp_path):
    """A machine goes away at work, and then a worker dies: others take their parts over, once each."""
    third = nodes.add(1, private=1)
    # More than Ray hands to the first two workers, before the third one has started.
    parts = [*(f"wait {number} {LARGE}" for number in range(12)), f"die-once {LARGE}"]

    def kill_at_work():
        until(lambda: str(third) in done_by(tmp_path), 120)
        nodes.kill(third)
        (tmp_path / "killed").touch()

    killer = threading.Thread(target=kill_at_work)
    killer.start()
    try:
        found, modes = run(nodes, tmp_path, parts, workers=3)
    finally:
        killer.join()
    assert found == [f"{part} done" for part in parts]
    assert (tmp_path / "died").exists()
    assert len(done_by(tmp_path)) == 3
    assert modes == {0o600}
    assert not list(tmp_path.glob("work/*/*"))
    assert holders(nodes) == []
    # As it would be seen.
    nodes.leader(put, parts[0])
    assert len(holders(nodes)) == 1


def put(text):
    # Only in a leader: Ray reads the environment when it is imported.
    put.reference = importlib.import_module("ray").put(text)


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


@pytest.mark.parametrize(
    ("part", "code_hash", "message"),
    [
        ("die", None, "^workers of the cluster have died"),
        (
            f"defect {CANARY}",
            None,
            "^the worker on the machine .* failed: ValueError at test_ray_cluster.py:[0-9]+ in scripted$",
        ),
        ("work", str, "has other code than the one that leads"),
    ],
    ids=["every worker dies", "defect", "other code"],
)
def test_what_fails_on_a_machine_ends_the_work_in_one_line_without_text(nodes, tmp_path, part, code_hash, message):
    with pytest.raises(PalimpsestError, match=message) as caught:
        run(nodes, tmp_path, ["work", part], code_hash=code_hash)
    assert CANARY not in str(caught.value)


def test_a_cluster_that_cannot_be_used_is_one_line(nodes, tmp_path):
    with leader() as unconnected:
        with pytest.raises(ResourceError, match=r"'127\.0\.0\.1:1': no Ray cluster answers there"):
            unconnected(connect_as, "127.0.0.1:1")
        with pytest.raises(ResourceError, match=r"Version mismatch: .*2\.59\.0.*must run on all machines$") as caught:
            unconnected(connect_as, nodes.address, "2.59.0")
        assert "\n" not in str(caught.value)
        with pytest.raises(ResourceError, match=r"Ray is not installed: pip install -e '.\[cluster\]'"):
            unconnected(connect_as, "auto", None)
    with pytest.raises(ResourceError, match="no machine of the cluster has the label 'other'"):
        run(nodes, tmp_path, ["work"] * 2, label="other")


def connect_as(address, version="2.60.0"):
    """Connect as another version of Ray would, or where it is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        if version:
            patch.setattr("ray.__version__", version)
        else:
            patch.setitem(sys.modules, "ray", None)
        connect(ClusterSettings(address=address, private_nodes="private"))
