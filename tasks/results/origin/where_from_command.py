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
  palimpsest where-from evaluate@chat-oracle-1
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from tasks.errors import CorpusError
from tasks.options import Argument, Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.records.run_key import cell_path_of
from tasks.records.stage_report import stored_changes
from tasks.results.origin.lock_entries import LockEntries, agrees, lock_digest, read_lock
from tasks.results.report_index import REPORTS, ReportIndex
from tasks.results.tracking.run_record import flat
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import (
    KEY_TAG,
    RETIRED_KEY_TAG,
    check_exists,
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


def run(options: WhereFromOptions) -> None:
    """Resolve the name and print its origin."""
    print("\n".join(_lines(resolve(options.run))))


def resolve(name: str) -> dict[str, Any]:
    """All records on a number, by any of its names; ``CorpusError`` if there are none."""
    index = ReportIndex(REPORTS)
    if re.fullmatch(r"[0-9a-f]{32}", name):
        run = tracked_run(run_id=name)
        if run is None:
            settings = _tracking()
            raise CorpusError(
                f"no run {name!r} in the experiment {settings.experiment!r} of {shown_uri(tracking_uri(settings))!r}; "
                "'palimpsest publish' makes the runs, and MLflow's page of the experiment lists their ids"
            )
        tracked = _describe(run)
        report = index.cells().get(tracked["cell"])
        if report is not None and index.key_of(report) == tracked["key"]:
            return {**_origin(report, index), "run_id": name}
        return tracked
    if "#" in name:
        path = name.partition("#")[0]
        report = index.cells().get(path)
        if report is not None and index.key_of(report) == name:
            return _origin(report, index)
        run = tracked_run(key=name) if re.fullmatch(r"[\w/.-]+#[0-9a-f]+", name) else None
        if run is not None:
            return _describe(run)
        now = f"; the reports hold {index.key_of(report)!r} now" if report else ""
        raise CorpusError(f"no run has the key {name!r}{now or nearest(path, index.cells())}")
    names = {**{report: report for report in index.reports}, **index.stages(), **index.cells()}
    if name not in names:
        raise CorpusError(
            f"nothing is known of {name!r}{nearest(name, names)}; there are {len(index.cells())} cells and "
            f"{len(index.reports)} reports in {str(index.folder)!r}"
        )
    return _origin(names[name], index)


def again(code: Mapping[str, Any], stage: str, name: str) -> str:
    """The command to make a number again; ``name`` is one that 'palimpsest restore' takes."""
    if not code["commit"]:
        return f"dvc repro {shlex.quote(stage)}"
    if not code["dirty"] or code.get("changes"):
        return f"palimpsest restore {shlex.quote(name)}"
    return "not the same: its uncommitted changes are not recorded; 'palimpsest run' makes it from the present state"


def tracked_run(*, run_id: str | None = None, key: str | None = None) -> "Run | None":
    """The run of MLflow with an id or a key; ``None`` if palimpsest has no such run."""
    settings = _tracking()
    check_exists(settings)
    with locked_store(settings) as store:
        runs = store.runs(f"attributes.run_id = '{run_id}'") if run_id else store.runs_of_key(str(key))
    return next((run for run in runs if {KEY_TAG, RETIRED_KEY_TAG} & run.data.tags.keys()), None)


def _tracking() -> TrackingSettings:
    settings: TrackingSettings = read_sections(DEFAULT_PATH, ["tracking"])["tracking"]
    return settings


def _describe(run: "Run") -> dict[str, Any]:
    tags = run.data.tags
    key = tags.get(KEY_TAG) or tags[RETIRED_KEY_TAG]
    stage, dirty = tags.get("dvc_stage"), {"true": True, "false": False}.get(tags.get("dirty", ""))
    code = {"commit": tags.get("commit"), "dirty": dirty, "changes": tags.get("changes")}
    return {
        "name": cell_path_of(key),
        "cell": cell_path_of(key),
        "key": key,
        "run_id": run.info.run_id,
        "note": "a run of an earlier state: the reports are of another one; this is what MLflow holds",
        "stage": stage,
        **code,
        "dvc_lock": tags.get("dvc_lock"),
        "flow_run": tags.get("flow_run"),
        "again": again(code, stage, run.info.run_id) if stage else None,
        "measured": dict(run.data.metrics),
        "parameters": dict(run.data.params),
        "inputs": [
            {"path": entry.dataset.name, "keyed_hash": entry.dataset.digest}
            for entry in (run.inputs.dataset_inputs if run.inputs else [])
        ],
        "chain": [],
    }


def _origin(name: str, index: ReportIndex) -> dict[str, Any]:
    """All records on a report and on all stages before it."""
    report = index.reports[name]
    evaluated = name in index.cells().values()
    stage, lock = index.stage_of(name), LockEntries(read_lock())
    return {
        "name": name.partition("/")[2] if evaluated else name,
        "key": index.key_of(name) if evaluated else None,
        "stage": stage,
        **_code(report),
        "dvc_lock": lock_digest(lock.chain(stage)) if agrees(lock, index.folder / f"{name}.json") else None,
        "flow_run": report.get("flow_run"),
        "again": again(report["code"], stage, stage),
        "measured": {name: value for name, value in report["measured"].items() if not isinstance(value, list | dict)},
        "chain": [_step(step, index) for step in index.chain(name)],
    }


def _code(report: Mapping[str, Any]) -> dict[str, Any]:
    """Commit of a report's code, and its uncommitted changes."""
    code = report["code"]
    return {"commit": code["commit"], "dirty": code["dirty"], "changes": code.get("changes")}


def _step(name: str, index: ReportIndex) -> dict[str, Any]:
    report = index.reports[name]
    return {
        "name": name,
        "stage": index.stage_of(name),
        "report": str(index.folder / f"{name}.json"),
        **_code(report),
        "command": shlex.join(report["command"]),
        "parameters": report["parameters"],
        "seed": report["seed"],
        "inputs": [
            {"path": link.path, "keyed_hash": link.digest, "made_by": link.made_by, "agreement": link.agreement}
            for link in index.links(name)
        ],
        **{field: report[field] for field in ("outputs", "environment", "started", "wall_seconds", "warnings")},
    }


_AGREEMENTS = {
    "same": "made by {}",
    "inside": "in a folder made by {}",
    "above": "with files made by {}",
    "changed": "CHANGED SINCE: {} has made it again; run 'dvc repro'",
    "other_key": "made by {} in another clone, whose hashes have another key",
}


def _lines(origin: Mapping[str, Any]) -> Iterator[str]:
    yield origin["key"] or origin["name"]
    if origin.get("note"):
        yield f"  {origin['note']}"
    numbers = {name: value for name, value in origin["measured"].items() if isinstance(value, int | float)}
    yield from _aligned(
        {
            "commit": _commit(origin),
            **({"dvc.lock": origin["dvc_lock"]} if origin["dvc_lock"] else {}),
            **({"flow run": origin["flow_run"]} if origin["flow_run"] else {}),
            "make again": origin["again"],
            **{name: f"{value:.6g}" if isinstance(value, float) else f"{value:,}" for name, value in numbers.items()},
        },
        "  ",
    )
    if not origin["chain"]:
        yield from _aligned(origin["parameters"], "  ")
        yield from (f"  from {entry['path']} (keyed hash {entry['keyed_hash']}…)" for entry in origin["inputs"])
    stages = {step["name"]: step["stage"] for step in origin["chain"]}
    for number, step in enumerate(origin["chain"], start=1):
        yield ""
        yield f"{number}. {step['stage']}"
        facts = {"report": step["report"], "command": step["command"]}
        if _commit(step) != _commit(origin):
            facts["commit"] = _commit(step)
        facts |= {name: value for name, value in flat(step["parameters"]) if value is not None}
        yield from _aligned(facts, "   ")
        for entry in step["inputs"]:
            origin_text = _AGREEMENTS.get(entry["agreement"], "a source").format(stages.get(entry["made_by"]))
            yield f"   from {entry['path']} (keyed hash {entry['keyed_hash'][:12]}…), {origin_text}"
        for path, digest in step["outputs"].items():
            yield f"   into {path} (keyed hash {digest[:12]}…)"
        yield from (f"   warning: {warning}" for warning in step["warnings"])
    yield ""
    yield from _machines(origin["chain"])


def _commit(code: Mapping[str, Any]) -> str:
    if code["commit"] is None:
        return "not recorded (no git checkout)"
    if not code["dirty"]:
        return str(code["commit"])
    if not code["changes"]:
        return f"{code['commit']} with uncommitted changes, which are not recorded"
    return f"{code['commit']} with uncommitted changes: {stored_changes(code['changes'])}"


def _machines(chain: list[Mapping[str, Any]]) -> Iterator[str]:
    """The machines of the stages, once if it was the same for all."""
    seen = {json.dumps(step["environment"], sort_keys=True): step["environment"] for step in chain}
    for environment in seen.values():
        packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items() if version)
        yield f"machine: {environment['processor']}, {environment['cores']} cores, {environment['system']}"
        yield f"versions: Python {environment['python']}, {packages}"


def _aligned(facts: Mapping[str, Any], indent: str) -> Iterator[str]:
    width = max(map(len, facts), default=0)
    return (f"{indent}{name:<{width}}  {value}" for name, value in facts.items())


COMMAND = Command(WhereFromOptions, run)
