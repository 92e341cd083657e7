"""The plan and the run against DVC's own commands, on graphs of stages that do next to nothing.

    python -m benchmarks graph_speed              10 and 100 stages
    python -m benchmarks.graph_speed 10 100 1000  other sizes
    PALIMPSEST_GRAPH_SIZES=10,100,1000 python -m benchmarks graph_speed     the same, written to the results

Every graph is half wide and half deep: a first stage, a fan of stages behind it, one stage behind each of these, and
one that gathers all. The peer is `dvc repro` of the same version in an equal project. Both sides are run with a
new interpreter each time; what they leave (the outputs and dvc.lock) is compared before a time is reported.

What bare DVC takes for a stage grows with the graph: of 1,000 stages it had done 709 after 19 minutes. Above
``WHOLE_PEER`` stages it is therefore not run from nothing, but handed a copy of what ours has made, and only the times
with nothing to do are compared; PALIMPSEST_GRAPH_WHOLE_PEER=1000 has it run through.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]
REPEATS = 3
WHOLE_PEER = int(os.environ.get("PALIMPSEST_GRAPH_WHOLE_PEER", "100"))
PLAN_SECONDS = 10.0
"""What a plan of 1,000 stages may take."""
GROWTH_SECONDS = 0.1
"""How much longer a stage of the largest graph may take than one of the smallest that has at least 100."""


def run(sizes: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    """One row per question and size; seconds of wall time."""
    sizes = sizes or tuple(int(size) for size in os.environ.get("PALIMPSEST_GRAPH_SIZES", "10,100").split(","))
    rows, costs = [], {}
    with tempfile.TemporaryDirectory(prefix="palimpsest graph ") as folder:
        for size in sorted(sizes):
            measured, costs[size] = measure(Path(folder), size)
            rows += measured
    # Of ten stages the seconds of a start are a tenth each: too coarse to compare with.
    compared = [size for size in costs if size >= 100]
    if len(compared) > 1:
        small, large = min(compared), max(compared)
        name = f"a stage of {large} stages, peer: the same of {small} stages"
        growth = costs[large] - costs[small]
        rows.append(row(name, costs[large], costs[small], "s", growth, GROWTH_SECONDS))
    return rows


def measure(folder: Path, stages: int) -> tuple[list[dict[str, Any]], float]:
    """The rows of one size, and what a stage takes through us."""
    ours, peer = make_project(folder / f"ours {stages}", stages), folder / f"peer {stages}"
    whole = stages <= WHOLE_PEER
    if whole:
        make_project(peer, stages)
    environment = {
        **os.environ,
        "PYTHONPATH": str(CHECKOUT),
        "PREFECT_HOME": str(folder / "prefect"),
        "DVC_SITE_CACHE_DIR": str(folder / "dvc"),
        "DVC_NO_ANALYTICS": "1",
    }
    environment.pop("PREFECT_API_URL", None)

    def palimpsest(*arguments: str) -> str:
        return call([sys.executable, "-m", "tasks.cli", *arguments], ours, environment)

    def dvc() -> str:
        return call([sys.executable, "-m", "dvc", "repro"], peer, environment)

    if not (folder / "prefect").exists():
        # The first start of Prefect's server makes its database; that is no cost of a graph.
        (folder / "prefect").mkdir()
        warm = make_project(folder / "warm", 4)
        call([sys.executable, "-m", "tasks.cli", "run"], warm, environment)

    peer_run = seconds(dvc) if whole else 0.0
    ours_run = seconds(lambda: palimpsest("run", "--jobs", "1", "--json"))
    if not whole:
        shutil.copytree(ours, peer, ignore=shutil.ignore_patterns(".palimpsest"))
    compare(ours, peer, stages)
    base = prefect_start(folder, environment)
    ours_idle, peer_idle, plan = medians(
        lambda: expect_nothing(palimpsest("run", "--json"), stages), dvc, lambda: palimpsest("plan", "--json")
    )
    per_stage, peer_per_stage = (ours_run - base) / stages, peer_run / stages
    rows = [
        row(
            f"plan of {stages} stages, peer: dvc repro with nothing to do",
            plan,
            peer_idle,
            "s",
            plan / peer_idle,
            1.0,
        ),
        row(f"run with nothing to do, {stages} stages", ours_idle, peer_idle, "s", ours_idle / peer_idle, 1.0),
    ]
    if whole:
        # The target is a difference, so the claim is one: seconds that a stage takes longer than under dvc repro.
        added = per_stage - peer_per_stage
        rows.append(row(f"added per stage, {stages} stages", per_stage, peer_per_stage, "s", added, 1.0))
    else:
        rows.append(row(f"a stage of {stages} stages, seconds", per_stage, None, "s", per_stage, 1.0))
    if stages == 1000:
        rows.append(row("plan of 1000 stages, seconds", plan, None, "s", plan, PLAN_SECONDS))
    return rows, per_stage


def row(name: str, ours: float, peer: float | None, unit: str, ratio: float, target: float) -> dict[str, Any]:
    return {
        "name": name,
        "ours": round(ours, 3),
        "peer": None if peer is None else round(peer, 3),
        "unit": unit,
        "ratio": round(ratio, 3),
        "target": target,
        "holds": ratio <= target,
    }


def make_project(folder: Path, stages: int) -> Path:
    """A repository whose graph has ``stages`` stages, an even number of at least four."""
    width = (stages - 2) // 2
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".dvc").mkdir()
    (folder / ".dvc" / "config").write_text("[core]\n    analytics = false\n    check_update = false\n")
    (folder / ".dvc" / ".gitignore").write_text("/config.local\n/tmp\n/cache\n")
    (folder / ".gitignore").write_text("/out\n/.palimpsest\n")
    shutil.copy(CHECKOUT / "params.yaml", folder)
    numbers = ", ".join(map(str, range(width)))
    (folder / "dvc.yaml").write_text(
        f"""stages:
  first:
    cmd: mkdir -p out; echo 1 > out/first
    params: [generic]
    outs: [out/first]
  wide:
    matrix: {{number: [{numbers}]}}
    cmd: mkdir -p out/wide; echo ${{item.number}} > out/wide/${{item.number}}
    params: [filling.top_k]
    deps: [out/first]
    outs: ["out/wide/${{item.number}}"]
  deep:
    matrix: {{number: [{numbers}]}}
    cmd: mkdir -p out/deep; cat out/wide/${{item.number}} > out/deep/${{item.number}}
    deps: ["out/wide/${{item.number}}"]
    outs: ["out/deep/${{item.number}}"]
  last:
    cmd: cat out/deep/* > out/last
    deps: [out/deep]
    outs: [out/last]
"""
    )
    return folder


def call(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def compare(ours: Path, peer: Path, stages: int) -> None:
    """Both sides made the same files and recorded the same stages."""

    def made(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file()
        }

    def recorded(folder: Path) -> dict[str, Any]:
        from ruamel.yaml import YAML

        return YAML(typ="safe").load((folder / "dvc.lock").read_text())["stages"]

    if made(ours) != made(peer) or recorded(ours) != recorded(peer) or len(recorded(ours)) != stages:
        raise RuntimeError(f"the two drivers made different things of {stages} stages")


def expect_nothing(output: str, stages: int) -> None:
    if json.loads(output)["counts"]["unchanged"] != stages:
        raise RuntimeError("a stage ran although nothing had changed")


def prefect_start(folder: Path, environment: dict[str, str]) -> float:
    """Seconds of a run of one trivial stage: the start of the interpreter, of Prefect and of its server.

    Taken off a run's time, so that what is left is the cost of its stages.
    """
    project = folder / "start"
    if not project.exists():
        make_project(project, 4)

    def one_stage() -> None:
        shutil.rmtree(project / "out", ignore_errors=True)
        shutil.rmtree(project / ".dvc" / "cache", ignore_errors=True)
        (project / "dvc.lock").unlink(missing_ok=True)
        call([sys.executable, "-m", "tasks.cli", "run", "first"], project, environment)

    return medians(one_stage)[0]


def seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def medians(*works: Callable[[], Any]) -> list[float]:
    """The median of each, taken in turns, so that a busy moment of the machine meets all of them."""
    turns = [[seconds(work) for work in works] for _ in range(REPEATS)]
    return [statistics.median(turn[place] for turn in turns) for place in range(len(works))]


if __name__ == "__main__":
    for one in run(tuple(int(size) for size in sys.argv[1:])):
        print(json.dumps(one), flush=True)
