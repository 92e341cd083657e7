"""The plan: which stages would run, which would not, and why. Making it starts nothing and changes nothing.

A stage runs for a reason of its own: its command, a parameter, an input that no running stage makes, or an output. A
stage after running ones may run: that depends on their outputs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.graph.changes import Change, ChangeReader, Kind
from flows.graph.graph import Graph, Node, dvc_stages, graph_of
from flows.graph.private_sources import refuse_pushed_sources
from flows.graph.selection import Selection
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
    action: Action
    changes: tuple[Change, ...]
    """Reasons of the stage's own; empty unless the action is ``run``."""
    after: tuple[str, ...]
    """Direct predecessors that run, or may run, first."""
    restorable: bool
    """Whether DVC's cache already has the outputs, so that they are restored and nothing is computed."""

    @property
    def others_follow(self) -> bool:
        """Whether its outputs may change. The check of params.yaml writes the same content again."""
        if self.name == CHECK_OF_PARAMETERS:
            return any(change.kind in (Kind.NEW, Kind.OUTPUT) for change in self.changes)
        return self.action is not Action.UNCHANGED

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons in words; empty for an unchanged stage."""
        texts = [change.text for change in self.changes]
        if self.after:
            texts.append(f"after {enumeration(self.after)}")
        return tuple(texts)

    def as_dict(self) -> dict[str, Any]:
        """The content for ``--json``."""
        return {
            "name": self.name,
            "action": self.action.value,
            "reasons": list(self.reasons),
            "changes": [{"kind": str(change.kind), "subject": change.subject} for change in self.changes],
            "after": list(self.after),
            "restorable": self.restorable,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The stages of a graph in its order, each with its planned action."""

    graph: Graph
    stages: Mapping[str, PlannedStage]
    steps: frozenset[str] = frozenset()
    """Every step of ``dvc.yaml``, also of stages that are not selected."""

    def to_do(self) -> Iterator[Node]:
        """The stages that run, or may run."""
        return (self.graph.nodes[name] for name, stage in self.stages.items() if stage.action is not Action.UNCHANGED)

    def counts(self) -> dict[Action, int]:
        """The number of stages of each action, with every action as a key."""
        found = Counter(stage.action for stage in self.stages.values())
        return {action: found[action] for action in Action}

    @property
    def nothing_to_do(self) -> bool:
        """Whether every stage is unchanged."""
        return all(stage.action is Action.UNCHANGED for stage in self.stages.values())

    def summary(self) -> str:
        """One line with the numbers of stages that run, may run and do not run."""
        counts = self.counts()
        total = len(self.stages)
        noun = "stage" if total == 1 else "stages"
        restorable = sum(stage.restorable for stage in self.stages.values())
        run = f"{counts[Action.RUN]} will run" + (f" ({restorable} from DVC's cache)" if restorable else "")
        perhaps = f"{counts[Action.PERHAPS]} will run if their inputs change"
        return f"{total} {noun}: {run}, {perhaps}, {counts[Action.UNCHANGED]} unchanged"

    def causes(self) -> Iterator[tuple[str, list[str]]]:
        """Each reason other than another stage's running, with its stages."""
        stages_of: dict[str, list[str]] = {}
        for stage in self.stages.values():
            for change in stage.changes:
                stages_of.setdefault(change.text, []).append(stage.name)
        yield from stages_of.items()


EVERYTHING = Selection()


def make_plan(repository: "Repo", selection: Selection = EVERYTHING) -> Plan:
    """The plan for the selected stages and their dependencies; for all without a selection.

    ``ParameterError`` if DVC would push a private source.
    """
    stages = dvc_stages(repository)
    refuse_pushed_sources((stage for stage, _ in stages.values()), Path(repository.root_dir))
    whole = graph_of(stages)
    graph = whole.select(selection)
    reader = ChangeReader(repository)
    planned: dict[str, PlannedStage] = {}
    for name, node in graph.nodes.items():
        stage, _ = stages[name]
        after = tuple(above for above in node.upstream if planned[above].others_follow)
        # An input that a running stage makes is no reason yet: its content is unknown.
        remade = [output.fs_path for above in after for output in stages[above][0].outs]
        changes = tuple(
            change
            for change in reader.changes(stage)
            if change.kind is not Kind.INPUT or not any(overlap(change.path, path) for path in remade)
        )
        if changes:
            action = Action.RUN
        else:
            action = Action.PERHAPS if after else Action.UNCHANGED
        restorable = action is Action.RUN and not after and reader.restorable(stage)
        planned[name] = PlannedStage(name, action, changes, after, restorable)
    return Plan(graph, planned, frozenset(node.step for node in whole.nodes.values()))


def enumeration(names: Iterable[str], shown: int = 3) -> str:
    """``a, b, c and 4 more``."""
    names = list(names)
    if len(names) <= shown + 1:
        return ", ".join(names)
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"
