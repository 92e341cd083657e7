"""The files that a reader wants at the end of a run, and whether this run brought them up to date."""

from collections.abc import Mapping
from pathlib import Path

from flows.graph.plan import Plan
from flows.stages.executor import Outcome, State

SUMMARY_TABLE = Path("results/summary.md")
REPORT_PAGE = Path("results/report.html")
VERDICT = Path("results/verdict.txt")


def makers_of(path: Path, plan: Plan) -> list[str]:
    """Stages of the plan that make the file."""
    return [node.name for node in plan.graph.nodes.values() if str(path) in node.outputs]


def is_of_this_run(path: Path, plan: Plan, outcomes: Mapping[str, Outcome]) -> bool:
    """Whether the file is there and up to date: the stages that make it belong to the run and are done."""
    makers = makers_of(path, plan)
    lost = (State.FAILED, State.SKIPPED)
    return bool(makers) and path.exists() and not any(outcomes[name].state in lost for name in makers)
