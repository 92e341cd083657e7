"""``palimpsest run`` as users start it: real Prefect flows on a small graph."""

import json
import os
import signal
import time
from pathlib import Path

from prefect_server import ask
from scratch_project import ALL, Project

from flows.checkout.run_lock import is_alive

SLOW_TABLE = "cat filled/*.txt > table.txt"


def states(text: str) -> dict[str, str]:
    return {stage["name"]: stage["state"] for stage in json.loads(text)["stages"]}


def processes_in(folder: Path) -> list[int]:
    """Living processes whose working folder is the project."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and Path(os.readlink(entry / "cwd")) == folder and is_alive(int(entry.name)):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_failing_branch_does_not_stop_the_others(project: Project, prefect_url: str) -> None:
    project.replace("dvc.yaml", "mkdir -p masked; ", "mkdir -p masked; test ${item.technique} = list && ")
    done = project.palimpsest("run", "--json", PREFECT_API_URL=prefect_url)
    assert done.returncode == 1, done.stderr
    expected = {name: "skipped" if "tagger" in name else "ran" for name in ALL}
    assert states(done.stdout) == expected | {"mask@tagger": "failed", "table": "skipped"}
    (failed,) = [stage for stage in json.loads(done.stdout)["stages"] if stage["state"] == "failed"]
    assert failed["error"] == "its command ended with status 1"

    # Prefect's own record: one task a stage that was started, named by it, and a failed flow run.
    (flow,) = ask(prefect_url, "/flow_runs/filter", {"sort": "START_TIME_DESC", "limit": 1})
    mine = {"flow_runs": {"id": {"any_": [flow["id"]]}}}
    tasks = {task["name"]: task["state_type"] for task in ask(prefect_url, "/task_runs/filter", mine)}
    started = [name for name, state in states(done.stdout).items() if state == "ran"]
    assert tasks == dict.fromkeys(started, "COMPLETED") | {"mask@tagger": "FAILED"}
    assert (flow["state_type"], flow["parameters"]["jobs"], flow["parameters"]["only"]) == ("FAILED", 2, [])

    # A server that is configured is used; no other is started.
    assert not (project.folder / ".palimpsest" / "logs" / "prefect-server.log").exists()


def test_ctrl_c_ends_within_seconds_and_leaves_a_resumable_state(project: Project, prefect_url: str) -> None:
    project.replace("dvc.yaml", SLOW_TABLE, f"touch begun; sleep ${{sleep}}; {SLOW_TABLE}")
    project.write("dvc.yaml", "vars: [{sleep: 60}]\n" + project.read("dvc.yaml"))
    run = project.start("run", PREFECT_API_URL=prefect_url)
    project.wait_for("begun", run)
    started = time.monotonic()
    run.send_signal(signal.SIGINT)
    output, errors = run.communicate(timeout=60)
    assert time.monotonic() - started < 12
    assert run.returncode == 128 + signal.SIGINT
    assert "stopped; finished stages are saved" in errors
    assert "7 ran, 1 failed" in output
    assert output.splitlines()[-1] == "1 stopped before it had finished: table"
    assert processes_in(project.folder) == []
    assert project.read(".dvc/tmp/rwlock") == "{}"
    project.replace("dvc.yaml", "sleep: 60", "sleep: 0")
    assert "Running stage 'table'" in (rest := project.dvc("repro"))
    assert rest.count("Running stage") == 1


def test_a_killed_run_leaves_nothing_behind_and_the_next_one_goes_on(project: Project, prefect_url: str) -> None:
    """Also: a second run meanwhile is refused, and each driver finds nothing left to do after the other."""
    project.replace("dvc.yaml", SLOW_TABLE, f"touch begun; test -e quick || sleep 60; {SLOW_TABLE}")
    run = project.start("run")
    project.wait_for("begun", run)
    refused = project.command("run")
    assert refused.returncode == 1
    assert f"another 'palimpsest run' (process {run.pid}) is at work in this checkout" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert refused.stdout == ""
    run.kill()
    run.wait()
    deadline = time.monotonic() + 10
    while left := processes_in(project.folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)

    project.write("quick", "")
    again = project.palimpsest("run", "--json", PREFECT_API_URL=prefect_url)
    assert again.returncode == 0, again.stderr
    assert states(again.stdout) == dict.fromkeys(ALL, "unchanged") | {"table": "ran"}
    assert "Running stage" not in project.dvc("repro")
    assert processes_in(project.folder) == []

    # Nothing to do: no server is started, and the outcome is the same.
    server_log = project.folder / ".palimpsest" / "logs" / "prefect-server.log"
    server_log.unlink()
    nothing = project.command("run", "--json")
    assert states(nothing.stdout) == dict.fromkeys(ALL, "unchanged")
    assert not server_log.exists()


def test_after_dvc_repro_there_is_nothing_to_run_and_results_are_shown(finished: Project) -> None:
    finished.replace("dvc.yaml", "table.txt", "results/summary.md")
    finished.replace("dvc.yaml", "cat filled/*.txt >", "mkdir -p results; cat filled/*.txt >")
    finished.dvc("repro", "--quiet")
    done = finished.command("run")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "8 stages: 0 will run, 0 will run if their inputs change, 8 unchanged"
    assert finished.read("results/summary.md").strip() in done.stdout
    assert done.stderr == ""
    partly = finished.command("run", "fill@list-top_1")
    assert "3 unchanged" in partly.stdout
    assert finished.read("results/summary.md").strip() not in partly.stdout


def test_all_problems_of_the_parameters_are_told_before_anything_starts(project: Project) -> None:
    project.replace("params.yaml", "top_k: {kind: top_k, k: 10}", "top_k: {kind: top_k, k: ten}")
    project.replace("params.yaml", "evaluation: {", "evaluation: {colour: red, ")
    done = project.command("run")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "2 problems" in done.stderr
    assert "filling.top_k.k" in done.stderr
    assert "evaluation.colour" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (project.folder / ".palimpsest" / "logs").exists()


def test_wrong_options_are_one_line_errors(committed: Project) -> None:
    before = committed.read("params.yaml")
    for arguments, said in [
        (["run", "--jobs", "0"], "jobs: Input should be greater than or equal to 1 (got 0)"),
        (["run", "fil"], "no stage matches 'fil' (did you mean 'fill'?)"),
        (["plan", "nothing-like-it"], "no stage matches 'nothing-like-it'"),
        (["run", "--only", "tecnique=list"], "'tecnique' is no dimension of the graph (did you mean 'technique'?)"),
        (["run", "--set", "filling.top_k.kk=1"], "filling.top_k.kk: unknown key (did you mean 'k'?)"),
        (["run", "--set", "resources.time_limits={fil: 3}"], "'fil' fits no step of dvc.yaml (did you mean 'fill'?)"),
    ]:
        done = committed.command(*arguments)
        assert done.returncode == 1
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
    assert committed.read("params.yaml") == before
