"""The commands of a run's stages on the machines of a Ray cluster, as the leading machine sees them.

The leader's DVC decides, locks and records each stage. Only its command runs elsewhere, on the file system that all
machines share (the shell of ``flows.stages.processes`` asks for it, ``flows.cluster.node`` runs it). If the leader
dies, Ray ends the commands that it started. If a node dies, its stages fail with a temporary error, and are retried
elsewhere.
"""

import os
import re
import select
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from flows.checkout.run_lock import STATE_FOLDER
from flows.cluster.node import RANK, meeting_point, run_command
from flows.graph.graph import Graph, open_repository, read_graph
from flows.runs.preparation import first_that_fits
from flows.stages.asking import NUMBER, receive
from flows.stages.executor import log_name
from tasks.errors import PASSING, ResourceError
from tasks.files.separate_paths import overlap
from tasks.ray_cluster import SHARE_OF_LABEL, connect, machines_with
from tasks.settings.resources import ResourceSettings, StageNeeds

_LOOK_SECONDS = 0.5
TOLD = ("DVC_", "PREFECT__", "OMP_NUM_THREADS")
"""Prefixes of environment variables that a command gets from the leader; all others are the node's."""
LOST = "the node that ran it was lost"
"""Error of a stage whose machine, or whose process there, has died."""


class Cluster:
    """A connection to the cluster while a run lasts; used as a context."""

    def __init__(self, resources: ResourceSettings, folder: Path) -> None:
        assert resources.cluster is not None  # checked by the caller
        self._settings, self._resources = resources.cluster, resources
        self._folder = folder.absolute()
        self._private: frozenset[str] = frozenset()
        self._remote: Any = None
        self._serving = ThreadPoolExecutor(max_workers=256, thread_name_prefix="stage on a node")
        self._is_closing = threading.Event()
        self.ran_on: dict[str, str] = {}
        """A line that names the node, for each stage whose command has succeeded."""
        self._sockets = tempfile.TemporaryDirectory(prefix="palimpsest-")

    def __enter__(self) -> "Cluster":
        with open_repository(self._folder) as repository:
            self._private = private_stages(read_graph(repository))
        ray = connect(self._settings)
        machines_with(ray, self._settings)
        self._remote = ray.remote(run_command)
        # A folder of its own, which no other user can enter.
        self.address = f"{self._sockets.name}/socket"
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(self.address)
        self._door.listen(64)
        threading.Thread(target=self._listen, name="cluster", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        import ray

        self._is_closing.set()
        self._door.shutdown(socket.SHUT_RDWR)
        # Ray crashes if a thread waits for it while it shuts down.
        self._serving.shutdown()
        ray.shutdown()  # ends what is left of this run
        self._sockets.cleanup()

    def _listen(self) -> None:
        with self._door, suppress(OSError):  # it is shut down at the end
            while True:
                self._serving.submit(self._serve, self._door.accept()[0])

    def _serve(self, line: socket.socket) -> None:
        with line, suppress(EOFError, OSError):
            arguments, folder, environment, files = receive(line)
            told = {name: value for name, value in environment.items() if name.startswith(TOLD)}
            try:
                status, said = self._run(line, environment["DVC_STAGE"], arguments[-1], folder, told)
                os.write(files[1], f"{said}\n".encode() if said else b"")
                line.sendall(NUMBER.pack(status))
            finally:
                for file in files:
                    os.close(file)

    def _run(
        self, line: socket.socket, stage: str, command: str, folder: str, environment: Mapping[str, str]
    ) -> tuple[int, str]:
        """Status and message of one command; cancelled if its caller has gone."""
        from ray.exceptions import RayError, RayTaskError

        try:
            return self._on_machines(line, stage, command, folder, environment)
        except ResourceError as error:
            return 1, f"palimpsest: error: {error}"
        except RayTaskError as error:
            # Ray has this in its text only.
            where = re.search(r"ip=([^,)]+)", str(error))
            node = where[1] if where else "that took it"
            cannot = f"the node {node} cannot run it ({type(error.cause).__name__})"
            return 1, f"palimpsest: error: {cannot}; start its Ray from this project's environment (.venv)"
        except RayError as error:
            return PASSING, f"palimpsest: error: {LOST} ({type(error).__name__})"

    def _on_machines(
        self, line: socket.socket, stage: str, command: str, folder: str, environment: Mapping[str, str]
    ) -> tuple[int, str]:
        import ray

        needs = needs_of(self._resources, stage.split("@", 1)[0])
        amounts = self._amounts(needs, stage)
        self._refuse_without_room(needs, amounts)

        def wait(running: list[Any]) -> tuple[list[Any], list[Any]]:
            """Return the finished commands, and those that run or wait for a machine, while waiting makes sense."""
            ended, running = ray.wait(running, timeout=_LOOK_SECONDS)
            if select.select([line], [], [], 0)[0] or self._is_closing.is_set():
                raise EOFError
            if not ended:
                self._refuse_without_room(needs, amounts, f"{LOST}: ")
            return ray.get(ended), running

        log = str(Path(STATE_FOLDER) / "logs" / log_name(stage))
        running = []
        with machines(needs.nodes, amounts, wait) as (places, host, port):
            try:
                for rank, place in enumerate(places):
                    # DVC removes a dead machine's partial output before the next try, so Ray retries nothing.
                    start = self._remote.options(name=stage, max_retries=0, **place)
                    whole = with_torchrun(command, self._resources.devices, rank, len(places), host, port)
                    running.append(start.remote(stage, whole, folder, log, {**environment, RANK: str(rank)}))
                where = []
                while running:
                    ended, running = wait(running)
                    for status, said in ended:
                        if status:
                            return int(status), str(said)
                        where.append(str(said))
                self.ran_on[stage] = "; ".join(where)
                return 0, "\n".join(where)
            finally:
                # A lost one ends all that train with it.
                for one in running:
                    ray.cancel(one)

    def _amounts(self, needs: StageNeeds, stage: str) -> dict[str, float]:
        """The amounts that one machine must have, by Ray's names."""
        wanted = {"CPU": needs.cores or 0, "GPU": needs.gpus, "memory": needs.memory_gib * 2**30}
        return wanted | ({self._settings.private_nodes: SHARE_OF_LABEL} if stage in self._private else {})

    def _refuse_without_room(self, needs: StageNeeds, amounts: Mapping[str, float], before: str = "") -> None:
        """Raise ``ResourceError`` if no machines of the cluster can ever take the stage."""
        import ray

        alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        fit = [node for node in alive if all(node.get(name, 0) >= amount for name, amount in amounts.items())]
        if len(fit) < needs.nodes:
            label = self._settings.private_nodes
            where = f" with the label {label!r}" if label in amounts else ""
            have = f"{needs.cores:g} cores, {needs.gpus:g} GPUs and {needs.memory_gib:g} GiB"
            raise ResourceError(
                f"{before}{len(fit)} machines of the cluster{where} have {have}, and it needs {needs.nodes}; add some, "
                "or ask for less under resources.cluster.needs"
            )


@contextmanager
def machines(
    number: int, amounts: Mapping[str, float], wait: Callable[[list[Any]], tuple[list[Any], list[Any]]]
) -> Iterator[tuple[list[dict[str, Any]], str, int]]:
    """Ray's options to place a command on each of ``number`` machines, and the address and port to meet.

    ``amounts``: resources of each machine. All are reserved, or none; ``wait`` waits for a free one.
    """
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    named = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
    asked: dict[str, Any] = {option: amounts[name] for option, name in named.items()}
    asked["resources"] = {name: amount for name, amount in amounts.items() if name not in named.values()}
    if number == 1:
        yield [asked], "", 0
        return
    group = placement_group([{name: amount for name, amount in amounts.items() if amount}] * number, "STRICT_SPREAD")
    try:
        places = [{"scheduling_strategy": PlacementGroupSchedulingStrategy(group, index)} for index in range(number)]
        meet = ray.remote(meeting_point).options(num_cpus=0, **places[0])
        found, waiting = wait([meet.remote()])
        while waiting:
            found, waiting = wait(waiting)
        ((host, port),) = found
        yield [{**asked, **place} for place in places], host, port
    finally:
        remove_placement_group(group)


def with_torchrun(command: str, devices: int, rank: int, nodes: int, host: str, port: int) -> str:
    """The command of a machine that trains together with others; unchanged for one machine."""
    if nodes == 1:
        return command
    program, arguments = command.split(maxsplit=1)
    if program != "palimpsest":
        raise ResourceError(f"resources.cluster.needs: nodes is {nodes}, and {program!r} trains nothing; set it to 1")
    return (
        f"torchrun --nnodes {nodes} --nproc-per-node {devices} --node-rank {rank} --master-addr {host} "
        f"--master-port {port} -m tasks.cli {arguments}"
    )


def needs_of(resources: ResourceSettings, step: str) -> StageNeeds:
    """The needs of a step's stages for a node, from the first entry that fits."""
    assert resources.cluster is not None  # checked by the caller
    found = first_that_fits(resources.cluster.needs, step) or StageNeeds()
    return found if found.cores else found.model_copy(update={"cores": resources.threads * resources.devices})


def private_stages(graph: Graph) -> frozenset[str]:
    """Return the stages that read or write private files.

    An output with ``push: false`` is private, and so is an input that is neither in git nor made by another stage.
    """
    tracked = tracked_paths()
    found = set()
    for name, node in graph.items():
        made = [output for above in node.upstream for output in graph[above].stage.outs]
        makers = {path: [one for one in made if overlap(path, str(one))] for path in node.dependencies}
        used = [*node.stage.outs, *(output for outputs in makers.values() for output in outputs)]
        if not all(output.can_push for output in used) or any(
            not outputs and path not in tracked for path, outputs in makers.items()
        ):
            found.add(name)
    return frozenset(found)


def tracked_paths() -> frozenset[str]:
    """The files that git tracks in the working folder, and their parent folders; empty without git."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True)
    files = [name for name in listed.stdout.split("\0") if name]
    return frozenset(files) | {str(above) for name in files for above in PurePosixPath(name).parents}
