"""Claims and tables that several clones share through a Prefect server."""

import socket
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from prefect_server import ask, client_of
from scratch_project import Project

from flows.sharing import shared_run
from flows.sharing.shared_run import Board, Claims, experiment_state
from tasks.errors import ResourceError, StageError


@pytest.fixture
def server(prefect_url: str) -> Iterator[str]:
    with client_of(prefect_url):
        yield prefect_url


def limits(url: str) -> list[str]:
    return [found["name"] for found in ask(url, "/v2/concurrency_limits/filter", {"limit": 200})]


def test_one_clone_has_a_claim_until_it_gives_it_back(server: str) -> None:
    with Claims("exchange-") as first, Claims("exchange-") as second, Claims("other-") as stranger:
        assert first.take("adapt@chat")
        assert not second.take("adapt@chat")
        assert not first.take("adapt@chat")
        assert second.held_by_somebody("adapt@chat")
        assert second.take("adapt@mail")
        assert stranger.take("adapt@chat")
        # A stage that failed may be tried by another clone.
        first.release("adapt@chat")
        assert second.take("adapt@chat")
        second.release("adapt@chat", done=True)
        assert "exchange-adapt@chat" not in limits(server)
        assert not first.held_by_somebody("adapt@chat")
        # What is done can be claimed again, by whoever has not seen that it is: the result is on the remote.
        assert first.take("adapt@chat")
    with Claims("exchange-") as third:
        assert third.take("adapt@chat")
        assert third.take("adapt@mail")


def test_a_name_with_a_slash_is_a_claim_too(server: str) -> None:
    with Claims("exchange-") as mine:
        assert mine.take("part/dvc.yaml:adapt")
        assert "exchange-part.dvc.yaml:adapt" in limits(server)


def test_a_server_that_is_away_is_waited_for_and_then_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/api"
        with client_of(url), Claims("exchange-") as mine:
            assert not mine.take("adapt@chat")
            assert mine.held_by_somebody("adapt@chat")
            monkeypatch.setattr(shared_run, "PATIENCE_SECONDS", -1.0)
            with pytest.raises(ResourceError, match="has not answered"):
                mine.take("adapt@chat")


def test_what_is_shared_is_read_as_it_was_told(server: str) -> None:
    board, state = Board("0123456789ab"), uuid4()
    assert board.last_run() is None
    first, last = uuid4(), state
    board.show_stages(first, ["generic"], [])
    board.show_stages(last, ["adapt", "pretrain"], ["fill"])
    assert board.last_run() == (last, ["adapt", "pretrain"])
    assert Board("ba9876543210").last_run() is None

    known: set[UUID] = set()
    assert board.outputs(last, known) == {}
    told = [{"path": "filled.txt", "hash": "md5", "md5": "0" * 32, "size": 3}]
    board.show_outputs(last, {"fill": told, "other": []})
    board.show_outputs(first, {"generic": told})
    assert board.outputs(last, known) == {"fill": told}
    assert board.outputs(last, known) == {}
    newer = [{**told[0], "md5": "1" * 32}]
    board.show_outputs(last, {"fill": newer})
    assert board.outputs(last, known) == {"fill": newer}
    assert board.outputs(last, set()) == {"fill": newer}


def test_the_state_is_that_of_commit_graph_and_parameters(committed: Project, tmp_path: Path) -> None:
    state = experiment_state(committed.folder)
    assert experiment_state(committed.folder) == state
    committed.replace("params.yaml", "threads: 1", "threads: 2")
    assert experiment_state(committed.folder) != state
    committed.replace("params.yaml", "threads: 2", "threads: 1")
    assert experiment_state(committed.folder) == state
    with pytest.raises(StageError, match="commit first"):
        experiment_state(tmp_path)
