"""Whether data changed: the sources of corpora, speech and labelled text, as against code and parameters."""

from pathlib import Path

import yaml

from flows.graph.changes import Kind
from flows.graph.plan import Plan
from flows.graph.private_sources import sources_below
from tasks.parameters.parameter_file import DEFAULT_PATH


def source_paths(folder: Path) -> set[str]:
    """Absolute paths of all sources that ``params.yaml`` names."""
    document = yaml.safe_load((folder / DEFAULT_PATH).read_text(encoding="utf-8"))
    return {str((folder / path).absolute()) for _, path in sources_below(document)}


def changed_sources(plan: Plan, folder: Path) -> list[str]:
    """Sources whose content is not what ``dvc.lock`` recorded, and data added with ``dvc add`` that changed.

    A stage that has never run has seen no version of its data yet, so its sources count as changed.
    """
    sources = source_paths(folder)
    changed: dict[str, None] = {}
    for name, planned in plan.stages.items():
        node = plan.graph.nodes[name]
        for change in planned.changes:
            if change.kind is Kind.NEW:
                changed |= dict.fromkeys(
                    path for path in node.dependencies if str((folder / path).absolute()) in sources
                )
            elif change.kind is Kind.INPUT and change.path in sources:
                changed[change.subject] = None
            elif not node.command:
                changed[name] = None
    return list(changed)
