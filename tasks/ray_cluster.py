"""The machines of a Ray cluster (extra ``cluster``), which share a file system; parts of a text on them.

No private text goes through Ray, whose logs and spilled objects are in open folders: parts, workers' functions, results
and errors are private files. Ray Data passes their numbers on, in order. If a worker dies, alone or with its machine,
Ray Data gives its number to another.
"""

import logging
import os
import pickle
import shutil
import socket
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tasks import process_environment
from tasks.errors import PalimpsestError, ResourceError, StageError
from tasks.files.atomic_file import PRIVATE_MODE, private_work_folder
from tasks.settings.resources import ClusterSettings, ResourceSettings
from tasks.surroundings import surroundings

if TYPE_CHECKING:
    from pyarrow import Table

    from tasks.parts import Advance, Make, Work

NAMESPACE = "palimpsest"
SHARE_OF_LABEL = 0.001
"""Amount of the label that a stage or a worker requests: it marks a machine, and limits nothing."""
DEFAULT_WORK_FOLDER = ".palimpsest/parts"
_SECONDS_TO_ANSWER = 5
_MOST_LOSSES = 3
"""Number of workers that may die at a part. Ray itself tries a part without end: it counts each call of a worker whose
machine is gone as a try."""
_DEAD = "workers of the cluster have died, as they do when memory runs out; lower resources.parallel_stages"
_REMOVALS = 100
_MADE, _FAILED = "make.pickle", "failed.pickle"


def connect(cluster: ClusterSettings) -> ModuleType:
    """The module ``ray``, connected; an existing connection stays.

    Raises ``ResourceError`` if Ray is not installed, or no cluster of this version answers at the address.
    """
    try:
        import ray
    except ImportError:
        raise ResourceError(
            "resources.cluster is set, and Ray is not installed: pip install -e '.[cluster]', or set it to null"
        ) from None
    if ray.is_initialized():
        return ray
    process_environment.set_variables()
    named = f"resources.cluster.address {cluster.address!r}"
    try:
        if cluster.address != "auto":
            # Ray itself tries for a minute, with many messages.
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
    """The resources of each machine for private text; ``ResourceError`` if there is none."""
    label = cluster.private_nodes
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get(label)]
    if not nodes:
        raise ResourceError(
            f"resources.cluster.private_nodes: no machine of the cluster has the label {label!r}; start those that may "
            f"see private text with ray start --resources='{{\"{label}\": 1}}'"
        )
    return nodes


def room_of(ray: ModuleType, cluster: ClusterSettings, threads: int, *, on_gpu: bool) -> int:
    """The number of workers that fit on the machines for private text, at most as many as are idle now.

    ``ResourceError`` if there is no such machine.
    """
    rooms = [(node.get("CPU", 0) // threads, node.get("GPU", 0)) for node in machines_with(ray, cluster)]
    room = sum(min(each) if on_gpu else each[0] for each in rooms)
    idle = ray.available_resources()
    return int(min(room, idle.get("CPU", 0) // threads, idle.get("GPU", 0) if on_gpu else room))


def computed_on_cluster(
    parts: Iterable[object], make: "Make", resources: ResourceSettings, *, uses_model: bool, advance: "Advance"
) -> Iterator[Any]:
    """The results of all parts, in order.

    A single part is computed here, and so are all if the cluster has no room now: stages that wait for each other would
    hang. Raises the errors of ``connect`` and ``machines_with``, ``ResourceError`` if workers die at a part, and a
    worker's error.
    """
    assert resources.cluster is not None, "the caller has checked it"
    ray = connect(resources.cluster)
    here = surroundings(resources.threads, uses_model=uses_model)
    with private_work_folder(resources.work_folder or DEFAULT_WORK_FOLDER) as work:
        folder, number = work.resolve(), 0
        for number, part in enumerate(parts, 1):
            _write(_given(folder, number - 1), part)
        room = min(number, room_of(ray, resources.cluster, resources.threads, on_gpu=bool(here["on_gpu"])))
        if number < 2 or not room:
            own = make() if number else None
            results = (own(_read(_given(folder, index)), advance) for index in range(number) if own)
        else:
            plain = {"make": pickle.dumps(make), "surroundings": here, "folder": os.getcwd(), "path": sys.path}
            _write(folder / _MADE, plain)
            results = (_read(path) for path in _by_workers(ray, folder, number, room, resources, here))
        try:
            yield from results
        finally:
            _remove(folder)


def _remove(folder: Path) -> None:
    """Remove the folder although workers that are being stopped may still write into it."""
    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.1)


def _by_workers(
    ray: ModuleType, folder: Path, number: int, room: int, resources: ResourceSettings, here: dict[str, Any]
) -> Iterator[Path]:
    """The files with the parts' results, in order, each to be read before the next."""
    import ray.data as ray_data

    assert resources.cluster is not None, "the caller has checked it"
    context = ray_data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    numbers = ray_data.from_items([{"part": index} for index in range(number)], override_num_blocks=number)
    done = numbers.map_batches(
        PartWorker,
        fn_constructor_args=[str(folder)],
        batch_size=1,
        batch_format="pyarrow",
        compute=ray_data.ActorPoolStrategy(size=room),
        num_cpus=resources.threads,
        num_gpus=int(bool(here["on_gpu"])),
        resources={resources.cluster.private_nodes: SHARE_OF_LABEL},
    )
    batch: Any
    try:
        for batch in done.iter_batches(batch_size=1, batch_format="pyarrow", prefetch_batches=0):
            (index,) = batch["part"].to_pylist()
            if index < 0:
                raise _read(folder / _FAILED)
            yield _result(folder, index)
            _result(folder, index).unlink()
    except ray.exceptions.RayError as error:
        raise ResourceError(f"{_DEAD} ({type(error).__name__})") from None


class PartWorker:
    """Worker on a machine of the cluster: takes numbers of parts, and returns them, -1 for a failure."""

    def __init__(self, folder: str) -> None:
        """``folder``: that of the parts."""
        self._folder = Path(folder)
        self._work: Work | None = None
        # Ray writes workers' output to files that others may read.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    def __call__(self, batch: "Table") -> "Table":
        """Read a part and write its result."""
        import pyarrow

        (index,) = batch["part"].to_pylist()
        try:
            taken = self._taken(index)
            self._work = self._work or self._made()
            _write(_result(self._folder, index), self._work(_read(_given(self._folder, index)), lambda steps: None))
            taken.unlink()
        except BaseException as error:
            _write(self._folder / _FAILED, error_of(error))
            index = -1
        return pyarrow.table({"part": [index]})

    def _taken(self, index: int) -> Path:
        """The file that counts workers at work on a part; ``ResourceError`` if too many have died at it."""
        path = self._folder / f"{index:08d}.taken"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_MODE), "ab") as taken:
            taken.write(b".")
            if taken.tell() > _MOST_LOSSES:
                raise ResourceError(_DEAD)
        return path

    def _made(self) -> "Work":
        made = _read(self._folder / _MADE)
        os.chdir(made["folder"])
        sys.path[:] = made["path"]
        process_environment.set_variables()
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


def error_of(error: BaseException) -> PalimpsestError:
    """A safe form of a worker's error: its message may quote text, its location does not."""
    if isinstance(error, PalimpsestError):
        return error
    frame = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}"
    return StageError(f"the worker on the machine {socket.gethostname()} failed: {type(error).__name__} at {place}")


def _given(folder: Path, index: int) -> Path:
    return folder / f"{index:08d}.given"


def _result(folder: Path, index: int) -> Path:
    return folder / f"{index:08d}.result"


def _write(path: Path, value: object) -> None:
    """Write a private file, complete or not at all; if a worker dies while writing, another repeats it."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_MODE), "wb") as stream:
        pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    partial.replace(path)


def _read(path: Path) -> Any:  # noqa: ANN401 - what was written
    """Read a file of ``_write``: nobody else can write into a private folder."""
    return pickle.loads(path.read_bytes())
