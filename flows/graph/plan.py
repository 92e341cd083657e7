"""The plan: which stages would run, which would not, and why. Making it starts nothing and changes nothing.

A stage runs for a reason of its own: its command, a parameter, an input that no running stage makes, or an output. A
stage after running ones may run: that depends on their outputs.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from flows.graph.changes import Kind, changes_of
from flows.graph.graph import Action, Graph
from tasks.files.separate_paths import overlap


def planned(graph: Graph) -> Graph:
    """The graph with each stage's reasons to run; its repository is open."""
    plan: Graph = {}
    for name, node in graph.items():
        after = tuple(above for above in node.upstream if plan[above].others_follow)
        # An input that a running stage makes is no reason yet: its content is unknown.
        remade = [output.fs_path for above in after for output in graph[above].stage.outs]
        changes = (
            change
            for change in changes_of(node.stage)
            if change.kind is not Kind.INPUT or not any(overlap(change.path, path) for path in remade)
        )
        plan[name] = replace(node, changes=tuple(changes), after=after)
    return plan


def counts(plan: Graph) -> dict[Action, int]:
    """The number of stages of each action, with every action as a key."""
    found = Counter(stage.action for stage in plan.values())
    return {action: found[action] for action in Action}


def summary(plan: Graph) -> str:
    """One line with the numbers of stages that run, may run and do not run."""
    run, perhaps, unchanged = counts(plan).values()
    noun = "stage" if len(plan) == 1 else "stages"
    may = f"{perhaps} will run if their inputs change"
    return f"{len(plan)} {noun}: {run} will run, {may}, {unchanged} unchanged"


def causes(plan: Graph) -> dict[str, list[str]]:
    """Each reason other than another stage's running, with its stages."""
    stages_of: dict[str, list[str]] = {}
    for stage in plan.values():
        for change in stage.changes:
            stages_of.setdefault(change.text, []).append(stage.name)
    return stages_of


def as_dicts(plan: Graph) -> list[dict[str, Any]]:
    """Each stage for ``--json``."""
    return [
        {
            "name": stage.name,
            "action": stage.action.value,
            "reasons": list(stage.reasons),
            "changes": [{"kind": str(change.kind), "subject": change.subject} for change in stage.changes],
            "after": list(stage.after),
        }
        for stage in plan.values()
    ]
