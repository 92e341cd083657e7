"""Settings of ``resources`` that go by step: time limits, and the tags under which steps share a limit."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from tasks.errors import ParameterError
from tasks.settings.resources import ResourceSettings
from tasks.spelling import nearest


def check_step_names(resources: ResourceSettings, steps: Iterable[str]) -> None:
    """``ParameterError`` where a name or pattern fits no step of the graph: a limit must not miss in silence."""
    steps = sorted(set(steps))
    named = [(f"resources.time_limits: {name!r}", name) for name in resources.time_limits]
    for tag, shared in resources.concurrency.items():
        named += [(f"resources.concurrency.{tag}.steps: {name!r}", name) for name in shared.steps]
    for where, name in named:
        if not any(fnmatchcase(step, name) for step in steps):
            known = f"{nearest(name, steps)}; there are: {', '.join(steps)}"
            raise ParameterError(f"{where} fits no step of dvc.yaml{known}")


def time_limit(resources: ResourceSettings, step: str) -> float | None:
    """Seconds that a stage of the step may take, from the first entry that fits; ``None`` for no limit."""
    return next((seconds for name, seconds in resources.time_limits.items() if fnmatchcase(step, name)), None)


def tags(resources: ResourceSettings, step: str) -> list[str]:
    """The Prefect tags of the step, in the order of the settings."""
    return [
        tag for tag, shared in resources.concurrency.items() if any(fnmatchcase(step, name) for name in shared.steps)
    ]


def retry_delays(resources: ResourceSettings) -> list[float]:
    """Seconds before each further try, each twice the one before."""
    return [resources.retry_seconds * 2**number for number in range(resources.retries)]
