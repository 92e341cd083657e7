"""Missing requirements of stages that will run, found before any of them starts.

They are those of the checks of ``palimpsest doctor`` that concern inputs of such a stage. An input that no stage makes
is always checked.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from flows.graph.changes import NOT_IN_CACHE, Kind
from flows.graph.graph import Action, Graph, Node
from tasks.errors import StageError
from tasks.parameters.cells_command import STAGE as CHECK_OF_PARAMETERS

if TYPE_CHECKING:
    from tasks.doctor.finding import Finding


def missing_things(plan: Graph, root: Path) -> "list[Finding]":
    """Missing requirements of stages that will run; needs the project's folder."""
    computed = [node for node in plan.values() if node.action is Action.RUN and node.name != CHECK_OF_PARAMETERS]
    if not computed:
        # Before the import of every step's settings, which takes longest if nothing is to be done.
        return []
    from tasks.doctor.data_findings import checks
    from tasks.doctor.finding import Finding
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters

    inputs = _missing_inputs(computed)
    findings, named = [], set[str]()
    for check in checks(read_parameters(root / DEFAULT_PATH), root):
        source = None if check.source is None else os.path.normpath(check.source)
        comes_later = source is not None and not os.path.exists(source) and source not in inputs
        if comes_later or not any(_reads(node, check.key, source) for node in computed):
            continue
        finding = check.look()
        if finding.state == "missing":
            findings.append(finding)
            named.add(source or "")
    for path, name in inputs.items():
        if path not in named:
            remedy = f"put it there, then 'palimpsest add {path}' if it is private text"
            findings.append(Finding("data", name, "missing", f"its input {path!r} is not there", remedy))
    return findings


def refuse_missing(plan: Graph, root: Path) -> None:
    """Raise ``StageError`` with all missing requirements of stages that will run."""
    if missing := missing_things(plan, root):
        raise StageError(missing_text(missing))


def missing_text(missing: "list[Finding]") -> str:
    """Them in one line, with the remedies."""
    count = f"{len(missing)} things are missing: " if len(missing) > 1 else ""
    return f"no stage can start: {count}" + "; ".join(finding.text for finding in missing)


def _missing_inputs(computed: list[Node]) -> dict[str, str]:
    """Missing inputs that nothing will make or restore, each with a stage that reads it; also added data missing
    in DVC's cache."""
    found = {}
    for node in computed:
        lost = (Kind.INPUT, "") if node.command else (Kind.OUTPUT, NOT_IN_CACHE)
        for change in node.changes:
            if change.kind is lost[0] and change.text.endswith(lost[1]) and not os.path.exists(change.path):
                found[os.path.normpath(change.subject)] = node.name
    return found


def _reads(node: Node, key: str, source: str | None) -> bool:
    """Whether a stage reads the section and the source of a check."""
    is_section = any(key == one or key.startswith(f"{one}.") for one in node.parameters)
    return is_section and (source is None or source in map(os.path.normpath, node.dependencies))
