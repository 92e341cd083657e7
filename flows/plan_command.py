"""Show which stages of the experiment would run, which would not, and why.

DVC records each stage in dvc.lock. A stage runs if its command, one of its parameters or one of its
inputs changed since then, or if an output is missing. Stages that depend on it run only if their
inputs come out different.

Nothing is started. Only cells.yaml may change: it is updated from params.yaml.

examples:
    palimpsest plan                       all stages
    palimpsest plan fill                  the stages of one step, with what they need
    palimpsest plan '*@chat-allow_list*'  stages by pattern, with what they need
    palimpsest plan --only technique=allow_list --only method=top_k,log_linear
"""

import json
import sys
from contextlib import chdir
from dataclasses import asdict
from typing import Annotated

from pydantic import Field

from flows.checkout.overrides import ORIGINAL
from flows.graph.graph import Graph, project_folder
from flows.graph.plan import as_dicts, counts, summary
from tasks.options import Argument, Command, Options

SUMMARY = "show which stages would run, and why"


class SelectionOptions(Options):
    """Selection of stages for a command."""

    stages: Annotated[list[str], Argument(positional=True, metavar="STAGE")] = Field(default_factory=list)
    """a stage, a step or a pattern with * and ?, with the stages that it depends on (default: all stages)"""
    only: Annotated[list[str], Argument(again=True, metavar="KEY=VALUE[,VALUE]")] = Field(default_factory=list)
    """only stages with these values of a dimension (dataset, technique, filler, method, seed, …), 'stage' or 'step',
    with those that they depend on. A stage must match every --only"""


class PlanOptions(SelectionOptions):
    """Options of the plan."""

    json_: bool = False
    """print the plan as JSON"""


def run(options: PlanOptions) -> int:
    """Print the plan; return 1 if its run would be refused, since something is missing."""
    from flows.runs.missing import missing_text, missing_things
    from flows.runs.preparation import checked_plan

    root = project_folder()
    plan, _ = checked_plan(root, options.stages, options.only)
    with chdir(root):
        missing = missing_things(plan, root)
    if (root / ORIGINAL).exists():
        text = "params.yaml has the overrides of a run with --set that is going on or was killed"
        print(f"palimpsest: {text}; after a killed one, the next 'palimpsest run' puts it back first", file=sys.stderr)
    if options.json_:
        document = {"stages": as_dicts(plan), "counts": counts(plan), "missing": list(map(asdict, missing))}
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print("\n".join(plan_lines(plan)), flush=True)
    if missing:
        print(f"palimpsest: error: {missing_text(missing)}", file=sys.stderr)
    return int(bool(missing))


def plan_lines(plan: Graph) -> list[str]:
    """The plan as text: one line per stage, and the counts."""
    action_width = max((len(stage.action) for stage in plan.values()), default=0)
    name_width = max(map(len, plan), default=0)
    lines = [
        f"{stage.action:<{action_width}}  {stage.name:<{name_width}}  {'; '.join(stage.reasons)}".rstrip()
        for stage in plan.values()
    ]
    return [*lines, "", summary(plan)]


COMMAND = Command(PlanOptions, run)
