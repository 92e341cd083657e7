"""Show where a number comes from: commit, parameters, inputs, machine, and how to make it again.

RUN is one of these names:

- a cell as tables name it, such as chat/allow_list/minilm-top_k-1.
- the key of a run: the cell, '#' and twelve digits.
- the id of a run in MLflow.
- a stage of dvc.yaml.
- the name of a report.

Inputs are followed back to the sources. The answer comes from the reports. Only for runs of earlier
states it comes from MLflow.

examples:
  palimpsest where-from chat/allow_list/minilm-top_k-1
  palimpsest where-from word_error_rate/chat/allow_list/minilm-top_k-1 --json
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from tasks.errors import CorpusError
from tasks.options import Argument, Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.records.stage_report import stored_changes
from tasks.results.origin.lock_entries import entries_of, lock_digest, read_lock
from tasks.results.report_index import REPORTS, ReportIndex
from tasks.results.tracking.run_record import flat
from tasks.results.tracking.tracking_store import KEY_TAG, locked_store
from tasks.spelling import nearest

if TYPE_CHECKING:
    from mlflow.entities import Run

SUMMARY = "show where a number comes from, and how to make it again"
_TRACKED = re.compile(r"[0-9a-f]{32}|[\w/.-]+#[0-9a-f]{12}")
"""The id of a run, or a key."""


class WhereFromOptions(Options):
    """Options of the search: the number."""

    run: Annotated[str, Argument(positional=True)]
    """cell, key, MLflow run id, stage, or name of a report"""
    json_: bool = False
    """print everything as JSON, with the report of each stage that led to the number"""


@dataclass(frozen=True)
class Origin:
    """The records on a number, from its report or, of an earlier state, from a run of MLflow."""

    name: str
    stage: str | None
    code: Mapping[str, Any]
    """Commit, and the name of the uncommitted changes."""
    dvc_lock: str | None
    """Digest of the recorded part of ``dvc.lock``."""
    flow_run: str | None
    measured: Mapping[str, Any]
    report: str = ""
    run_id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    inputs: Sequence[tuple[str, str]] = ()

    @property
    def again(self) -> str | None:
        """The command that makes the number again; ``None`` for a training that was not published."""
        if self.stage is None:
            return None
        if not self.code["commit"]:
            return f"dvc repro {shlex.quote(self.stage)}"
        if self.code["dirty"] and not self.code.get("changes"):
            lost = "its uncommitted changes are not recorded"
            return f"not the same: {lost}; 'palimpsest run' makes it from the present state"
        return f"palimpsest restore {shlex.quote(self.run_id or self.stage)}"


def run(options: WhereFromOptions) -> None:
    """Resolve the name and print its origin."""
    index = ReportIndex(REPORTS)
    origin = resolve(options.run, index)
    if options.json_:
        steps = index.chain(origin.report) if origin.report else []
        chain = [
            index.reports[step] | {"read": [asdict(link) | {"origin": link.origin} for link in index.links(step)]}
            for step in steps
        ]
        print(json.dumps(asdict(origin) | {"again": origin.again, "chain": chain}, indent=2, ensure_ascii=False))
        return
    print(origin.name)
    if origin.run_id:
        print("  a run of an earlier state: the reports are of another one; this is what MLflow holds")
    facts = {"commit": _commit(origin.code), "dvc.lock": origin.dvc_lock, "flow run": origin.flow_run}
    facts["make again"] = origin.again
    for name, value in origin.measured.items():
        if isinstance(value, int | float):
            facts[name] = f"{value:.6g}" if isinstance(value, float) else f"{value:,}"
    lines = [*_aligned(facts, "  "), *_aligned(origin.parameters, "  ")]
    lines += (f"  from {path} (keyed hash {digest}…)" for path, digest in origin.inputs)
    print("\n".join([*lines, *(_chain(origin, index) if origin.report else [])]))


def resolve(name: str, index: ReportIndex) -> Origin:
    """The records on a number, by any of its names; ``CorpusError`` if there are none."""
    cells = index.cells()
    names = {**{report: report for report in index.reports}, **index.stages(), **cells}
    names |= {key: report for report in cells.values() if (key := index.key_of(report)) is not None}
    run = _tracked_run(name) if name not in names and _TRACKED.fullmatch(name) else None
    found = names.get(name if run is None else run.data.tags[KEY_TAG])
    if found is not None:
        report, stage = index.reports[found], index.stage_of(found)
        entries = entries_of(stage, index.folder / f"{found}.json", read_lock())
        evaluated = found in cells.values()
        shown = (index.key_of(found) or found.partition("/")[2]) if evaluated else found
        digest = lock_digest(entries) if entries else None
        return Origin(shown, stage, report["code"], digest, report.get("flow_run"), report["measured"], found)
    if run is not None:
        tags, inputs = run.data.tags, run.inputs.dataset_inputs if run.inputs else []
        code = {"commit": tags.get("commit"), "dirty": tags.get("dirty") == "true", "changes": tags.get("changes")}
        return Origin(
            tags[KEY_TAG],
            tags.get("dvc_stage"),
            code,
            tags.get("dvc_lock"),
            tags.get("flow_run"),
            run.data.metrics,
            run_id=run.info.run_id,
            parameters=run.data.params,
            inputs=[(each.dataset.name, each.dataset.digest) for each in inputs],
        )
    raise CorpusError(
        f"nothing is known of {name!r}{nearest(name, names)}; there are {len(cells)} cells and {len(index.reports)} "
        f"reports in {str(index.folder)!r}"
    )


def _tracked_run(name: str) -> "Run | None":
    """The last run of MLflow with an id or a key; ``None`` if palimpsest has no such run."""
    condition = f"tags.`{KEY_TAG}` = '{name}'" if "#" in name else f"attributes.run_id = '{name}'"
    with locked_store(read_sections(DEFAULT_PATH, ["tracking"])["tracking"], made=False) as store:
        return next((run for run in reversed(store.runs(condition)) if KEY_TAG in run.data.tags), None)


def _chain(origin: Origin, index: ReportIndex) -> Iterator[str]:
    """The stages that led to a report, back to the sources, and their machines."""
    machines: dict[str, None] = {}
    for number, step in enumerate(index.chain(origin.report), start=1):
        report = index.reports[step]
        yield from ("", f"{number}. {index.stage_of(step)}")
        commit, found = _commit(report["code"]), report["environment"]
        facts: dict[str, Any] = {"report": str(index.folder / f"{step}.json"), "command": shlex.join(report["command"])}
        facts["commit"] = commit if commit != _commit(origin.code) else None
        yield from _aligned(facts | dict(flat(report["parameters"])), "   ")
        for link in index.links(step):
            yield f"   from {link.path} (keyed hash {link.digest[:12]}…), {link.origin}"
        yield from (f"   into {path} (keyed hash {digest[:12]}…)" for path, digest in report["outputs"].items())
        yield from (f"   warning: {warning}" for warning in report["warnings"])
        packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items() if version)
        machine = f"machine: {found['processor']}, {found['cores']} cores, {found['system']}"
        machines[f"{machine}\nversions: Python {found['python']}, {packages}"] = None
    yield from ("", *machines)


def _commit(code: Mapping[str, Any]) -> str:
    if code["commit"] is None:
        return "not recorded (no git checkout)"
    changes = str(stored_changes(code["changes"])) if code.get("changes") else "not recorded"
    return f"{code['commit']}" + (f" with uncommitted changes: {changes}" if code["dirty"] else "")


def _aligned(facts: Mapping[str, Any], indent: str) -> Iterator[str]:
    """A line for each fact that is known, values below each other."""
    known = {name: value for name, value in facts.items() if value is not None}
    width = max(map(len, known), default=0)
    return (f"{indent}{name:<{width}}  {value}" for name, value in known.items())


COMMAND = Command(WhereFromOptions, run)
