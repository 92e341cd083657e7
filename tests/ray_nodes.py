"""A Ray cluster on this machine's loopback, whose nodes can be added and killed; it ends with whoever started it.

As a program: reads ``add LABELS CORES GPUS`` and ``kill NUMBER`` from standard input, answers each with one
line, and stops everything at its end. ``ray start`` refuses a second node on loopback; Ray's own tests start theirs as
this does.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

MEMORY = 80 << 20
ENVIRONMENT = {
    # Only then Ray takes 127.0.0.1 for its address.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


class RayNodes:
    """The cluster, from a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """Ray's own files: logs, spilled objects."""
        self.environment = {**ENVIRONMENT, "RAY_TMPDIR": str(folder)}
        # Ray starts no node with more GPUs than this shows, and the tests of the processor show none.
        inherited = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
        with open(folder / "errors", "w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, __file__],
                env={**inherited, **self.environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
        self.address = self._answer()

    def add(self, cores: int = 1, gpus: int = 0, **labels: float) -> int:
        """Start a node; its number, which its processes know as ``RAY_RAYLET_PID``."""
        return int(self._answer(f"add {json.dumps(labels)} {cores} {gpus}"))

    def kill(self, number: int) -> None:
        """Kill all that runs on a node."""
        self._answer(f"kill {number}")

    def _answer(self, request: str | None = None) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if request:
            print(request, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert answer, (self.folder / "errors").read_text()
        return answer

    def close(self) -> None:
        """Stop every process of it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@contextmanager
def ray_nodes() -> Iterator[RayNodes]:
    """A cluster of a head that takes no work; nodes are added."""
    # Short: the paths of its sockets have at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    nodes = RayNodes(folder)
    try:
        yield nodes
    finally:
        nodes.close()
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    from ray.cluster_utils import Cluster

    temporary = os.environ["RAY_TMPDIR"]
    os.makedirs(f"{temporary}/ray")
    common = {"object_store_memory": MEMORY, "include_dashboard": False, "temp_dir": temporary}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **common})
    nodes: dict[int, Any] = {}
    print(cluster.address, flush=True)
    for line in sys.stdin:
        what, rest = line.split(" ", 1)
        if what == "add":
            labels, cores, gpus = rest.strip().rsplit(" ", 2)
            has = {"num_cpus": int(cores), "num_gpus": int(gpus), "resources": json.loads(labels)}
            node = cluster.add_node(**has, **common)
            (raylet,) = node.all_processes["raylet"]
            nodes[raylet.process.pid] = node
            print(raylet.process.pid, flush=True)
        else:
            # As by a power cut: Ray itself would leave what its workers have started.
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    if process.environ().get("RAY_RAYLET_PID") == str(int(rest)):
                        process.kill()
            cluster.remove_node(nodes[int(rest)], allow_graceful=False)
            print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
