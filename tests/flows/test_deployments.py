"""``prefect.yaml`` and ``palimpsest serve``: runs that Prefect starts, with a form that says what is allowed."""

import os
import pkgutil
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prefect_server import ask, cancel
from scratch_project import CHECKOUT, Project, until

from flows.prefect_flow import prefect_api
from flows.serve_command import FILE, read_deployments
from flows.stages.processes import Processes
from tasks.cli import main
from tasks.errors import ParameterError

TABLE = "cat filled/*.txt > table.txt"


def test_the_shipped_deployments_can_be_run_by_the_pinned_prefect_with_a_typed_form() -> None:
    from prefect.utilities.callables import parameter_schema

    document = yaml.safe_load((CHECKOUT / FILE).read_text(encoding="utf-8"))
    pins = (CHECKOUT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert f"prefect=={document['prefect-version']}" in pins
    deployments = {deployment["name"]: deployment for deployment in read_deployments(CHECKOUT / FILE)}
    assert list(deployments) == ["nightly", "new-data", "once"]
    assert deployments["nightly"]["schedules"] == [{"cron": "0 2 * * *", "timezone": "UTC"}]
    assert "schedules" not in deployments["once"]
    for deployment in deployments.values():
        form = parameter_schema(pkgutil.resolve_name(deployment["entrypoint"]).fn).model_dump()["properties"]
        assert set(deployment.get("parameters", {})) <= set(form)
        assert {"type": "integer", "minimum": 1} in form["jobs"]["anyOf"]
        assert all(entry["description"] for entry in form.values())
    with pytest.raises(ParameterError, match=r"no deployment 'nihgtly' \(did you mean 'nightly'\?\)"):
        read_deployments(CHECKOUT / FILE, ["nihgtly"])


def test_a_worker_enters_the_folder_that_it_is_given(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    document = yaml.safe_load((CHECKOUT / FILE).read_text(encoding="utf-8"))
    # Without a pull step Prefect copies the folder that it is started in, private text and all.
    ((name, inputs),) = [entry for step in document["pull"] for entry in step.items()]
    enter = pkgutil.resolve_name(name)
    monkeypatch.setenv("PALIMPSEST_FOLDER", str(project.folder / "sources"))
    (project.folder / "sources").mkdir(exist_ok=True)
    assert enter(**inputs) == {"directory": str(project.folder.resolve())}
    monkeypatch.delenv("PALIMPSEST_FOLDER")
    with pytest.raises(ParameterError, match="PALIMPSEST_FOLDER is not set"):
        enter(**inputs)


def test_serving_needs_a_server(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(CHECKOUT / FILE, project.folder)
    monkeypatch.chdir(project.folder)
    monkeypatch.setenv("PALIMPSEST_FOLDER", "")
    # Prefect reads its settings once in a process.
    monkeypatch.setattr(prefect_api, "configure", lambda *_, **__: None)
    nobody = "http://127.0.0.1:9/api"
    for url, said in [(None, "no Prefect server is configured"), (nobody, "does not answer (ConnectError)")]:
        monkeypatch.setattr(prefect_api, "configured_url", lambda url=url: url)
        assert main(["serve"]) == 1
        errors = capsys.readouterr().err
        assert said in errors
        assert errors.count("\n") == 1


@pytest.fixture
def serving(committed: Project, prefect_url: str) -> Iterator[Project]:
    """The finished project, whose deployments 'new-data' and 'once' are being served; without their schedules."""
    document = yaml.safe_load((CHECKOUT / FILE).read_text(encoding="utf-8"))
    for deployment in document["deployments"]:
        deployment.pop("schedules", None)
    committed.write(FILE, yaml.safe_dump(document))
    variables = {"PREFECT_API_URL": prefect_url, "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
    service = committed.start("serve", "new-data", "once", **variables)
    try:
        until(lambda: "id" in ask(prefect_url, "/deployments/name/experiment/once", None), 120)
        yield committed
    finally:
        service.send_signal(signal.SIGTERM)
        service.communicate(timeout=60)


def create(url: str, deployment: str, **parameters: Any) -> dict[str, Any]:
    number = ask(url, f"/deployments/name/experiment/{deployment}", None)["id"]
    answer = ask(url, f"/deployments/{number}/create_flow_run", {"parameters": parameters})
    assert "id" in answer or "detail" in answer, answer
    return answer


def end_of(url: str, flow_run: str) -> dict[str, Any]:
    state: dict[str, Any] = {}

    def ended() -> bool:
        state.update(ask(url, f"/flow_runs/{flow_run}", None)["state"])
        return state["type"] in ("COMPLETED", "FAILED", "CRASHED", "CANCELLED")

    until(ended, 120)
    return state


@pytest.mark.slow
def test_serving_ends_within_seconds_of_a_signal_though_its_server_has_gone(committed: Project) -> None:
    shutil.copy(CHECKOUT / FILE, committed.folder)
    Path(os.environ["PREFECT_HOME"]).mkdir(parents=True, exist_ok=True)
    with Processes(committed.folder) as processes:
        server = prefect_api.TemporaryServer(processes, committed.folder)
        variables = {"PREFECT_API_AUTH_STRING": server.password, "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
        service = committed.start("serve", "once", PREFECT_API_URL=server.wait(), **variables)
        try:
            assert service.stdout is not None
            assert any("being served" in line for line in service.stdout)
            time.sleep(3)  # Prefect has begun to look for runs
            processes.close()
            time.sleep(3)  # and has found nobody there
            assert service.poll() is None
            started = time.monotonic()
            service.send_signal(signal.SIGTERM)
            assert service.wait(60) == 0
            assert time.monotonic() - started < 15
        finally:
            service.kill()
            service.communicate()


@pytest.mark.slow
def test_runs_are_started_checked_and_cancelled_in_prefect(serving: Project, prefect_url: str) -> None:
    before = serving.read("params.yaml")
    # A value that the form would not take is refused by the server too.
    assert "jobs" in str(create(prefect_url, "once", jobs=0)["detail"])
    assert "overrides" in str(create(prefect_url, "once", overrides=["k"])["detail"])

    # A run with overrides of a part: only that part, recorded, and the file as before.
    part = create(prefect_url, "once", only=["method=top_k"], overrides=["filling.top_k.k=20"], jobs=2)
    assert end_of(prefect_url, part["id"])["name"] == "Completed"
    tasks = ask(prefect_url, "/task_runs/filter", {"flow_runs": {"id": {"any_": [part["id"]]}}})
    assert {task["name"] for task in tasks} == {"fill@list-top_k", "fill@tagger-top_k"}
    assert serving.read("params.yaml") == before
    experiment = serving.git("for-each-ref", "--format=%(objectname)", "refs/exps/??/**").strip()
    assert "k: 20" in serving.git("grep", "top_k: {kind", experiment)

    # No source of data changed since the last run: nothing is run.
    unchanged = create(prefect_url, "new-data", new_data_only=True)
    assert end_of(prefect_url, unchanged["id"])["name"] == "NothingNew"

    # What is wrong is told in the state.
    wrong = create(prefect_url, "once", only=["tecnique=list"])
    assert "did you mean 'technique'?" in end_of(prefect_url, wrong["id"])["message"]

    # Cancelling ends the stage's processes and leaves a state that can be gone on with.
    serving.replace("dvc.yaml", TABLE, f"touch begun; test -e quick || sleep 61; {TABLE}")
    stopped = create(prefect_url, "once", overrides=["filling.top_k.k=30"])
    until((serving.folder / "begun").exists, 120)
    started = time.monotonic()
    cancel(prefect_url, stopped["id"])
    until(lambda: serving.read("params.yaml") == before)
    assert time.monotonic() - started < 15
    assert end_of(prefect_url, stopped["id"])["name"] == "Cancelled"
    serving.write("quick", "")
    assert "Running stage" in serving.dvc("repro")
