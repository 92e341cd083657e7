"""Stages on the machines of a Ray cluster: each once, private ones where they may be, whoever dies meanwhile."""

import importlib.util
import json
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prefect_server import ask
from ray_nodes import RayNodes, ray_nodes
from scratch_project import Project, make_project, until

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is an extra: '.[cluster]'")

STAGE = (
    'echo "begun {name} $RAY_RAYLET_PID" >> counts; echo "GPUs <$CUDA_VISIBLE_DEVICES>"; {command}; '
    'echo "done {name} $RAY_RAYLET_PID" >> counts'
)
CELLS = [f"{technique}-{number}" for technique in ("list", "tagger") for number in (1, 2)]


PUBLIC = {"generic", "pretrain"}


def stage(name: str, command: str, deps: list[str], out: str) -> object:
    """A stage, or one for each cell; its output is private unless it is one of two."""
    outs = [out if name in PUBLIC else private(out)]
    definition = {"cmd": STAGE.format(name=name, command=command), "deps": deps, "outs": outs}
    return {"foreach": CELLS, "do": definition} if "@" in name else definition


def private(path: str) -> dict[str, object]:
    return {path: {"push": False}}


FILL, ADAPT = "sleep 0.5; cat corpus.txt > fill-${item}", "sleep 1; cat pretrained fill-${item} > adapted-${item}"
GRAPH = {
    "generic": stage("generic", "cat generic.txt > generic.out", ["generic.txt"], "generic.out"),
    "pretrain": stage("pretrain", "cat generic.out > pretrained", ["generic.out"], "pretrained"),
    "corpus": stage("corpus", "cat raw.txt; cat raw.txt > corpus.txt", ["raw.txt"], "corpus.txt"),
    "fill": stage("fill@${item}", FILL, ["corpus.txt"], "fill-${item}"),
    "adapt": stage("adapt@${item}", ADAPT, ["pretrained", "fill-${item}"], "adapted-${item}"),
    "table": stage("table", "cat adapted-* | wc -l > table", [f"adapted-{cell}" for cell in CELLS], "table"),
}
STAGES = {"generic", "pretrain", "corpus", "table", *(f"{step}@{cell}" for step in ("fill", "adapt") for cell in CELLS)}


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    """A cluster whose head takes no work, with a machine that may not see private text."""
    with ray_nodes() as made:
        made.add(6)
        yield made


@pytest.fixture(scope="module")
def trusted(nodes: RayNodes) -> int:
    """A smaller machine that may see private text, and says that it has two GPUs."""
    return nodes.add(3, gpus=2, private=1)


CANARY = "Zyxwquill"
"""Part of the raw text."""


@pytest.fixture
def project(
    tmp_path: Path, nodes: RayNodes, trusted: int, prefect_url: str, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """Private text, a graph over it, and the cluster in params.yaml."""
    assert trusted
    for name, value in {**nodes.environment, "PREFECT_API_URL": prefect_url}.items():
        monkeypatch.setenv(name, value)
    made = make_project(tmp_path / "a project", yaml.safe_dump({"stages": GRAPH}, sort_keys=False, width=1000))
    made.write(".gitignore", "/raw.txt\n")
    made.write("generic.txt", "generic\n")
    made.git("add", "--all")
    made.write("raw.txt", f"{CANARY} went home\n")
    set_cluster(made, address=nodes.address, private_nodes="private")
    return made


def set_cluster(project: Project, **settings: object) -> None:
    parameters = yaml.safe_load(project.read("params.yaml"))
    parameters["resources"] |= {"cluster": settings, "parallel_stages": 6, "retries": 5, "retry_seconds": 0.5}
    project.write("params.yaml", yaml.safe_dump(parameters))


def records(project: Project, kind: str) -> list[tuple[str, str]]:
    """Stage and machine of every command that has begun, or is done."""
    if not (project.folder / "counts").exists():
        return []
    lines = [line.split() for line in project.read("counts").splitlines()]
    return [(name, machine) for what, name, machine in lines if what == kind]


def run_to_the_end(project: Project) -> None:
    done = project.palimpsest("run")
    assert done.returncode == 0, done.stdout + done.stderr


def check_each_once(project: Project, killed: set[str]) -> None:
    """Every stage is done, twice only where somebody died meanwhile, and DVC has nothing left to do."""
    begun, done = ([name for name, _ in records(project, kind)] for kind in ("begun", "done"))
    assert set(done) == STAGES
    assert {name for name in begun if begun.count(name) > 1} <= killed
    assert project.read("table").split() == [str(2 * len(CELLS))]
    assert "up to date" in project.dvc("repro")


def test_each_stage_runs_once_where_it_may_and_only_its_command_goes_through_ray(
    project: Project, nodes: RayNodes, trusted: int, prefect_url: str
) -> None:
    set_cluster(project, address=nodes.address, private_nodes="private", needs={"fill": {"gpus": 1}})
    run_to_the_end(project)
    check_each_once(project, set())
    assert {machine for name, machine in records(project, "done") if name not in PUBLIC} == {str(trusted)}
    logs = {name: project.read(f".palimpsest/logs/{name}.log") for name in STAGES}
    # What a stage prints is in its log here, and nowhere in Ray's files.
    assert CANARY in logs["corpus"]
    node = f"ran on the node {socket.gethostname()}"
    assert node in logs["corpus"]
    for name, log in logs.items():
        # A stage sees the GPUs that it asked for.
        shown_gpus = ["GPUs <0>", "GPUs <1>"] if name.startswith("fill") else ["GPUs <>"]
        assert any(gpus in log for gpus in shown_gpus), name
    # On a busy machine Prefect sends a log again, so each task counts once.
    shown = {entry["task_run_id"] for entry in ask(prefect_url, "/logs/filter", {}) if node in entry["message"]}
    assert len(shown) == len(STAGES)
    files = [path for path in nodes.folder.rglob("*") if path.is_file()]
    assert any(b"fill@list" in path.read_bytes() for path in files)
    assert not any(CANARY.encode() in path.read_bytes() for path in files)


@pytest.mark.slow
@pytest.mark.parametrize("dies", ["machines", "leader"])
def test_whoever_dies_each_finished_stage_is_done_once(project: Project, nodes: RayNodes, dies: str) -> None:
    """Stages of a machine that dies are done elsewhere; a run that is killed goes on where it was."""
    mortal = [nodes.add(3, private=1), nodes.add(3, private=1)] if dies == "machines" else []
    run, killed = project.start("run"), set[str]()
    for place, step in enumerate(("fill", "adapt")):
        until(lambda: sum(name.startswith(step) for name, _ in records(project, "begun")) > 2)  # noqa: B023 - called here
        done = {name for name, _ in records(project, "done")}
        killed |= {name for name, _ in records(project, "begun")} - done
        if mortal:
            nodes.kill(mortal[place])
        else:
            run.kill()
            run.communicate()
            run = project.start("run")
    output, errors = run.communicate(timeout=120)
    assert run.returncode == 0, output + errors
    check_each_once(project, killed)
    assert len(records(project, "begun")) > len(STAGES)


def test_a_run_that_is_stopped_stops_what_runs_on_the_machines(project: Project) -> None:
    project.replace("dvc.yaml", "sleep 1; ", "sleep 100; ")
    run = project.start("run", "adapt@list-1")
    until(lambda: any(name.startswith("adapt") for name, _ in records(project, "begun")))
    run.send_signal(signal.SIGINT)
    output, errors = run.communicate(timeout=30)
    assert run.returncode == 130, output + errors
    until_ended("sleep 100; cat pretrained")


def until_ended(command: str) -> None:
    until(lambda: not subprocess.run(["pgrep", "-f", command], capture_output=True).stdout, 15)


def test_what_no_machine_has_is_said_in_one_line(project: Project, nodes: RayNodes) -> None:
    needs = {"fill": {"gpus": 3, "nodes": 2}}
    set_cluster(project, address=nodes.address, private_nodes="private", needs=needs)
    said = "0 machines of the cluster with the label 'private' have 1 cores, 3 GPUs and 0 GiB, and it needs 2; add some"
    fails(project, said, "fill@list-1")


def fails(project: Project, said: str, *stages: str) -> None:
    """A run ends with an error, without a traceback."""
    failed = project.palimpsest("run", *stages)
    assert failed.returncode == 1
    assert said in failed.stdout + failed.stderr
    assert "Traceback" not in failed.stderr


TRAINING = """
stages:
  vocabulary:
    cmd: |-
      palimpsest count-words --input raw.txt --output counts.tsv
      palimpsest vocabulary --word-counts counts.tsv --output vocabulary --set size=200 --set minimum_count=1
    deps: [raw.txt]
    outs: [counts.tsv: {push: false}, vocabulary: {push: false}]
  train:
    cmd: palimpsest pretrain --vocabulary vocabulary --input raw.txt --valid raw.txt --output model
      --report report.json --set architecture.layers=1 --set architecture.width=16 --set architecture.heads=2
      --set resources.checkpoint_seconds=0 --set pretraining.epochs=1
    deps: [vocabulary, raw.txt]
    outs: [model: {push: false}]
    metrics: [report.json: {push: false}]
"""


@pytest.mark.slow
def test_machines_train_one_model_together_and_end_together(project: Project, nodes: RayNodes) -> None:
    mortal = nodes.add(2, private=1)
    set_cluster(project, address=nodes.address, private_nodes="private", needs={"train": {"nodes": 2}})
    project.write("raw.txt", "".join(f"{a} {b} {c}\n" for a in "stuv" for b in "klmnop" for c in "abcdefgh"))
    project.write("dvc.yaml", TRAINING)
    run_to_the_end(project)
    measured = json.loads(project.read("report.json"))["measured"]
    assert (measured["nodes"], measured["devices"], measured["strategy"]) == (2, 1, "ddp")

    project.replace("dvc.yaml", "epochs=1\n", "epochs=100000\n")
    run = project.start("run")
    until(lambda: subprocess.run(["pgrep", "-f", "epochs=100000"], capture_output=True).stdout)
    time.sleep(15)  # it trains
    nodes.kill(mortal)
    output, errors = run.communicate(timeout=60)
    assert "1 machines of the cluster with the label 'private' have" in output + errors
    assert run.returncode == 1
    until_ended("epochs=100000")
