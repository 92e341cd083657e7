"""The graph of the experiment from DVC: stages with every matrix and foreach resolved, and their edges.

``dvc.yaml`` is the only definition of the graph. This module reads it through DVC, in process, and restates nothing:
names, commands and edges are those of ``dvc stage list`` and ``dvc dag``.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.graph.changes import Change, Kind
from tasks.errors import ResourceError, StageError
from tasks.files.private_folders import DVC_TABLES
from tasks.parameters.cells_command import STAGE as CHECK_OF_PARAMETERS
from tasks.records.cell import Cell

if TYPE_CHECKING:
    from dvc.repo import Repo
    from dvc.stage import Stage


class Action(StrEnum):
    """Action for a stage."""

    RUN = "run"
    PERHAPS = "run if its inputs change"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Node:
    """One stage, as DVC resolved it, and in a plan its reasons to run; paths are relative to the checkout."""

    name: str
    """DVC's name: ``pretrain``, ``mask@chat-allow_list``, ``data/raw/mail.dvc``."""
    command: str
    """Its shell command; empty for data added with ``dvc add``."""
    dependencies: tuple[str, ...]
    parameters: tuple[str, ...]
    """Key paths of ``params.yaml``; for another file, after that file's name and a colon."""
    outputs: tuple[str, ...]
    upstream: tuple[str, ...]
    """Stages that make a dependency of this one, in the order of the graph."""
    dimensions: Mapping[str, str] = field(default_factory=dict)
    """Its cell, or its place in its matrix or foreach: ``{"dataset": "chat", "seed": "1"}``."""
    stage: Any = None
    """DVC's object, as long as its repository is open."""
    changes: tuple[Change, ...] = ()
    """Reasons of the stage's own to run."""
    after: tuple[str, ...] = ()
    """Direct predecessors that run, or may run, first."""

    @property
    def step(self) -> str:
        """The name in ``dvc.yaml`` that a matrix or foreach expands: ``mask`` of ``mask@chat-allow_list``."""
        return self.name.split("@", 1)[0]

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


Graph = dict[str, Node]
"""All stages by name, each after all stages that it depends on."""


def enumeration(names: Iterable[str], shown: int = 3) -> str:
    """``a, b, c and 4 more``."""
    names = list(names)
    if len(names) <= shown + 1:
        return ", ".join(names)
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"


def steps_left(graph: Graph) -> dict[str, int]:
    """Return, for each stage, the number of stages in the longest chain that starts with it."""
    lengths = dict.fromkeys(graph, 1)
    for name in reversed(graph):
        for above in graph[name].upstream:
            lengths[above] = max(lengths[above], lengths[name] + 1)
    return lengths


def project_folder(start: str | Path = ".") -> Path:
    """The root of the DVC project that contains ``start``; ``StageError`` without one or ``dvc.yaml``."""
    from dvc.exceptions import NotDvcRepoError
    from dvc.repo import Repo

    place = os.path.abspath(start)
    try:
        root = Path(Repo.find_root(place))
    except NotDvcRepoError:
        raise StageError(
            f"{place!r} is not inside a DVC project; run this in the folder that holds dvc.yaml and .dvc"
        ) from None
    if not (root / "dvc.yaml").is_file():
        raise StageError(f"there is no dvc.yaml in {str(root)!r}; run this in the project's folder")
    return root


@contextmanager
def open_repository(root: str | Path) -> Iterator["Repo"]:
    """Open the DVC repository whose root is ``root`` and work in that folder inside the block.

    DVC's own errors become one-line errors of ours: ``StageError`` if the graph cannot be read, ``ResourceError`` if
    another process holds DVC's lock.
    """
    from dvc.exceptions import DvcException
    from dvc.lock import LockError
    from dvc.repo import Repo

    # DVC prints hints and progress through a logger that its import sets up; errors are exceptions.
    logging.getLogger("dvc").setLevel(logging.ERROR)
    # As 'make install' and runs set it in .dvc/config.local: nothing is written here.
    tables = str((Path(root) / DVC_TABLES).absolute())
    with chdir(root):
        try:
            with Repo(str(root), config={"core": {"site_cache_dir": tables}}) as repository:
                yield repository
        except LockError as error:
            raise ResourceError(
                "another DVC process holds the project's lock; wait for it to end and run this again "
                f"({_one_line(error)})"
            ) from None
        except DvcException as error:
            text = _one_line(error)
            if "'dvc.lock'" in text:
                text += "; 'git checkout dvc.lock' and then 'dvc checkout' restore the last commit's state"
            raise StageError(f"DVC cannot read the graph: {text}") from None


def read_graph(repository: "Repo") -> Graph:
    """The graph of the repository; a few hundredths of a second for a hundred stages.

    Read under DVC's lock, so that no other process is writing ``dvc.lock`` meanwhile. Data added with ``dvc add``
    counts only if a stage depends on it, as for ``dvc repro``.
    """
    from dvc.repo.reproduce import get_active_graph
    from dvc.stage import PipelineStage
    from networkx import descendants, lexicographical_topological_sort

    with repository.lock:
        index = repository.index
        # A frozen stage does not wait for its inputs; DVC's own runs cut its edges with the same function.
        edges = get_active_graph(index.graph)
    position = {stage: place for place, stage in enumerate(index.stages)}
    stages = [stage for stage in index.stages if isinstance(stage, PipelineStage)]
    wanted = set(stages).union(*(descendants(edges, stage) for stage in stages))
    # Every stage after those it depends on; among the free ones the order of dvc.yaml.
    needs = edges.subgraph(wanted).reverse(copy=False)
    ordered = list(lexicographical_topological_sort(needs, key=position.__getitem__))
    definitions: dict[str, Mapping[str, Any]] = {}
    graph: Graph = {}
    for stage in ordered:
        upstream = set(edges.successors(stage))
        node = _node(stage, tuple(above.addressing for above in ordered if above in upstream), definitions)
        graph[node.name] = node
    return graph


def _node(stage: "Stage", upstream: tuple[str, ...], definitions: dict[str, Mapping[str, Any]]) -> Node:
    """``definitions``: content of each ``dvc.yaml`` by its path, since every stage object would read it again."""
    from dvc.dependency import ParamsDependency

    parameters = []
    for dependency in stage.params:
        file = os.path.relpath(dependency.fs_path)
        prefix = "" if file == ParamsDependency.DEFAULT_PARAMS_FILE else f"{file}:"
        parameters += [f"{prefix}{key}" for key in dependency.params or ["*"]]
    commands = stage.cmd if isinstance(stage.cmd, list) else [stage.cmd or ""]
    return Node(
        name=stage.addressing,
        command="\n".join(commands),
        dependencies=tuple(str(entry) for entry in stage.deps if not isinstance(entry, ParamsDependency)),
        parameters=tuple(parameters),
        outputs=tuple(str(entry) for entry in stage.outs),
        upstream=upstream,
        dimensions=_dimensions(stage, definitions),
        stage=stage,
    )


def _dimensions(stage: "Stage", definitions: dict[str, Mapping[str, Any]]) -> dict[str, str]:
    """A stage's place in its matrix or foreach, as DVC resolved it; empty for a stage without.

    A row of ``cells.yaml`` has the dimensions of a cell among its columns; another foreach has only the key.
    """
    from dvc.parsing import ForeachDefinition, MatrixDefinition
    from dvc.stage import PipelineStage

    if not isinstance(stage, PipelineStage) or "@" not in stage.name:
        return {}
    step, key = stage.name.split("@", 1)
    if stage.path not in definitions:
        definitions[stage.path] = stage.dvcfile.resolver.definitions
    definition = definitions[stage.path][step]
    if not isinstance(definition, ForeachDefinition | MatrixDefinition):
        return {}
    item = definition.normalized_iterable[key]
    if isinstance(definition, ForeachDefinition):
        row = item if isinstance(item, Mapping) else {}
        item = {name: row[name] for name in Cell.__dataclass_fields__ if name in row} or {step: key}
    return {str(name): str(value) for name, value in item.items()}


def _one_line(error: BaseException) -> str:
    parts = []
    cause: BaseException | None = error
    while cause is not None:
        text = " ".join(str(cause).split())
        if text and text not in parts:
            parts.append(text)
        cause = cause.__cause__
    return ": ".join(parts)
