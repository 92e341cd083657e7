"""The plan: which stages would run, which would not, and why. Making it starts nothing and changes nothing.

A stage runs for a reason of its own: its command, a parameter, an input that no running stage makes, or an output. A
stage after running ones may run: that depends on their outputs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.graph.changes import Change, Kind, changes_of
from flows.graph.graph import Graph, read_graph
from flows.graph.private_sources import refuse_pushed_sources
from flows.graph.selection import select
from tasks.files.separate_paths import overlap
from tasks.parameters.cells_command import STAGE as CHECK_OF_PARAMETERS

if TYPE_CHECKING:
    from dvc.repo import Repo


class Action(StrEnum):
    """Action for a stage."""

    RUN = "run"
    PERHAPS = "run if its inputs change"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class PlannedStage:
    """Planned action for one stage, and its reasons."""

    name: str
    changes: tuple[Change, ...] = ()
    """Reasons of the stage's own."""
    after: tuple[str, ...] = ()
    """Direct predecessors that run, or may run, first."""

    @property
    def action(self) -> Action:
        """What happens with the stage."""
        if self.changes:
            return Action.RUN
        return Action.PERHAPS if self.after else Action.UNCHANGED

    @property
    def others_follow(self) -> bool:
        """Whether its outputs may change. The check of params.yaml writes the same content again."""
        if self.name == CHECK_OF_PARAMETERS:
            return any(change.kind in (Kind.NEW, Kind.OUTPUT) for change in self.changes)
        return self.action is not Action.UNCHANGED

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons in words; empty for an unchanged stage."""
        after = (f"after {enumeration(self.after)}",) if self.after else ()
        return (*(change.text for change in self.changes), *after)

    def as_dict(self) -> dict[str, Any]:
        """The content for ``--json``."""
        return {
            "name": self.name,
            "action": self.action.value,
            "reasons": list(self.reasons),
            "changes": [{"kind": str(change.kind), "subject": change.subject} for change in self.changes],
            "after": list(self.after),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The stages of a graph in its order, each with its planned action."""

    graph: Graph
    stages: Mapping[str, PlannedStage]
    steps: frozenset[str] = frozenset()
    """Every step of ``dvc.yaml``, also of stages that are not selected."""

    def counts(self) -> dict[Action, int]:
        """The number of stages of each action, with every action as a key."""
        found = Counter(stage.action for stage in self.stages.values())
        return {action: found[action] for action in Action}

    @property
    def nothing_to_do(self) -> bool:
        """Whether every stage is unchanged."""
        return self.counts()[Action.UNCHANGED] == len(self.stages)

    def summary(self) -> str:
        """One line with the numbers of stages that run, may run and do not run."""
        run, perhaps, unchanged = self.counts().values()
        noun = "stage" if len(self.stages) == 1 else "stages"
        may = f"{perhaps} will run if their inputs change"
        return f"{len(self.stages)} {noun}: {run} will run, {may}, {unchanged} unchanged"

    def causes(self) -> dict[str, list[str]]:
        """Each reason other than another stage's running, with its stages."""
        stages_of: dict[str, list[str]] = {}
        for stage in self.stages.values():
            for change in stage.changes:
                stages_of.setdefault(change.text, []).append(stage.name)
        return stages_of


def make_plan(repository: "Repo", patterns: Sequence[str] = (), only: Sequence[str] = ()) -> Plan:
    """The plan for the selected stages (``flows.graph.selection``) and their dependencies; for all without a selection.

    ``ParameterError`` if DVC would push a private source.
    """
    refuse_pushed_sources(Path(repository.root_dir))
    whole = read_graph(repository)
    graph = select(whole, patterns, only)
    planned: dict[str, PlannedStage] = {}
    for name, node in graph.items():
        after = tuple(above for above in node.upstream if planned[above].others_follow)
        # An input that a running stage makes is no reason yet: its content is unknown.
        remade = [output.fs_path for above in after for output in graph[above].stage.outs]
        changes = (
            change
            for change in changes_of(node.stage)
            if change.kind is not Kind.INPUT or not any(overlap(change.path, path) for path in remade)
        )
        planned[name] = PlannedStage(name, tuple(changes), after)
    return Plan(graph, planned, frozenset(node.step for node in whole.values()))


def enumeration(names: Iterable[str], shown: int = 3) -> str:
    """``a, b, c and 4 more``."""
    names = list(names)
    if len(names) <= shown + 1:
        return ", ".join(names)
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"
