"""The clone in which a shared run was started."""

import time
from collections.abc import Sequence
from pathlib import Path

from flows.graph.graph import open_repository
from flows.graph.plan import Action
from flows.sharing.exchange import read_outputs
from flows.sharing.shared_run import LEADING, LOST, SharedRun, exchange_file, not_exchanged, wait_for
from flows.sharing.shared_stages import SharedStages, shared_stages
from flows.stages.executor import Outcome
from tasks.errors import ResourceError


class Lead(SharedRun):
    """The clone in which the run was started."""

    _border: frozenset[str] = frozenset()
    """Stages of whose outputs clones without the private text need some."""

    def __enter__(self) -> "Lead":
        super().__enter__()
        try:
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
        except BaseException:
            self._stack.close()
            raise
        return self

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
