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

from benchmarks.frame import ROOT, row, take_turns, wall

REPEATS = 3
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
        _call([*OURS, "run"], make_project(Path(folder) / "warm", 4))
        return [each for size in sizes.split(",") for each in _rows(Path(folder), int(size))]


def _rows(folder: Path, stages: int) -> list[dict[str, Any]]:
    ours, peer = (make_project(folder / f"{side} {stages}", stages) for side in ("ours", "peer"))
    again = [*OURS, "run", "--json"]
    whole = (
        wall(partial(_call, [*OURS, "run", "--jobs", "1", "--json"], ours)),
        wall(partial(_call, [*DVC, "repro"], peer)),
    )
    _check_same(ours, peer, stages)
    if json.loads(_call(again, ours))["counts"]["unchanged"] != stages:
        raise AssertionError("a stage ran although nothing had changed")
    commands = ((again, ours), ([*DVC, "repro"], peer), ([*OURS, "plan", "--json"], ours), ([*DVC, "status"], peer))
    idle = map(median, take_turns(REPEATS, *(partial(_call, *each) for each in commands), clock=wall))
    run_again, repro_again, plan, status = idle
    return [
        row(f"run of {stages} stages against dvc repro", *whole, "s", ">= 1.0"),
        row(f"run of {stages} stages with nothing to do against dvc repro", run_again, repro_again, "s", ">= 1.0"),
        row(f"plan of {stages} stages with nothing to do against dvc status", plan, status, "s", ">= 1.0"),
    ]


def make_project(folder: Path, stages: int) -> Path:
    """A repository whose graph has ``stages`` stages, an even number of at least four."""
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / ".dvc").mkdir()
    (folder / ".dvc" / "config").write_text("[core]\n    analytics = false\n    check_update = false\n")
    (folder / ".dvc" / ".gitignore").write_text("/config.local\n/tmp\n/cache\n")
    (folder / ".gitignore").write_text("/out\n/.palimpsest\n")
    shutil.copy(ROOT / "params.yaml", folder)
    (folder / "dvc.yaml").write_text(GRAPH.format(numbers=list(range((stages - 2) // 2))))
    return folder


def _call(command: list[str], project: Path) -> str:
    own = {"PYTHONPATH": str(ROOT), "PREFECT_HOME": str(project.parent / "prefect"), "DVC_NO_ANALYTICS": "1"}
    environment = {**os.environ, **own, "DVC_SITE_CACHE_DIR": str(project.parent / "dvc")}
    environment.pop("PREFECT_API_URL", None)
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def _check_same(ours: Path, peer: Path, stages: int) -> None:
    """Both sides made the same files and recorded the same stages."""
    made = [
        {path.relative_to(side): path.read_bytes() for path in (side / "out").rglob("*") if path.is_file()}
        for side in (ours, peer)
    ]
    recorded = [YAML(typ="safe").load((side / "dvc.lock").read_text())["stages"] for side in (ours, peer)]
    if made[0] != made[1] or recorded[0] != recorded[1] or len(recorded[0]) != stages:
        raise AssertionError(f"the two drivers made different things of {stages} stages")
