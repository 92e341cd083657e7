"""What a clone that leads and one that joins have in common.

Who computes a stage, where several clones share the work: a claim is a Prefect concurrency limit of one slot.

The slot is held with a lease that is renewed while the holder lives. Of a clone that was killed the lease runs out
(``LEASE_SECONDS``, and up to a quarter of a minute until Prefect's server notices), and another one takes the stage
over. Limits are named after the stage and are visible in Prefect under "Concurrency".
"""

import contextvars
import hashlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, ArtifactFilterKey
from prefect.client.schemas.sorting import ArtifactSort
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound

from flows.checkout.run_lock import STATE_FOLDER
from flows.runs.preparation import say_on_stderr
from flows.runs.session import Alone, Session
from flows.sharing.exchange import NOT_THERE
from flows.sharing.shared_stages import SharedStages
from flows.stages.executor import Outcome, State, log_name
from tasks.errors import ResourceError, StageError
from tasks.parameters.parameter_file import DEFAULT_PATH

_PAGE = 200


def experiment_state(folder: Path) -> str:
    """Twelve digits that are the same in two clones where commit, ``dvc.yaml`` and ``params.yaml`` are."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise StageError("several clones share an experiment by its git commit, and this folder has none; commit first")
    digest = hashlib.sha256(done.stdout.encode())
    for name in ("dvc.yaml", DEFAULT_PATH):
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()[:12]


class Board:
    """The tables of one state of the experiment."""

    def __init__(self, state: str) -> None:
        self._stages_key = f"shared-stages-{state}"
        self._outputs_key = f"shared-outputs-{state}"

    def show_stages(self, flow_run: UUID, stages: Iterable[str], border: Iterable[str]) -> None:
        """Which stages others may compute, and which they wait for."""
        rows = [{"stage": name, "computed": "anywhere"} for name in stages]
        rows += [{"stage": name, "computed": "here"} for name in border]
        self._show(self._stages_key, flow_run, rows, "Stages that other clones may compute, and those they wait for")

    def show_outputs(self, flow_run: UUID, outputs: Mapping[str, list[dict[str, Any]]]) -> None:
        """What stages that are computed here alone have made for the others."""
        rows = [{"stage": name, **output} for name, found in outputs.items() for output in found]
        self._show(self._outputs_key, flow_run, rows, "Outputs that other clones take from the remote")

    def last_run(self) -> tuple[UUID, list[str]] | None:
        """The flow run that shared this state last: its id, and the stages that anybody may compute."""
        with get_client(sync_client=True) as client:
            found = client.read_artifacts(
                artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[self._stages_key])),
                limit=1,
                sort=ArtifactSort.CREATED_DESC,
            )
        if not found or found[0].flow_run_id is None:
            return None
        rows = _rows(found[0])
        return found[0].flow_run_id, [row["stage"] for row in rows if row["computed"] == "anywhere"]

    def outputs(self, flow_run: UUID, known: set[UUID]) -> dict[str, list[dict[str, Any]]]:
        """Outputs told by tables that are not ``known`` yet, by stage; they are known then."""
        asked = ArtifactFilter(
            key=ArtifactFilterKey(any_=[self._outputs_key]), flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run])
        )
        told: dict[str, list[dict[str, Any]]] = {}
        offset = 0
        with get_client(sync_client=True) as client:
            while True:
                page = client.read_artifacts(
                    artifact_filter=asked, limit=_PAGE, offset=offset, sort=ArtifactSort.CREATED_DESC
                )
                new = [artifact for artifact in page if artifact.id not in known]
                for artifact in new:
                    known.add(artifact.id)
                    by_stage: dict[str, list[dict[str, Any]]] = {}
                    for row in _rows(artifact):
                        by_stage.setdefault(row.pop("stage"), []).append(row)
                    told = by_stage | told  # the newest comes first
                if len(page) < _PAGE or len(new) < len(page):
                    return told
                offset += len(page)

    def _show(self, key: str, flow_run: UUID, rows: list[dict[str, Any]], description: str) -> None:
        artifact = ArtifactCreate(
            key=key, type="table", data=json.dumps(rows), description=description, flow_run_id=flow_run
        )
        with get_client(sync_client=True) as client:
            client.create_artifact(artifact)


def _rows(artifact: Any) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads(artifact.data)
    return rows


LEASE_SECONDS = 60.0
"""The shortest lease that Prefect gives."""
RENEW_SECONDS = 15.0
PATIENCE_SECONDS = 300.0
"""How long Prefect's server may be away before the run is given up."""


class Claims:
    """The claims of one run; used as a context, at whose end all are given back."""

    def __init__(self, prefix: str) -> None:
        """``prefix``: what tells the claims of one experiment from those of others."""
        self._prefix = prefix
        self._lock = threading.Lock()
        self._leases: dict[str, UUID] = {}
        self._closed = threading.Event()
        self._away_since: float | None = None
        # The context holds Prefect's settings.
        work = contextvars.copy_context().run
        self._renewer = threading.Thread(target=work, args=(self._renew,), name="claims", daemon=True)

    def __enter__(self) -> "Claims":
        self._renewer.start()
        return self

    def __exit__(self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self._closed.set()
        self._renewer.join()
        for name in list(self._leases):
            with suppress(ResourceError):
                self.release(name)

    def take(self, name: str) -> bool:
        """Claim a stage; ``False`` where somebody else has it.

        ``ResourceError`` where the server has not answered for minutes.
        """
        full = self._limit(name)
        try:
            with get_client(sync_client=True) as client:
                # Another clone may make it at the same moment.
                with suppress(ObjectAlreadyExists):
                    client.upsert_global_concurrency_limit_by_name(full, 1)
                answer = client.increment_concurrency_slots_with_lease([full], 1, "concurrency", LEASE_SECONDS)
                content = answer.json()
        except httpx.HTTPStatusError as error:
            if error.response.status_code == httpx.codes.LOCKED:
                self._away_since = None
                return False
            if not error.response.is_server_error:
                raise ResourceError(f"Prefect's server refuses a claim (status {error.response.status_code})") from None
            # Its database is away.
            self._be_patient(error)
            return False
        except httpx.TransportError as error:
            self._be_patient(error)
            return False
        self._away_since = None
        if not content["limits"]:
            # The limit was removed by the one that finished the stage, between our two questions.
            return False
        with self._lock:
            self._leases[name] = UUID(content["lease_id"])
        return True

    def _be_patient(self, error: Exception) -> None:
        now = time.monotonic()
        self._away_since = self._away_since or now
        if now - self._away_since > PATIENCE_SECONDS:
            raise ResourceError(
                f"Prefect's server has not answered for {PATIENCE_SECONDS:.0f} seconds ({type(error).__name__}); start "
                "it again, then run this again: finished stages are kept"
            ) from None

    def release(self, name: str, *, done: bool = False) -> None:
        """Give a claim back; ``done``: the result is on the remote, so nobody will ask for it again."""
        with self._lock:
            lease = self._leases.pop(name, None)
        if lease is None:
            return
        # A server that does not answer now lets the lease run out.
        with suppress(httpx.HTTPError, ObjectNotFound), get_client(sync_client=True) as client:
            client.release_concurrency_slots_with_lease(lease)
            if done:
                client.delete_global_concurrency_limit_by_name(self._limit(name))

    def held_by_somebody(self, name: str) -> bool:
        """Whether any clone has this claim now; also where the server does not answer."""
        try:
            with get_client(sync_client=True) as client:
                return client.read_global_concurrency_limit_by_name(self._limit(name)).active_slots > 0
        except ObjectNotFound:
            return False
        except httpx.HTTPError:
            return True

    def _limit(self, name: str) -> str:
        """Prefect takes no slash in a name; a stage has one where its dvc.yaml lies in a folder."""
        return f"{self._prefix}{name.replace('/', '.')}"

    def _renew(self) -> None:
        while not self._closed.wait(RENEW_SECONDS):
            with self._lock:
                leases = list(self._leases.values())
            # A lease that is gone by now was given back, or lost while the server was away: its stage goes on, and
            # whoever takes it over finds the same result.
            with suppress(httpx.HTTPError), get_client(sync_client=True) as client:
                for lease in leases:
                    with suppress(httpx.HTTPStatusError):
                        client.renew_concurrency_lease(lease, LEASE_SECONDS)


LOOK_SECONDS = 2.0
"""How often a clone looks whether it can go on, while others have what it waits for."""
LEAD_SECONDS = 180.0
"""How long a clone that joins waits for a run to join, and a second one that leads for the first one's lease."""
LEADING = ":lead"
"""The claim that says that a run leads and is alive."""
LOST = (State.FAILED, State.SKIPPED)


class SharedRun(Alone):
    """Claims shared stages, looks on the remote for their results, and pushes what was computed here."""

    def __init__(self, session: Session, flow_run: UUID, state: str) -> None:
        super().__init__(session)
        self._flow_run = flow_run
        self._board = Board(state)
        self._claims = Claims(f"palimpsest-{state}-")
        self._stages = SharedStages()
        self._stack = ExitStack()

    def __enter__(self) -> "SharedRun":
        self._stack.enter_context(self._claims)
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _begin(self) -> None:
        """Find out which stages are shared, and tell the others."""
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def may_start(self, name: str) -> bool:
        """A shared stage when nobody else has it."""
        return name not in self._stages.shared or self._claims.take(name)

    def order(self, name: str) -> int:
        """What only this clone can do comes first: the others may take the rest meanwhile."""
        return int(name in self._stages.shared)

    def ended(self, outcome: Outcome) -> None:
        """Give the claim back."""
        self._claims.release(outcome.name, done=outcome.state not in LOST)

    def run_shared(self, name: str) -> Outcome:
        """Restore the stage from the remote where somebody has computed it, else compute and push it."""
        started = time.monotonic()
        status, error = self._session.exchange(["fetch", name])
        if status not in (0, NOT_THERE):
            return not_exchanged(name, started, error)
        outcome = self._compute(name)
        if outcome.state in LOST or (status == 0 and outcome.state is not State.RAN):
            return outcome
        pushed, error = self._session.exchange(["push", name])
        return outcome if pushed == 0 else not_exchanged(name, started, error)


def wait_for(done: Callable[[], bool], stopped: threading.Event, what: str, otherwise: str) -> None:
    """Wait until it is done; ``ResourceError`` after ``LEAD_SECONDS`` (``otherwise``), or where the run is stopped."""
    deadline = time.monotonic() + LEAD_SECONDS
    told = False
    while not done():
        if not told:
            say_on_stderr(f"waiting up to {LEAD_SECONDS:.0f} seconds for {what}")
            told = True
        if time.monotonic() > deadline:
            raise ResourceError(otherwise)
        if stopped.wait(LOOK_SECONDS):
            raise ResourceError("the run was stopped before it had begun")


def exchange_file(stage: str) -> Path:
    """Where the outputs of a stage are told between this process and ``flows.sharing.exchange``."""
    return Path(STATE_FOLDER) / f"{log_name(stage)}.outputs.json"


def not_exchanged(name: str, started: float, error: str) -> Outcome:
    """The outcome of a stage whose results could not be told to the others, or taken from them."""
    reason = f"the DVC remote could not be used: {error}"
    return Outcome(name, State.FAILED, time.monotonic() - started, reason, may_pass=True)
