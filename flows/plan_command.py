"""Show which stages of the experiment would run, which would not, and why. Nothing is started or changed.

A stage runs when its command, one of its parameters or one of its inputs changed, or an output is missing, since DVC
recorded it in dvc.lock. Stages behind it run if their inputs come out different.

    palimpsest plan                       all stages
    palimpsest plan fill                  the stages of one step, with what they need
    palimpsest plan '*@chat-allow_list*'  stages by pattern, with what they need
"""

import argparse
import json

from flows.graph import open_repository, project_folder
from flows.plan import Plan, make_plan

SUMMARY = "show which stages would run, and why"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_stage_option(parser)
    parser.add_argument("--json", action="store_true", help="print the plan as JSON")


def add_stage_option(parser: argparse.ArgumentParser) -> None:
    """The stages that a command is about."""
    parser.add_argument(
        "stages",
        nargs="*",
        metavar="STAGE",
        help="a stage, a step or a pattern with * and ?; what it depends on is included (default: all stages)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    from tasks.params import DEFAULT_PATH, read_parameters

    root = project_folder()
    read_parameters(root / DEFAULT_PATH)
    with open_repository(root) as repository:
        plan = make_plan(repository, arguments.stages)
    if arguments.json:
        counts = {action.value: count for action, count in plan.counts().items()}
        stages = [stage.as_dict() for stage in plan.stages.values()]
        print(json.dumps({"stages": stages, "counts": counts}, indent=2, ensure_ascii=False))
    else:
        print("\n".join(plan_lines(plan)))
    return 0


def plan_lines(plan: Plan) -> list[str]:
    """The plan as text: one line per stage, and the counts."""
    action_width = max((len(stage.action) for stage in plan.stages.values()), default=0)
    name_width = max(map(len, plan.stages), default=0)
    lines = []
    for stage in plan.stages.values():
        reasons = "; ".join(stage.reasons)
        if stage.restorable:
            reasons += " (DVC's cache has the outputs: they are restored)"
        lines.append(f"{stage.action:<{action_width}}  {stage.name:<{name_width}}  {reasons}".rstrip())
    return [*lines, "", plan.summary()]
