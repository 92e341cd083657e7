"""What stages that will run need and do not find, told before any of them starts.

The checks are those of ``palimpsest doctor``, as far as a stage that will run reads what they are about. An input that
no stage makes is missed whatever it is.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from flows.graph.changes import NOT_IN_CACHE, Kind
from flows.graph.graph import Node
from flows.graph.plan import Action, Plan
from tasks.errors import StageError
from tasks.parameters.cells_command import STAGE as CHECK_OF_PARAMETERS

if TYPE_CHECKING:
    from tasks.doctor.finding import Check, Finding


def missing_things(plan: Plan, root: Path) -> "list[Finding]":
    """What the stages lack that will run and are not in DVC's cache; to be called in the project's folder."""
    stages = (stage for stage in plan.stages.values() if stage.action is Action.RUN and not stage.restorable)
    computed = [plan.graph.nodes[stage.name] for stage in stages if stage.name != CHECK_OF_PARAMETERS]
    if not computed:
        # Before the settings of every step are imported, which takes longer than all else where nothing is to be done.
        return []
    from tasks.doctor.data_findings import checks
    from tasks.doctor.finding import Finding
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    inputs = dict(_missing_inputs(computed, plan))
    findings, told = [], set[str]()
    for check in checks(read_parameters(root / DEFAULT_PATH), root):
        source = None if check.source is None else os.path.normpath(check.source)
        comes_later = source is not None and not os.path.exists(source) and source not in inputs
        if comes_later or not any(_concerns(check, source, node) for node in computed):
            continue
        finding = check.look()
        if finding.state == "missing":
            findings.append(finding)
            told.add(source or "")
    for path, name in inputs.items():
        if path not in told:
            remedy = f"put it there, then 'palimpsest add {path}' if it is private text"
            findings.append(Finding("data", name, "missing", f"its input {path!r} is not there", remedy))
    return findings


def refuse_missing(plan: Plan, root: Path) -> None:
    """``StageError`` with everything that stages lack which will run."""
    if missing := missing_things(plan, root):
        raise StageError(missing_text(missing))


def missing_text(missing: "list[Finding]") -> str:
    """In one line, with the remedies."""
    count = f"{len(missing)} things are missing: " if len(missing) > 1 else ""
    return f"no stage can start: {count}" + "; ".join(finding.text for finding in missing)


def _missing_inputs(computed: list[Node], plan: Plan) -> Iterator[tuple[str, str]]:
    """Inputs that are not there and that nothing brings, each with a stage that reads it; also added data that DVC has
    not in its cache."""
    for node in computed:
        lost = (Kind.INPUT, "") if node.command else (Kind.OUTPUT, NOT_IN_CACHE)
        for change in plan.stages[node.name].changes:
            if change.kind is lost[0] and change.text.endswith(lost[1]) and not os.path.exists(change.path):
                yield os.path.normpath(change.subject), node.name


def _concerns(check: "Check", source: str | None, node: Node) -> bool:
    """Whether a stage reads what a check is about."""
    reads = any(check.key == key or check.key.startswith(f"{key}.") for key in node.parameters)
    return reads and (source is None or source in map(os.path.normpath, node.dependencies))
