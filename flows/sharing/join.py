"""A clone that joins a run that another clone leads."""

import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from flows.graph.graph import Graph, open_repository
from flows.graph.plan import Action, Plan, PlannedStage
from flows.runs.session import Session
from flows.sharing.exchange import write_outputs
from flows.sharing.shared_run import LEADING, LOOK_SECONDS, SharedRun, exchange_file, not_exchanged, wait_for
from flows.sharing.shared_stages import SharedStages, shared_stages
from flows.stages.executor import Outcome, State


class Join(SharedRun):
    """A clone that helps: it computes shared stages of a run that another clone leads."""

    def __init__(self, session: Session, flow_run: UUID, state: str) -> None:
        super().__init__(session, flow_run, state)
        self._lead: UUID | None = None
        self._known: set[UUID] = set()
        self._outputs: dict[str, list[dict[str, Any]]] = {}
        self._looked = 0.0
        self._gone = False

    def __enter__(self) -> "Join":
        super().__enter__()
        try:
            wait_for(
                lambda: self._claims.held_by_somebody(LEADING) and self._find_stages(),
                self._session.stopped,
                "a clone that leads a run of this state of the experiment",
                "no clone leads a run of this state of the experiment: start one with 'palimpsest run --share', with "
                "the same commit and the same params.yaml",
            )
        except BaseException:
            self._stack.close()
            raise
        return self

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
        import httpx

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
