"""Flow runs whose processes are gone, and what the next run does about Prefect's records of them."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from prefect_server import ask, client_of
from scratch_project import Project

from flows.prefect_flow.abandoned_flow_run import (
    FOLDER,
    abandoned_flow_runs,
    forget_flow_runs,
    new_flow_run_name,
    note_flow_run,
)

HOLD = """
import sys, time
from pathlib import Path
from flows.prefect_flow.abandoned_flow_run import note_flow_run
note_flow_run(Path(sys.argv[1]), sys.argv[2])
print("noted", flush=True)
time.sleep(60)
"""


def held_by_another(folder: Path, name: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", HOLD, str(folder), name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "noted\n"
    return process


def test_a_note_is_abandoned_when_its_process_is_gone_and_not_before(tmp_path: Path) -> None:
    other, own = str(uuid4()), str(uuid4())
    process = held_by_another(tmp_path, other)
    note_flow_run(tmp_path, own)
    assert abandoned_flow_runs(tmp_path) == []
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert abandoned_flow_runs(tmp_path) == [other]
    forget_flow_runs(tmp_path)
    assert sorted(os.listdir(tmp_path / FOLDER)) == [other]


def begun(url: str, state: str, name: str = "a run", deployment: str | None = None) -> str:
    """A flow run that is in this state, as Prefect has it."""
    flow = ask(url, "/flows/", {"name": "experiment"})["id"]
    run = ask(url, "/flow_runs/", {"flow_id": flow, "deployment_id": deployment, "name": name})["id"]
    ask(url, f"/flow_runs/{run}/set_state", {"state": {"type": state}, "force": True})
    return str(run)


def type_of(url: str, run: str) -> str:
    return str(ask(url, f"/flow_runs/{run}", None)["state"]["type"])


def leave_note(project: Project, run: str) -> Path:
    folder = project.folder / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / run).touch()
    return folder / run


def test_a_run_with_nothing_to_do_ends_the_record_of_one_that_could_not_report(
    finished: Project, prefect_url: str
) -> None:
    lost, other = begun(prefect_url, "RUNNING"), begun(prefect_url, "RUNNING")
    ended = begun(prefect_url, "COMPLETED")
    notes = [leave_note(finished, run) for run in (lost, ended, str(uuid4()))]
    done = finished.palimpsest("run", PREFECT_API_URL=prefect_url)
    assert (done.returncode, done.stderr) == (0, "")
    assert [type_of(prefect_url, run) for run in (lost, other, ended)] == ["CRASHED", "RUNNING", "COMPLETED"]
    assert not any(note.exists() for note in notes)
    ask(prefect_url, f"/flow_runs/{other}/set_state", {"state": {"type": "CRASHED"}, "force": True})


def test_a_run_whose_making_was_never_answered_is_ended(finished: Project, prefect_url: str) -> None:
    """Prefect's database has recorded it, and its answer was lost, or the process was killed before it heard it."""
    names = [new_flow_run_name(), new_flow_run_name()]
    waiting, begins = begun(prefect_url, "PENDING", names[0]), begun(prefect_url, "RUNNING", names[1])
    flow = ask(prefect_url, "/flows/", {"name": "experiment"})["id"]
    deployment = ask(prefect_url, "/deployments/", {"name": "waits", "flow_id": flow})["id"]
    others = [
        begun(prefect_url, "RUNNING", new_flow_run_name()),
        begun(prefect_url, "PENDING", new_flow_run_name()),
        begun(prefect_url, "PENDING", deployment=deployment),
    ]
    # The last is a note of earlier versions, which no run has for its name.
    notes = [leave_note(finished, name) for name in (*names, f"starting-{uuid4()}")]
    done = finished.palimpsest("run", PREFECT_API_URL=prefect_url)
    assert (done.returncode, done.stderr) == (0, "")
    assert [type_of(prefect_url, run) for run in (waiting, begins)] == ["CRASHED", "CRASHED"]
    assert [type_of(prefect_url, run) for run in others] == ["RUNNING", "PENDING", "PENDING"]
    assert not any(note.exists() for note in notes)
    for run in others:
        ask(prefect_url, f"/flow_runs/{run}/set_state", {"state": {"type": "CRASHED"}, "force": True})


def test_where_the_server_is_away_the_record_stays_for_the_next_run(finished: Project) -> None:
    note = leave_note(finished, str(uuid4()))
    done = finished.palimpsest("run", PREFECT_API_URL="http://127.0.0.1:9/api")
    assert done.returncode == 0
    assert "Prefect may show an earlier run as going on; the next run ends it: Prefect's API does not answer" in (
        done.stderr
    )
    assert note.exists()


def test_a_run_that_its_worker_accepted_and_never_started_is_ended(
    prefect_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.prefect_flow import abandoned_flow_run

    flow = ask(prefect_url, "/flows/", {"name": "experiment"})["id"]
    made: list[Any] = [ask(prefect_url, "/deployments/", {"name": name, "flow_id": flow}) for name in ("mine", "other")]
    mine, other = (begun(prefect_url, "PENDING", deployment=one["id"]) for one in made)
    with client_of(prefect_url):
        abandoned_flow_run.end_runs_that_never_started(UUID(made[0]["id"]))
        assert type_of(prefect_url, mine) == "PENDING"  # it may still be starting
        monkeypatch.setattr(abandoned_flow_run, "PENDING_SECONDS", 0.0)
        abandoned_flow_run.end_runs_that_never_started(UUID(made[0]["id"]))
    assert [type_of(prefect_url, run) for run in (mine, other)] == ["CRASHED", "PENDING"]
