"""What a clone does in an experiment, and what the scheduler of its run asks it."""

from enum import StrEnum
from typing import Protocol

from flows.runs.session import Session
from flows.stages.executor import Outcome


class Role(StrEnum):
    """What a clone does in an experiment."""

    ALONE = "alone"
    LEAD = "lead"
    JOIN = "join"


class Sharing(Protocol):
    """What the scheduler asks before and after each stage."""

    def may_start(self, name: str) -> bool:
        """Whether the stage can be started here now; asked again until it can, or is refused."""
        ...

    def refusal(self) -> str | None:
        """Why nothing further will be started here, or ``None``."""
        ...

    def run(self, name: str) -> Outcome:
        """Bring the stage to an outcome; in a thread of its own."""
        ...

    def ended(self, outcome: Outcome) -> None:
        """Told when a stage that was started has ended for good."""
        ...

    def order(self, name: str) -> int:
        """Stages with smaller numbers are started first."""
        ...


class Alone:
    """One clone does everything."""

    def __init__(self, session: Session) -> None:
        self._compute = session.run_stage

    def may_start(self, name: str) -> bool:
        """Always."""
        return True

    def refusal(self) -> str | None:
        """Never."""
        return None

    def run(self, name: str) -> Outcome:
        """Through DVC."""
        return self._compute(name)

    def ended(self, outcome: Outcome) -> None:
        """Nothing to do."""

    def order(self, name: str) -> int:
        """No preference."""
        return 0

    def __enter__(self) -> "Alone":
        return self

    def __exit__(self, *_: object) -> None:
        pass
