"""How several clones work on one experiment: each stage is computed by one of them, and the others restore it.

The clone in which the run is started *leads*: it brings every stage to its end, and tells the others what they may
compute. Clones that *join* compute shared stages (``flows.sharing.shared_stages``). Whoever starts a shared stage
claims it first, looks on the trusted DVC remote whether its result is there, and pushes what it has computed before it
gives the claim back; so no shared stage is computed twice, and what a killed clone had claimed is taken over when its
lease runs out.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from flows.graph.graph import Graph, open_repository
from flows.graph.plan import Action, Plan, PlannedStage
from flows.runs.session import Alone, Role, Session
from flows.sharing.exchange import read_outputs, write_outputs
from flows.sharing.shared_run import (
    LEADING,
    LOOK_SECONDS,
    LOST,
    SharedRun,
    exchange_file,
    experiment_state,
    not_exchanged,
    wait_for,
)
from flows.sharing.shared_stages import SharedStages, shared_stages
from flows.stages.executor import Outcome, State
from tasks.errors import ResourceError
from tasks.spelling import nearest


class Join(SharedRun):
    """A clone that helps: it computes shared stages of a run that another clone leads."""

    def __init__(self, session: Session, flow_run: UUID, state: str) -> None:
        super().__init__(session, flow_run, state)
        self._lead: UUID | None = None
        self._known: set[UUID] = set()
        self._outputs: dict[str, list[dict[str, Any]]] = {}
        self._looked = 0.0
        self._gone = False

    def _begin(self) -> None:
        wait_for(
            lambda: self._claims.held_by_somebody(LEADING) and self._find_stages(),
            self._session.stopped,
            "a clone that leads a run of this state of the experiment",
            "no clone leads a run of this state of the experiment: start one with 'palimpsest run --share', with "
            "the same commit and the same params.yaml",
        )

    def _find_stages(self) -> bool:
        found = self._board.last_run()
        if found is None:
            return False
        self._lead, wanted = found
        with open_repository(Path()) as repository:
            whole, _ = shared_stages(repository)
        plan = self._session.plan
        self._stages = whole.needed(plan.graph, wanted)
        self._session.plan = plan_of(plan, self._stages)
        return True

    def may_start(self, name: str) -> bool:
        """A shared stage when nobody else has it; another's outputs when they are told."""
        self._look()
        return name in self._outputs if name in self._stages.border else super().may_start(name)

    def refusal(self) -> str | None:
        """Without a run that leads there is nothing to work for."""
        self._look()
        return "the run that this clone had joined has ended" if self._gone else None

    def run(self, name: str) -> Outcome:
        """Take another's outputs, do a shared stage, or a private one for itself."""
        if name in self._stages.shared:
            return self.run_shared(name)
        if name in self._stages.own:
            return self._compute(name)
        started = time.monotonic()
        path = exchange_file(name)
        write_outputs(path, {name: self._outputs[name]})
        status, error = self._session.exchange(["take", str(path)])
        path.unlink(missing_ok=True)
        if status != 0:
            return not_exchanged(name, started, error)
        return Outcome(name, State.RESTORED, time.monotonic() - started)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS or self._lead is None:
            return
        self._looked = now
        # A server that is away for a moment is asked again.
        with suppress(httpx.HTTPError):
            self._outputs |= self._board.outputs(self._lead, self._known)
        self._gone = not self._claims.held_by_somebody(LEADING)


def plan_of(plan: Plan, stages: SharedStages) -> Plan:
    """The plan of a clone that joins: the shared stages, each to be looked at."""
    nodes = {
        # What a border stage needs is not here.
        name: replace(node, upstream=() if name in stages.border else node.upstream)
        for name, node in plan.graph.nodes.items()
        if name in stages.names
    }
    planned = {
        name: PlannedStage(
            name, Action.RUN if node.command or name in stages.border else Action.UNCHANGED, (), node.upstream, False
        )
        for name, node in nodes.items()
    }
    return Plan(Graph(nodes), planned)


class Lead(SharedRun):
    """The clone in which the run was started."""

    _border: frozenset[str] = frozenset()
    """Stages of whose outputs clones without the private text need some."""

    def _begin(self) -> None:
        wait_for(
            lambda: self._claims.take(LEADING),
            self._session.stopped,
            "another run of this state of the experiment to end; one that was killed counts for a minute",
            "another clone leads a run of this very state of the experiment; join it with 'palimpsest run --join', "
            "or stop it first",
        )
        with open_repository(Path()) as repository:
            whole, by_git = shared_stages(repository)
        self._tell(whole, by_git)

    def _tell(self, whole: SharedStages, by_git: SharedStages) -> None:
        """Push what others need and this clone has already, and show what there is to do."""
        plan = self._session.plan
        wanted = [name for name, stage in plan.stages.items() if stage.action is not Action.UNCHANGED]
        self._stages = whole.needed(plan.graph, wanted)
        self._border = by_git.needed(plan.graph, wanted).border
        unchanged = [name for name, stage in plan.stages.items() if stage.action is Action.UNCHANGED]
        done = [name for name in unchanged if name in self._stages.shared]
        if done:
            status, error = self._session.exchange(["push", *done])
            if status != 0:
                raise ResourceError(f"the DVC remote cannot be used: {error}")
        self._publish([name for name in unchanged if name in self._border])
        self._board.show_stages(self._flow_run, sorted(self._stages.shared), sorted(self._border))

    def _publish(self, names: Sequence[str]) -> str | None:
        """Push outputs for the others and tell what they are; the error where that failed."""
        if not names:
            return None
        path = exchange_file(names[0])
        status, error = self._session.exchange(["publish", str(path), *names])
        if status == 0:
            self._board.show_outputs(self._flow_run, read_outputs(path))
        path.unlink(missing_ok=True)
        return None if status == 0 else error

    def run(self, name: str) -> Outcome:
        """Shared stages as everybody does; what clones without the private text need of the rest is told."""
        started = time.monotonic()
        outcome = self.run_shared(name) if name in self._stages.shared else self._compute(name)
        if name not in self._border or outcome.state in LOST:
            return outcome
        error = self._publish([name])
        return outcome if error is None else not_exchanged(name, started, error)


def shared_session(session: Session, role: Role, flow_run: UUID) -> Alone:
    """What the scheduler of a run in this role asks. ``ResourceError`` where it cannot be shared."""
    if role is Role.ALONE:
        return Alone(session)
    if not session.shown:
        raise ResourceError(
            "several clones share a run through a Prefect server that all of them reach; set PREFECT_API_URL to its "
            "address"
        )
    if session.trusted_remote is None:
        raise ResourceError(
            "several clones share results through a DVC remote on which raw text may lie, and params.yaml names none: "
            "set resources.trusted_remote; every machine that reaches it may see the private text"
        )
    with open_repository(Path()) as repository:
        remotes = repository.config["remote"]
        if session.trusted_remote not in remotes:
            raise ResourceError(
                f"resources.trusted_remote: DVC has no remote {session.trusted_remote!r}"
                f"{nearest(session.trusted_remote, remotes)}; run 'dvc remote add {session.trusted_remote} ADDRESS' in "
                "each clone"
            )
    state = experiment_state(Path())
    return (Lead if role is Role.LEAD else Join)(session, flow_run, state)
