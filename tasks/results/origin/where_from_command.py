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
  palimpsest where-from word_error_rate/chat/allow_list/minilm-top_k-1
  palimpsest where-from evaluate@chat-oracle-1 --json
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tasks.errors import CorpusError
from tasks.options import Argument, Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.records.run_key import cell_path_of
from tasks.records.stage_report import stored_changes
from tasks.results.origin.lock_entries import entries_of, lock_digest, read_lock
from tasks.results.report_index import REPORTS, ReportIndex
from tasks.results.tracking.run_record import flat
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import (
    KEY_TAG,
    RETIRED_KEY_TAG,
    locked_store,
    shown_uri,
    tracking_uri,
)
from tasks.spelling import nearest

if TYPE_CHECKING:
    from mlflow.entities import Run

SUMMARY = "show where a number comes from, and how to make it again"


class WhereFromOptions(Options):
    """Options of the search: the number."""

    run: Annotated[str, Argument(positional=True)]
    """cell, key, MLflow run id, stage, or name of a report"""
    json_: bool = False
    """print everything as JSON, with the report of each stage that led to the number"""


@dataclass(frozen=True, slots=True)
class Origin:
    """The records on a number, from its report or from MLflow."""

    name: str
    """Cell or report."""
    key: str | None
    stage: str | None
    code: Mapping[str, Any]
    """``commit``, ``dirty``, and ``changes``, the name of the uncommitted changes."""
    dvc_lock: str | None
    """Digest of the recorded part of ``dvc.lock``."""
    flow_run: str | None
    measured: Mapping[str, Any]
    report: str = ""
    run_id: str | None = None
    """The run of MLflow that has the records, if they are not of a report."""
    parameters: Mapping[str, str] | None = None
    inputs: Sequence[tuple[str, str]] = ()
    """Path and keyed hash of each input of a run of MLflow."""

    @property
    def again(self) -> str | None:
        """The command that makes the number again."""
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
        steps = [] if origin.run_id else index.chain(origin.report)
        chain = [index.reports[step] | {"read": [asdict(link) for link in index.links(step)]} for step in steps]
        print(json.dumps(asdict(origin) | {"again": origin.again, "chain": chain}, indent=2, ensure_ascii=False))
        return
    print("\n".join([*_number(origin), *([""] if origin.run_id else _chain(origin, index))]))


def resolve(name: str, index: ReportIndex) -> Origin:
    """The origin of a number, by any of its names; ``CorpusError`` if it has none."""
    tracked = None
    if re.fullmatch(r"[0-9a-f]{32}", name):
        run = tracked_run(run_id=name)
        if run is None:
            settings = _tracking()
            raise CorpusError(
                f"no run {name!r} in the experiment {settings.experiment!r} of {shown_uri(tracking_uri(settings))!r}; "
                "'palimpsest publish' makes the runs, and MLflow's page of the experiment lists their ids"
            )
        tracked = _of_run(run)
    key = str(tracked.key) if tracked is not None else name
    if "#" in key:
        path = cell_path_of(key)
        report = index.cells().get(path)
        now = index.key_of(report) if report is not None else None
        if report is not None and now == key:
            return _of_report(report, index)
        if tracked is None:
            run = tracked_run(key=key)
            if run is None:
                known = f"; the reports hold {now!r} now" if report else nearest(path, index.cells())
                raise CorpusError(f"no run has the key {name!r}{known}")
            tracked = _of_run(run)
        return tracked
    names = {**{report: report for report in index.reports}, **index.stages(), **index.cells()}
    if name not in names:
        raise CorpusError(
            f"nothing is known of {name!r}{nearest(name, names)}; there are {len(index.cells())} cells and "
            f"{len(index.reports)} reports in {str(index.folder)!r}"
        )
    return _of_report(names[name], index)


def tracked_run(*, run_id: str | None = None, key: str = "") -> "Run | None":
    """The run of MLflow with an id or a key; ``None`` if palimpsest has no such run."""
    settings = _tracking()
    if run_id is None and not re.fullmatch(r"[\w/.-]+#[0-9a-f]+", key):
        return None
    with locked_store(settings, made=False) as store:
        runs = store.runs(f"attributes.run_id = '{run_id}'") if run_id else store.runs_of_key(key)
    return next((run for run in runs if {KEY_TAG, RETIRED_KEY_TAG} & run.data.tags.keys()), None)


def _tracking() -> TrackingSettings:
    settings: TrackingSettings = read_sections(DEFAULT_PATH, ["tracking"])["tracking"]
    return settings


def _of_run(run: "Run") -> Origin:
    tags = run.data.tags
    key = tags.get(KEY_TAG) or tags[RETIRED_KEY_TAG]
    return Origin(
        name=cell_path_of(key),
        key=key,
        stage=tags.get("dvc_stage"),
        code={"commit": tags.get("commit"), "dirty": tags.get("dirty") == "true", "changes": tags.get("changes")},
        dvc_lock=tags.get("dvc_lock"),
        flow_run=tags.get("flow_run"),
        measured=run.data.metrics,
        run_id=run.info.run_id,
        parameters=run.data.params,
        inputs=[(one.dataset.name, one.dataset.digest) for one in (run.inputs.dataset_inputs if run.inputs else [])],
    )


def _of_report(name: str, index: ReportIndex) -> Origin:
    report, stage = index.reports[name], index.stage_of(name)
    evaluated = name in index.cells().values()
    entries = entries_of(stage, index.folder / f"{name}.json", read_lock())
    return Origin(
        name=name.partition("/")[2] if evaluated else name,
        key=index.key_of(name) if evaluated else None,
        stage=stage,
        code=report["code"],
        dvc_lock=lock_digest(entries) if entries else None,
        flow_run=report.get("flow_run"),
        measured=report["measured"],
        report=name,
    )


def _number(origin: Origin) -> Iterator[str]:
    """The number itself."""
    yield origin.key or origin.name
    if origin.run_id:
        yield "  a run of an earlier state: the reports are of another one; this is what MLflow holds"
    facts = {"commit": _commit(origin.code)}
    facts |= {"dvc.lock": origin.dvc_lock} if origin.dvc_lock else {}
    facts |= {"flow run": origin.flow_run} if origin.flow_run else {}
    facts["make again"] = str(origin.again)
    for name, value in origin.measured.items():
        if isinstance(value, int | float):
            facts[name] = f"{value:.6g}" if isinstance(value, float) else f"{value:,}"
    yield from _aligned(facts, "  ")
    yield from _aligned(origin.parameters or {}, "  ")
    yield from (f"  from {path} (keyed hash {digest}…)" for path, digest in origin.inputs)


def _chain(origin: Origin, index: ReportIndex) -> Iterator[str]:
    """The stages that led to a report, back to the sources, and their machines."""
    machines: dict[str, None] = {}
    for number, step in enumerate(index.chain(origin.report), start=1):
        report = index.reports[step]
        yield from ("", f"{number}. {index.stage_of(step)}")
        facts = {"report": str(index.folder / f"{step}.json"), "command": shlex.join(report["command"])}
        if _commit(report["code"]) != _commit(origin.code):
            facts["commit"] = _commit(report["code"])
        facts |= {name: value for name, value in flat(report["parameters"]) if value is not None}
        yield from _aligned(facts, "   ")
        for link in index.links(step):
            yield f"   from {link.path} (keyed hash {link.digest[:12]}…), {link.origin}"
        for path, digest in report["outputs"].items():
            yield f"   into {path} (keyed hash {digest[:12]}…)"
        yield from (f"   warning: {warning}" for warning in report["warnings"])
        found = report["environment"]
        packages = ", ".join(f"{name} {version}" for name, version in found["packages"].items() if version)
        machine = f"machine: {found['processor']}, {found['cores']} cores, {found['system']}"
        machines[f"{machine}\nversions: Python {found['python']}, {packages}"] = None
    yield from ("", *machines)


def _commit(code: Mapping[str, Any]) -> str:
    if code["commit"] is None:
        return "not recorded (no git checkout)"
    if not code["dirty"]:
        return str(code["commit"])
    if not code.get("changes"):
        return f"{code['commit']} with uncommitted changes, which are not recorded"
    return f"{code['commit']} with uncommitted changes: {stored_changes(code['changes'])}"


def _aligned(facts: Mapping[str, Any], indent: str) -> Iterator[str]:
    width = max(map(len, facts), default=0)
    return (f"{indent}{name:<{width}}  {value}" for name, value in facts.items())


COMMAND = Command(WhereFromOptions, run)
