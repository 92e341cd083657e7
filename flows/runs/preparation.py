"""What comes before the first stage: what a killed run left is put right, and the plan is made."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from flows.graph.plan import Plan
from flows.graph.selection import Selection

if TYPE_CHECKING:
    from dvc.repo import Repo

    from tasks.settings.resources import ResourceSettings


def say_on_stderr(sentence: str) -> None:
    """Tell the user what was put right."""
    print(f"palimpsest: {sentence}", file=sys.stderr)


def plan_after_repair(
    repository: "Repo",
    selection: Selection,
    resources: "ResourceSettings | None",
    say: Callable[[str], None] = say_on_stderr,
) -> Plan:
    """The plan, after what killed processes left behind has been put right. Only with the lock of runs.

    ``ParameterError`` where ``resources`` names a step that the graph does not have; ``None`` is not looked at.
    """
    from dvc.exceptions import DvcException

    from flows.graph.plan import make_plan
    from flows.runs.abandoned_state import release_dead_locks, set_torn_record_aside

    done = release_dead_locks(repository)
    try:
        plan = make_plan(repository, selection)
    except DvcException:
        aside = set_torn_record_aside(repository)
        if not aside:
            raise
        done += aside
        plan = make_plan(repository, selection)
    if resources is not None and (resources.time_limits or resources.concurrency):
        from flows.runs.step_settings import check_step_names

        check_step_names(resources, plan.steps)
    for sentence in done:
        say(sentence)
    return plan
