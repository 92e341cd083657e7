"""``palimpsest run`` and ``plan`` against DVC's own commands, on graphs of stages that do next to nothing.

    PALIMPSEST_GRAPH_SIZES=10,100,300 python -m benchmarks graph

A graph is half wide and half deep: a first stage, a fan of stages, one stage after each of these, and one that gathers
all. Both sides start a new interpreter each time, one stage after another. Outputs and ``dvc.lock`` are compared first.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from ruamel.yaml import YAML

from benchmarks.frame import ROOT, check_same, row, take_turns, wall

GRAPH = """stages:
  first:
    cmd: mkdir -p out; echo 1 > out/first
    params: [generic]
    outs: [out/first]
  wide:
    matrix: {{number: {numbers}}}
    cmd: mkdir -p out/wide; echo ${{item.number}} > out/wide/${{item.number}}
    params: [filling.top_k]
    deps: [out/first]
    outs: ["out/wide/${{item.number}}"]
  deep:
    matrix: {{number: {numbers}}}
    cmd: mkdir -p out/deep; cat out/wide/${{item.number}} > out/deep/${{item.number}}
    deps: ["out/wide/${{item.number}}"]
    outs: ["out/deep/${{item.number}}"]
  last:
    cmd: cat out/deep/* > out/last
    deps: [out/deep]
    outs: [out/last]
"""
OURS, DVC = [sys.executable, "-m", "tasks.cli"], [sys.executable, "-m", "dvc"]


def run(small: bool) -> list[dict[str, Any]]:
    sizes = "4" if small else os.environ.get("PALIMPSEST_GRAPH_SIZES", "10,100")
    with tempfile.TemporaryDirectory(prefix="palimpsest graph ") as folder:
        # The first start of Prefect's server makes its database; that is no cost of a graph.
        (Path(folder) / "prefect").mkdir()
        call([*OURS, "run"], make_project(Path(folder) / "warm", 4))
        return [each for size in sizes.split(",") for each in rows(Path(folder), int(size))]


def rows(folder: Path, stages: int) -> list[dict[str, Any]]:
    """A run of all stages, one with nothing to do, and a plan."""
    ours, peer = (make_project(folder / f"{side} {stages}", stages) for side in ("ours", "peer"))
    run, repro = partial(call, [*OURS, "run", "--jobs", "1", "--json"], ours), partial(call, [*DVC, "repro"], peer)
    plan, status = partial(call, [*OURS, "plan", "--json"], ours), partial(call, [*DVC, "status"], peer)
    whole = wall(run), wall(repro)
    check_same(outcome(ours), outcome(peer), f"graph of {stages} stages")
    if json.loads(run())["counts"]["unchanged"] != stages:
        raise AssertionError("a stage ran although nothing had changed")
    again, repro_again, planned, asked = map(median, take_turns(3, run, repro, plan, status, clock=wall))
    return [
        row(f"run of {stages} stages against dvc repro", *whole, "s", ">= 1.0"),
        row(f"run of {stages} stages with nothing to do against dvc repro", again, repro_again, "s", ">= 1.0"),
        row(f"plan of {stages} stages with nothing to do against dvc status", planned, asked, "s", ">= 1.0"),
    ]


def make_project(folder: Path, stages: int) -> Path:
    """A repository whose graph has ``stages`` stages, an even number of at least four."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".dvc").mkdir()
    (folder / ".dvc" / "config").write_text("[core]\n    analytics = false\n    check_update = false\n")
    (folder / ".dvc" / ".gitignore").write_text("/config.local\n/tmp\n/cache\n")
    (folder / ".gitignore").write_text("/out\n/.palimpsest\n")
    shutil.copy(ROOT / "params.yaml", folder)
    (folder / "dvc.yaml").write_text(GRAPH.format(numbers=list(range((stages - 2) // 2))))
    return folder


def call(command: list[str], project: Path) -> str:
    """The standard output of a command that must succeed."""
    own = {"PYTHONPATH": str(ROOT), "PREFECT_HOME": str(project.parent / "prefect"), "DVC_NO_ANALYTICS": "1"}
    environment = {**os.environ, **own, "DVC_SITE_CACHE_DIR": str(project.parent / "dvc")}
    environment.pop("PREFECT_API_URL", None)
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def outcome(project: Path) -> list[Any]:
    """The files that a graph made, and the stages that DVC recorded."""
    files = sorted(path for path in (project / "out").rglob("*") if path.is_file())
    recorded = YAML(typ="safe").load((project / "dvc.lock").read_text())["stages"]
    return [recorded, *((path.relative_to(project), path.read_bytes()) for path in files)]
