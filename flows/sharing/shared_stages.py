"""Which stages several clones share, which each does for itself, and which stay where the run was started.

A stage is *shared* where DVC keeps all of its outputs and this clone can have its inputs: one clone computes it, and
the others restore it from the DVC remote that all of them trust. An output that DVC does not keep in its cache each
clone makes for its *own*, where a shared stage needs it. Stages that nothing depends on stay where the run was started.

A clone without the raw text does not divide it into corpora. What it cannot run itself comes from the *border*: an
output of a stage that others compute.
"""

import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from flows.graph.graph import Graph, dvc_stages, graph_of
from flows.sharing.exchange import can_travel
from tasks.files.paths_apart import overlap

if TYPE_CHECKING:
    from dvc.repo import Repo


@dataclass(frozen=True, slots=True)
class SharedStages:
    """Stages by what this clone does with them; those of no kind are not for it, unless it leads."""

    shared: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    border: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """All of them."""
        return self.shared | self.own | self.border

    def needed(self, graph: Graph, wanted: Iterable[str]) -> "SharedStages":
        """The part that is needed to compute the wanted shared stages."""
        found: set[str] = set()
        waiting = [name for name in wanted if name in self.shared]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                if name not in self.border:
                    waiting.extend(graph.nodes[name].upstream)
        return SharedStages(self.shared & found, self.own & found, self.border & found)


def shared_stages(repository: "Repo") -> tuple[SharedStages, SharedStages]:
    """The kinds of all stages in this clone, whose folder we are in, and in one that has nothing but git's files."""
    loaded = dvc_stages(repository)
    graph = graph_of(loaded)
    stages = {name: stage for name, (stage, _) in loaded.items()}
    tracked = tracked_paths()
    return classify(graph, stages, tracked, lambda path: Path(path).exists()), classify(graph, stages, tracked)


def classify(
    graph: Graph,
    stages: Mapping[str, Any],
    tracked: frozenset[str],
    is_here: Callable[[str], bool] = lambda _path: False,
) -> SharedStages:
    """The kinds of all stages, from DVC's stage objects, the paths that git holds, and the other files of this clone.

    Stages that nothing depends on are never shared: the report page and what is published are wanted where the run was
    started.
    """
    following = graph.downstream()
    shared: set[str] = set()
    own: set[str] = set()
    for name, node in graph.nodes.items():
        stage = stages[name]
        if not node.command:
            # Data added with `dvc add`.
            if all(is_here(str(output)) for output in stage.outs):
                own.add(name)
            continue
        made = [(above, output) for above in node.upstream for output in stages[above].outs]
        makers = {path: [pair for pair in made if overlap(path, str(pair[1]))] for path in node.dependencies}
        usual = not (stage.frozen or stage.is_callback or stage.always_changed)
        if not usual or not all(
            all(can_travel(output) or above in own for above, output in pairs)
            if pairs
            else path in tracked or is_here(path)
            for path, pairs in makers.items()
        ):
            continue
        if stage.outs and all(can_travel(output) for output in stage.outs):
            if following[name]:
                shared.add(name)
        elif all(above in shared or above in own for above in node.upstream):
            own.add(name)
    border = {above for name in shared for above in graph.nodes[name].upstream} - shared - own
    return SharedStages(frozenset(shared), frozenset(own), frozenset(border))


def tracked_paths() -> frozenset[str]:
    """Files that git holds below the working folder, and the folders above them."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    files = [name for name in listed.split("\0") if name]
    return frozenset(files) | {str(above) for name in files for above in PurePosixPath(name).parents}
