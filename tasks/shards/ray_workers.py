"""Workers on the machines of a Ray cluster (extra ``cluster``), over a file system that all of them share.

No private text goes through Ray, whose logs and spilled objects lie in open folders: a shard, what makes a worker, what
comes of a shard and why one failed are files of the ``ShardStore``; actors hear numbers and answer with them, and what
they print is lost.

An actor takes shards from the moment that Ray has placed it. One that dies, alone or with its machine, loses the shard
that it was at; another actor is asked for in its place.
"""

import contextlib
import logging
import os
import pickle
import socket
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tasks import telemetry
from tasks.errors import ResourceError
from tasks.settings.resources import ClusterSettings
from tasks.shards.shard_store import read_pickle, shard_path, write_pickle
from tasks.shards.work_key import surroundings
from tasks.shards.workers import Make, Work, WorkerLost, error_of, nothing

if TYPE_CHECKING:
    from ray.actor import ActorClass, ActorMethod

NAMESPACE = "palimpsest"
SHARE_OF_LABEL = 0.001
"""Of it a stage or an actor asks for so much: it marks a machine, and limits nothing."""
_SECONDS_TO_ANSWER = 5
_MADE, _FAILED = "make.pickle", "failed.pickle"


def connect(cluster: ClusterSettings) -> ModuleType:
    """The module ``ray``, connected; what is connected already stays so.

    Raises ``ResourceError`` where Ray is not installed, or no cluster of this version answers at the address.
    """
    try:
        import ray
    except ImportError:
        raise ResourceError(
            "resources.cluster is set, and Ray is not installed: pip install -e '.[cluster]', or set it to null"
        ) from None
    if ray.is_initialized():
        return ray
    telemetry.switch_off()
    named = f"resources.cluster.address {cluster.address!r}"
    try:
        if cluster.address != "auto":
            # Ray itself tries for a minute, and says much meanwhile.
            host, _, port = cluster.address.rpartition(":")
            socket.create_connection((host.strip("[]"), int(port)), _SECONDS_TO_ANSWER).close()
        ray.init(address=cluster.address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError) as error:
        reason = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
        raise ResourceError(
            f"{named}: no Ray cluster answers there{reason}; start one with 'ray start --head' from this project's "
            "environment, or set resources.cluster to null"
        ) from None
    except RuntimeError as error:
        said = " ".join(str(error).split())
        raise ResourceError(f"{named}: {said}; the same versions must run on all machines") from None
    return ray


def machines_with(ray: ModuleType, cluster: ClusterSettings) -> list[dict[str, float]]:
    """What each machine for private text has; ``ResourceError`` where there is none."""
    label = cluster.private_nodes
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get(label)]
    if not nodes:
        raise ResourceError(
            f"resources.cluster.private_nodes: no machine of the cluster has the label {label!r}; start those that may "
            f"see private text with ray start --resources='{{\"{label}\": 1}}'"
        )
    return nodes


def room_of(ray: ModuleType, cluster: ClusterSettings, threads: int, *, on_gpu: bool) -> int:
    """How many workers the machines for private text have room for when they are idle.

    ``ResourceError`` where there is no such machine.
    """
    rooms = [(node.get("CPU", 0) // threads, node.get("GPU", 0)) for node in machines_with(ray, cluster)]
    return int(sum(min(each) if on_gpu else each[0] for each in rooms))


class ShardActor:
    """What runs on a machine of the cluster."""

    def __init__(self, folder: str) -> None:
        """``folder``: of the shards."""
        self._folder = Path(folder)
        self._work: Work | None = None
        # Ray writes what actors print to files that others may read.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def begin(self) -> None:
        """Answers when the actor is there."""

    def compute(self, index: int) -> int:
        """Read a shard and write what comes of it; returns its number, -1 where it failed."""
        try:
            self._work = self._work or self._made()
            shard = read_pickle(_given(self._folder, index))
            write_pickle(shard_path(self._folder, index), self._work(shard, nothing))
            return index
        except BaseException as error:
            write_pickle(self._folder / _FAILED, error_of(error, f"the machine {socket.gethostname()}"))
            return -1

    def _made(self) -> Work:
        made = read_pickle(self._folder / _MADE)
        os.chdir(made["folder"])
        sys.path[:] = made["path"]
        telemetry.switch_off()
        there = made["surroundings"]
        if not there["on_gpu"]:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        here = surroundings(there["threads"], uses_model=there["on_gpu"] is not None)
        if other := [name for name in here if here[name] != there[name]]:
            raise ResourceError(
                f"the machine {socket.gethostname()} of the cluster has other {', '.join(other)} than the one that "
                "leads, and would compute other numbers; install the same on both"
            )
        make: Make = pickle.loads(made["make"])
        return make()


def _given(folder: Path, index: int) -> Path:
    return folder / f"{index:08d}.given"


def ray_workers(
    cluster: ClusterSettings, folder: Path, make: Make, threads: int, *, uses_model: bool
) -> list["RayWorker"]:
    """As many workers as the cluster has room for; ``folder``: of the shards.

    Each asks for a GPU where this process sees one, and sees none otherwise: all are to compute the same numbers.
    Raises what ``connect`` and ``room_of`` do.
    """
    ray, folder = connect(cluster), folder.resolve()
    here = surroundings(threads, uses_model=uses_model)
    on_gpu = bool(here["on_gpu"])
    made = {"make": pickle.dumps(make), "surroundings": here, "folder": os.getcwd(), "path": sys.path}
    write_pickle(folder / _MADE, made)
    actor = ray.remote(ShardActor).options(
        num_cpus=threads, num_gpus=int(on_gpu), resources={cluster.private_nodes: SHARE_OF_LABEL}, max_restarts=0
    )
    return [RayWorker(ray, actor, folder) for _ in range(room_of(ray, cluster, threads, on_gpu=on_gpu))]


class RayWorker:
    """See ``Worker``: one actor after the other."""

    def __init__(self, ray: ModuleType, actor: "ActorClass[ShardActor]", folder: Path) -> None:
        self._ray, self._ask, self._folder = ray, actor, folder
        self._lock, self._is_over = threading.Lock(), False
        self._actor: Any = None

    def begin(self) -> None:
        """Ask for an actor and wait until Ray has placed it."""
        with self._lock:
            if self._is_over:
                raise WorkerLost
            self._actor = self._ask.remote(str(self._folder))
        self._answer(self._actor.begin)

    def compute(self, index: int, shard: object) -> object:
        """Write what the actor is to read, and read what it has written."""
        given = _given(self._folder, index)
        write_pickle(given, shard)
        if self._answer(self._actor.compute, index) != index:
            raise read_pickle(self._folder / _FAILED)
        given.unlink(missing_ok=True)
        return read_pickle(shard_path(self._folder, index))

    def end(self) -> None:
        """End the actor, placed or not."""
        with self._lock, contextlib.suppress(Exception):
            self._is_over = True
            self._ray.kill(self._actor)

    def _answer(self, method: "ActorMethod", *numbers: int) -> object:
        try:
            return self._ray.get(method.remote(*numbers))
        except self._ray.exceptions.RayError:
            raise WorkerLost from None
