"""What shards cost and win: time a shard on a slow file system, scaling and memory of masking and of a cheap fill.

    python -m benchmarks.shards     twenty minutes on two cores; writes results/shards.json

- Overhead: 10,000 shards of one line, whose work is nothing, where each file that is written or read takes some
  milliseconds more. Only what nobody can do meanwhile is taken off: one process looks for a shard and writes it, one
  that has workers looks for it, and they wait for their files at the same time.
- Scaling: ``palimpsest mask`` (CRF tagger) and ``palimpsest fill`` (unigram), 1,000,000 lines each, by one
  process, by two, and by one or two beside as many actors of a Ray cluster. Processor seconds are of all processes
  together, memory is the peak of the process that leads, efficiency is that of as many workers as there are cores. All
  write the same bytes. ``--lines 10000000`` fills so many in place of a million.
"""

import argparse
import functools
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

import psutil

from benchmarks.masking_speed import messages
from tasks.records.stage_report import environment, write_json
from tasks.settings.resources import ClusterSettings, ResourceSettings
from tasks.shards import ray_workers, shard_store
from tasks.shards.sharded_work import ShardedWork

RESULTS = Path(__file__).parent / "results" / "shards.json"
SHARDS, LATENCY = 10_000, 0.002
TARGET_OVERHEAD = 0.020
MASKED_LINES, FILLED_LINES = 1_000_000, 1_000_000
TARGET_EFFICIENCY = 0.8
WITH_ACTOR = "one process and an actor"
KINDS = {"one process": (1, 0), "two processes": (2, 0), WITH_ACTOR: (1, 1), "two processes and two actors": (2, 2)}
"""Processes of this machine, and actors."""


def main() -> int:
    from tasks import telemetry

    telemetry.switch_off()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=FILLED_LINES, metavar="N", help="fill so many")
    filled_lines = parser.parse_args().lines
    machine = {key: environment()[key] for key in ("processor", "cores", "system", "python")}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in chain(overheads(Path(folder)), scaling(Path(folder), filled_lines)):
            print(json.dumps(row), flush=True)
            rows.append(row)
            write_json(RESULTS, {"date": datetime.now(UTC).date().isoformat(), "machine": machine, "rows": rows})
    return 0


@contextmanager
def _cluster(kind: str) -> Iterator[ClusterSettings | None]:
    """A cluster of one machine with a core for each actor of the kind."""
    actors = KINDS[kind][1]
    if not actors:
        yield None
        return
    from ray_nodes import ray_nodes

    with ray_nodes() as nodes:
        os.environ.update(nodes.environment)
        nodes.add(actors, private=1)
        yield ClusterSettings(address=nodes.address, private_nodes="private")
        if "ray" in sys.modules:
            sys.modules["ray"].shutdown()


def overheads(folder: Path) -> Iterator[dict[str, Any]]:
    """Seconds a shard."""
    for kind in (WITH_ACTOR, "two processes", "one process"):
        with _cluster(kind) as cluster:
            resources = ResourceSettings(
                threads=1,
                parallel_stages=1,
                work_folder=str(folder / "work"),
                devices=KINDS[kind][0],
                cluster=cluster,
            )
            work: ShardedWork[str] = ShardedWork(
                (f"line {number}" for number in range(SHARDS)),
                functools.partial(_slow_work, os.getpid()),
                resources,
                uses_model=False,
                output=str(folder / "out"),
                key=lambda: "0" * 32,
            )
            _slow_files()
            began, cpu = time.perf_counter(), _Processors()
            assert sum(1 for _ in work.finished()) == SHARDS
            seconds = (time.perf_counter() - began) / SHARDS
            processors = cpu.seconds() / SHARDS
            work.remove()
        # What this process waits for in vain: it looks for a shard before it gives it away.
        waited = LATENCY * (2 if kind == "one process" else 1)
        yield {
            "name": f"overhead of a shard, {kind}",
            "seconds": round(seconds, 5),
            "simulated_seconds": waited,
            "overhead_seconds": round(seconds - waited, 5),
            "processor_seconds": round(processors, 5),
            "files": round(_slow.count / SHARDS, 2),
            "target": f"below {TARGET_OVERHEAD} s beyond the simulated time",
            "holds": seconds - waited < TARGET_OVERHEAD,
        }


class _Slow:
    """Files of a slow file system, counted."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, action: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(action)
        def slow(*given: Any) -> Any:
            self.count += 1
            time.sleep(LATENCY)
            return action(*given)

        return slow


_slow = _Slow()
_read, _write = shard_store.read_pickle, shard_store.write_pickle


def _slow_files() -> None:
    _slow.count = 0
    for module in (shard_store, ray_workers):
        module.read_pickle, module.write_pickle = _slow(_read), _slow(_write)  # type: ignore[attr-defined]


def _slow_work(leader: int) -> Callable[..., str]:
    if os.getpid() != leader:
        _slow_files()
    return lambda shard, advance: shard


def scaling(folder: Path, filled_lines: int) -> Iterator[dict[str, Any]]:
    """Seconds, processor seconds and memory of whole commands."""
    sentences = messages()
    cores = len(os.sched_getaffinity(0))
    for step, lines, options in (
        ("mask", MASKED_LINES, ["--technique", "entity_tagger", "--set", "tagger={kind: crf}", "--output", "mask.txt"]),
        ("fill", filled_lines, ["--method", "unigram", "--output", "fill.txt"]),
    ):
        with open(folder / "text.txt", "w", encoding="utf-8") as stream:
            stream.writelines(f"{sentences[number % len(sentences)]}\n" for number in range(lines))
        if step == "fill":
            masked = ["mask", "--technique", "allow_list", "--input", "text.txt", "--output", "masked.txt"]
            yield {"name": f"allow list on {lines:,} lines, one process", **_timed(masked, folder)}
            os.replace(folder / "masked.txt", folder / "text.txt")
        written = set()
        alone = None
        for kind, (devices, actors) in KINDS.items():
            with _cluster(kind) as cluster:
                more = ["--input", "text.txt", "--set", f"resources.devices={devices}"]
                more += ["--set", f"resources.cluster={cluster.model_dump_json()}"] if cluster else []
                row = _timed([step, *options, *more], folder)
            written.add(hashlib.sha256((folder / f"{step}.txt").read_bytes()).hexdigest())
            row = {"name": f"{step} of {lines:,} lines, {kind}", **row, "same_bytes": len(written) == 1}
            alone = alone or row["seconds"]
            if (workers := devices + actors) > 1:
                efficiency = alone / row["seconds"] / min(workers, cores)
                row |= {"efficiency": round(efficiency, 3), "target": f"at least {TARGET_EFFICIENCY}"}
                row["holds"] = efficiency >= TARGET_EFFICIENCY
            yield row


def _timed(arguments: list[str], folder: Path) -> dict[str, Any]:
    began, cpu = time.perf_counter(), _Processors()
    command = [sys.executable, "-m", "tasks.cli", *arguments, "--report", "report.json", "--threads", "1"]
    path = {"PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run(command, cwd=folder, env=os.environ | path, check=True, stderr=subprocess.DEVNULL)
    measured = json.loads((folder / "report.json").read_text())
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "processor_seconds": round(cpu.seconds(), 2),
        "peak_mebibytes": round(measured["peak_memory_bytes"] / 2**20, 1),
    }


class _Processors:
    """Processor seconds from now on: of this process, its children, and actors, which Ray has started."""

    def __init__(self) -> None:
        self._actors: dict[int, float] = {}
        self._before = self._own()
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def seconds(self) -> float:
        self._over.set()
        return self._own() - self._before + sum(self._actors.values())

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            for process in psutil.process_iter(["name", "cmdline"]):
                with suppress(psutil.Error):
                    if "ShardActor" in " ".join(process.info["cmdline"] or ()):
                        times = process.cpu_times()
                        self._actors[process.pid] = times.user + times.system

    @staticmethod
    def _own() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    # By its name: what an actor is to compute it imports.
    from benchmarks.shards import main as benchmark

    sys.exit(benchmark())
