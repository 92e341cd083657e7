"""What a run does with Prefect beyond starting stages: overrides on record, retries, tags, cancellation."""

import json
import signal
import subprocess
import time
from itertools import pairwise

import pytest
from prefect_server import ask, cancel
from scratch_project import ALL, Project

TABLE = "cat filled/*.txt > table.txt"
BUSY_ONCE = """if test ! -e tried; then
  touch tried
  echo "palimpsest: error: the MLflow store 'http://x' cannot be used (ConnectionError); start its server" >&2
  exit 75
fi
"""


def git(project: Project, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=project.folder, capture_output=True, text=True, check=True)
    return done.stdout


def test_overrides_are_a_dvc_experiment_and_leave_the_file_as_it_was(committed: Project, prefect_url: str) -> None:
    before, status = committed.read("params.yaml"), git(committed, "status", "--porcelain")
    index = git(committed, "ls-files", "--stage")
    done = committed.palimpsest(
        "run", "--set", "filling.top_k.k=20", "--only", "method=top_k", "--json", PREFECT_API_URL=prefect_url
    )
    assert done.returncode == 0, done.stderr
    ran = [stage["name"] for stage in json.loads(done.stdout)["stages"] if stage["state"] == "ran"]
    assert ran == ["fill@list-top_k", "fill@tagger-top_k"]
    assert committed.read("params.yaml") == before
    assert git(committed, "ls-files", "--stage") == index
    assert git(committed, "status", "--porcelain").replace(" M dvc.lock\n", "") == status
    (reference,) = git(committed, "for-each-ref", "--format=%(refname)", "refs/exps/??/**").split()
    name = reference.rsplit("/", 1)[-1]
    assert f"recorded as the DVC experiment '{name}'" in done.stderr

    # DVC knows it, with its parameter; and bringing it back gives the parameters, and nothing is left to compute.
    shown = json.loads(committed.dvc("exp", "show", "--json"))
    (experiment,) = shown[1]["experiments"]
    assert experiment["name"] == name
    assert experiment["revs"][0]["data"]["params"]["params.yaml"]["data"]["filling"]["top_k"]["k"] == 20
    git(committed, "checkout", "--quiet", "dvc.lock")
    committed.dvc("checkout", "--quiet")
    committed.dvc("exp", "apply", name)
    assert "k: 20}" in committed.read("params.yaml")
    assert "Running stage" not in committed.dvc("repro", *ran)


def test_without_a_commit_nothing_is_overridden(finished: Project) -> None:
    done = finished.command("run", "--set", "filling.top_k.k=20")
    assert done.returncode == 1
    assert "--set records a DVC experiment on a git commit, and there is none yet" in done.stderr
    assert "k: 10}" in finished.read("params.yaml")


@pytest.mark.slow
def test_retries_and_tags(project: Project, prefect_url: str) -> None:
    project.write("busy.sh", BUSY_ONCE)
    project.replace("dvc.yaml", "cmd: cat in.txt", "cmd: sh busy.sh && cat in.txt")
    project.replace("dvc.yaml", TABLE, "exit 4")
    settings = "retry_seconds: 0.1, concurrency: {scarce: {limit: 1, steps: [fill]}}"
    project.replace("params.yaml", "resources: {", f"resources: {{{settings}, ")
    done = project.palimpsest("run", "--json", "--jobs", "4", PREFECT_API_URL=prefect_url)
    stages = {stage["name"]: stage for stage in json.loads(done.stdout)["stages"]}
    assert {name: stage["attempts"] for name, stage in stages.items()} == dict.fromkeys(ALL, 1) | {"raw": 2}
    assert stages["table"]["error"] == "its command ended with status 4"

    flow_run = ask(prefect_url, "/flow_runs/filter", {"sort": "START_TIME_DESC", "limit": 1})[0]["id"]
    mine = {"flow_runs": {"id": {"any_": [flow_run]}}}
    tasks = {task["name"]: task for task in ask(prefect_url, "/task_runs/filter", mine)}
    assert {name: task["run_count"] for name, task in tasks.items()} == dict.fromkeys(ALL, 1) | {"raw": 2}
    fills = sorted((tasks[name] for name in ALL if name.startswith("fill")), key=lambda task: task["start_time"])
    assert all(task["tags"] == ["scarce"] for task in fills)
    assert all(one["end_time"] <= other["start_time"] for one, other in pairwise(fills))


def test_cancelling_in_prefect_ends_a_run_of_the_terminal(project: Project, prefect_url: str) -> None:
    project.replace("dvc.yaml", TABLE, f"touch begun; test -e quick || sleep 60; {TABLE}")
    run = project.start("run", PREFECT_API_URL=prefect_url)
    project.wait_for("begun", run)
    (flow_run,) = ask(prefect_url, "/flow_runs/filter", {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}})
    started = time.monotonic()
    cancel(prefect_url, flow_run["id"])
    output, errors = run.communicate(timeout=60)
    assert time.monotonic() - started < 30
    assert run.returncode == 128 + signal.SIGTERM
    assert "cancelled in Prefect; finished stages are saved" in errors
    assert "7 ran, 1 failed" in output
    assert ask(prefect_url, f"/flow_runs/{flow_run['id']}", None)["state_name"] == "Cancelled"
    project.write("quick", "")
    assert project.dvc("repro").count("Running stage") == 1
