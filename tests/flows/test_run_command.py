"""``palimpsest run`` as users start it: real Prefect flows on a small graph."""

import json
import os
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from prefect_server import ask, cancel
from scratch_project import ALL, Project, until

from flows.checkout.run_lock import is_alive
from flows.runs.preparation import drop_torn_entries

TABLE = "cat filled/*.txt > table.txt"
WAITS = f"touch begun; test -e quick || sleep 60; {TABLE}"
"""Waits before the table unless there is a file of this name."""
BUSY_ONCE = """if test ! -e tried; then
  touch tried
  echo "palimpsest: error: the MLflow store 'http://x' cannot be used (ConnectionError); start its server" >&2
  exit 75
fi
"""


def states(text: str) -> dict[str, str]:
    return {stage["name"]: stage["state"] for stage in json.loads(text)["stages"]}


def processes_in(folder: Path) -> list[int]:
    """Living processes whose working folder is the project."""
    found = psutil.process_iter(["cwd"])
    return [process.pid for process in found if process.info["cwd"] == str(folder) and is_alive(process.pid)]


def refused_in_one_line(done: "subprocess.CompletedProcess[str]", *said: str) -> None:
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for text in said:
        assert text in done.stderr


def test_a_failing_branch_does_not_stop_the_others(project: Project, prefect_url: str) -> None:
    project.replace("dvc.yaml", "mkdir -p masked; ", "mkdir -p masked; test ${item.technique} = list && ")
    done = project.palimpsest("run", "--json", PREFECT_API_URL=prefect_url)
    assert done.returncode == 1, done.stderr
    expected = {name: "skipped" if "tagger" in name else "ran" for name in ALL}
    assert states(done.stdout) == expected | {"mask@tagger": "failed", "table": "skipped"}

    # Prefect's own record: one task a stage that was started, named by it, two at once, and a failed flow run.
    (flow,) = ask(prefect_url, "/flow_runs/filter", {"sort": "START_TIME_DESC", "limit": 1})
    mine = {"flow_runs": {"id": {"any_": [flow["id"]]}}}
    recorded = ask(prefect_url, "/task_runs/filter", mine)
    times = [(task["start_time"], task["end_time"]) for task in recorded]
    assert max(sum(start <= begun < end for start, end in times) for begun, _ in times) == 2
    tasks = {task["name"]: task["state_type"] for task in recorded}
    started = [name for name, state in states(done.stdout).items() if state == "ran"]
    assert tasks == dict.fromkeys(started, "COMPLETED") | {"mask@tagger": "FAILED"}
    assert (flow["state_type"], flow["parameters"]["jobs"], flow["parameters"]["only"]) == ("FAILED", 2, [])

    # A server that is configured is used; no other is started.
    assert not (project.folder / ".palimpsest" / "logs" / "prefect-server.log").exists()


@pytest.mark.parametrize("by", ["Ctrl-C", "Prefect"])
def test_a_stopped_or_cancelled_run_ends_within_seconds_and_can_be_resumed(
    project: Project, prefect_url: str, by: str
) -> None:
    project.replace("dvc.yaml", TABLE, WAITS)
    run = project.start("run", PREFECT_API_URL=prefect_url)
    project.wait_for("begun", run)
    (flow,) = ask(prefect_url, "/flow_runs/filter", {"flow_runs": {"state": {"type": {"any_": ["RUNNING"]}}}})
    started = time.monotonic()
    if by == "Ctrl-C":
        run.send_signal(signal.SIGINT)
    else:
        cancel(prefect_url, flow["id"])
    output, errors = run.communicate(timeout=60)
    assert time.monotonic() - started < (12 if by == "Ctrl-C" else 30)
    assert run.returncode == 128 + (signal.SIGINT if by == "Ctrl-C" else signal.SIGTERM)
    assert ("stopped; " if by == "Ctrl-C" else "cancelled in Prefect; ") + "finished stages are saved" in errors
    assert "7 ran, 1 failed" in output
    assert output.splitlines()[-1] == "1 stopped before it had finished: table"
    assert by == "Ctrl-C" or ask(prefect_url, f"/flow_runs/{flow['id']}", None)["state_name"] == "Cancelled"
    assert processes_in(project.folder) == []
    assert project.read(".dvc/tmp/rwlock") == "{}"
    project.write("quick", "")
    assert "Running stage 'table'" in (rest := project.dvc("repro"))
    assert rest.count("Running stage") == 1


def test_a_killed_run_leaves_nothing_behind_and_the_next_one_goes_on(project: Project, prefect_url: str) -> None:
    """Also: a second run meanwhile is refused, and each driver finds nothing left to do after the other."""
    project.replace("dvc.yaml", TABLE, WAITS)
    run = project.start("run")
    project.wait_for("begun", run)
    refused_in_one_line(
        project.command("run"), f"another 'palimpsest run' (process {run.pid}) is at work in this checkout"
    )
    run.kill()
    run.wait()
    until(lambda: not processes_in(project.folder), 10)

    project.write("quick", "")
    again = project.palimpsest("run", "--json", PREFECT_API_URL=prefect_url)
    assert again.returncode == 0, again.stderr
    assert states(again.stdout) == dict.fromkeys(ALL, "unchanged") | {"table": "ran"}
    assert "Running stage" not in project.dvc("repro")
    assert processes_in(project.folder) == []


def test_overrides_are_a_dvc_experiment_and_leave_the_file_as_it_was(committed: Project, prefect_url: str) -> None:
    before, status = committed.read("params.yaml"), committed.git("status", "--porcelain")
    index = committed.git("ls-files", "--stage")
    done = committed.palimpsest(
        "run", "--set", "filling.top_k.k=20", "--only", "method=top_k", "--json", PREFECT_API_URL=prefect_url
    )
    assert done.returncode == 0, done.stderr
    ran = [name for name, state in states(done.stdout).items() if state == "ran"]
    assert ran == ["fill@list-top_k", "fill@tagger-top_k"]
    assert committed.read("params.yaml") == before
    assert committed.git("ls-files", "--stage") == index
    assert committed.git("status", "--porcelain").replace(" M dvc.lock\n", "") == status
    (reference,) = committed.git("for-each-ref", "--format=%(refname)", "refs/exps/??/**").split()
    name = reference.rsplit("/", 1)[-1]
    assert f"recorded as the DVC experiment '{name}'" in done.stderr

    # DVC knows it; bringing it back gives the parameters, and nothing is left to compute.
    committed.git("checkout", "--quiet", "dvc.lock")
    committed.dvc("checkout", "--quiet")
    committed.dvc("exp", "apply", name)
    assert "k: 20}" in committed.read("params.yaml")
    assert "Running stage" not in committed.dvc("repro", *ran)


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


def test_after_dvc_repro_there_is_nothing_to_run_and_results_are_shown(finished: Project) -> None:
    finished.replace("dvc.yaml", "table.txt", "results/summary.md")
    finished.replace("dvc.yaml", "cat filled/*.txt >", "mkdir -p results; cat filled/*.txt >")
    finished.dvc("repro", "--quiet")
    done = finished.command("run")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "8 stages: 0 will run, 0 will run if their inputs change, 8 unchanged"
    assert finished.read("results/summary.md").strip() in done.stdout
    assert done.stderr == ""
    # No server is started.
    assert not (finished.folder / ".palimpsest" / "logs" / "prefect-server.log").exists()
    partly = finished.command("run", "fill@list-top_1")
    assert "3 unchanged" in partly.stdout


def test_what_is_wrong_is_one_line_before_anything_starts(finished: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = finished.read("params.yaml")
    no_commit = "--set records a DVC experiment on a git commit, and there is none yet"
    refused_in_one_line(finished.command("run", "--set", "filling.top_k.k=20"), no_commit)
    finished.git("commit", "--quiet", "--allow-empty", "-m", "start")
    with monkeypatch.context() as without_name:
        without_name.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        refused_in_one_line(finished.command("run", "--set", "filling.top_k.k=20"), "git does not know your name")
    for arguments, said in [
        (["run", "--jobs", "0"], "jobs: Input should be greater than or equal to 1 (got 0)"),
        (["run", "fil"], "no stage matches 'fil' (did you mean 'fill'?)"),
        (["run", "--only", "tecnique=list"], "'tecnique' is no dimension of the graph (did you mean 'technique'?)"),
        (["run", "--set", "filling.top_k.kk=1"], "filling.top_k.kk: unknown key (did you mean 'k'?)"),
    ]:
        refused_in_one_line(finished.command(*arguments), said)
    assert finished.read("params.yaml") == before
    finished.replace("params.yaml", "top_k: {kind: top_k, k: 10}", "top_k: {kind: top_k, k: ten}")
    finished.replace("params.yaml", "evaluation: {", "evaluation: {colour: red, ")
    refused_in_one_line(finished.command("run"), "2 problems", "filling.top_k.k", "evaluation.colour")
    assert not (finished.folder / ".palimpsest" / "logs").exists()


def test_what_a_full_disk_left_of_the_run_cache_is_removed(tmp_path):
    runs = tmp_path / ".dvc/cache/runs/ab"
    for name, files in (("empty", ()), ("torn", (".x.tmp",)), ("whole", ("entry", ".y.tmp"))):
        (runs / name).mkdir(parents=True)
        for file in files:
            (runs / name / file).touch()
    drop_torn_entries(tmp_path)
    assert sorted(path.name for path in runs.rglob("*")) == ["entry", "whole"]
