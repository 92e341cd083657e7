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
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tasks.errors import CorpusError
from tasks.options import Argument, Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.records.run_key import cell_path_of
from tasks.records.stage_report import kept_changes
from tasks.results.origin.lock_entries import LockEntries, agrees, lock_digest, read_lock
from tasks.results.report_index import REPORTS, Link, ReportIndex
from tasks.results.tracking.run_record import flat
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import (
    KEY_TAG,
    RETIRED_KEY_TAG,
    TrackingStore,
    check_exists,
    locked_store,
    shown_uri,
)
from tasks.spelling import nearest

if TYPE_CHECKING:
    from mlflow.entities import Run

SUMMARY = "show where a number comes from, and how to make it again"


class WhereFromOptions(Options):
    """What is looked for, and where."""

    run: Annotated[str, Argument(positional=True)]
    """cell, key, MLflow run id, stage, or name of a report"""


def run(options: WhereFromOptions) -> None:
    """Resolve the name and print its origin."""
    print("\n".join(_lines(resolve(options.run))))


def resolve(name: str) -> dict[str, Any]:
    """Everything that is known of a number, however it is named; ``CorpusError`` where nothing is."""
    index = ReportIndex(REPORTS)
    if re.fullmatch(r"[0-9a-f]{32}", name):
        run = tracked_origin(name, read_sections(DEFAULT_PATH, ["tracking"])["tracking"])
        report = index.cells().get(run["cell"])
        if report is not None and index.key_of(report) == run["key"]:
            return {**_origin(report, index), "run_id": name}
        return run
    if "#" in name:
        path = name.partition("#")[0]
        report = index.cells().get(path)
        if report is not None and index.key_of(report) == name:
            return _origin(report, index)
        tracked = tracked_origin_of_key(name, read_sections(DEFAULT_PATH, ["tracking"])["tracking"])
        if tracked is not None:
            return tracked
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
    """What to type for a number anew; ``name`` is one that 'palimpsest restore' takes."""
    if not code["commit"]:
        return f"dvc repro {shlex.quote(stage)}"
    if not code["dirty"] or code.get("changes"):
        return f"palimpsest restore {shlex.quote(name)}"
    return "not as it was: its uncommitted changes are not recorded; 'palimpsest run' makes it of what is here now"


def tracked_origin(run_id: str, settings: TrackingSettings) -> dict[str, Any]:
    """What the store says of a run id; ``CorpusError`` where there is no such run of palimpsest's."""
    store = _open(settings)
    for run in store.runs(f"attributes.run_id = '{run_id}'"):
        if KEY_TAG in run.data.tags or RETIRED_KEY_TAG in run.data.tags:
            return _describe(run)
    raise CorpusError(
        f"no run {run_id!r} in the experiment {settings.experiment!r} of {shown_uri(store.uri)!r}; "
        "'palimpsest publish' makes the runs, and MLflow's page of the experiment lists their ids"
    )


def tracked_origin_of_key(key: str, settings: TrackingSettings) -> dict[str, Any] | None:
    """What the store says of a key; ``None`` where it has no such run."""
    if not re.fullmatch(r"[\w/.-]+#[0-9a-f]+", key):
        return None
    runs = _open(settings).runs_of_key(key)
    return _describe(runs[0]) if runs else None


def tracked_lock(run_id: str | None, key: str | None, settings: TrackingSettings) -> str | None:
    """What names the part of ``dvc.lock`` that was recorded with a run, by its id or key; ``None`` where none was."""
    if run_id is None and key is None:
        return None
    store = _open(settings)
    runs = store.runs(f"attributes.run_id = '{run_id}'") if run_id else store.runs_of_key(str(key))
    return runs[0].data.tags.get("dvc_lock") if runs else None


def _open(settings: TrackingSettings) -> TrackingStore:
    check_exists(settings)
    with locked_store(settings) as store:
        return store


def _describe(run: "Run") -> dict[str, Any]:
    tags = run.data.tags
    key = tags.get(KEY_TAG) or tags[RETIRED_KEY_TAG]
    stage = tags.get("dvc_stage")
    code = {
        "commit": tags.get("commit"),
        "dirty": {"true": True, "false": False}.get(tags.get("dirty", "")),
        "changes": tags.get("changes"),
    }
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
    """Everything that is known of a report and of all stages before it."""
    report = index.reports[name]
    evaluated = name in index.cells().values()
    stage = index.stage_of(name)
    return {
        "name": name.partition("/")[2] if evaluated else name,
        "key": index.key_of(name) if evaluated else None,
        "stage": stage,
        "commit": report["code"]["commit"],
        "dirty": report["code"]["dirty"],
        "changes": report["code"].get("changes"),
        "dvc_lock": _lock_digest(index.folder / f"{name}.json", stage),
        "flow_run": report.get("flow_run"),
        "again": again(report["code"], stage, stage),
        "measured": {name: value for name, value in report["measured"].items() if not isinstance(value, list | dict)},
        "chain": [_step(step, index) for step in index.chain(name)],
    }


def _lock_digest(report: Path, stage: str) -> str | None:
    """What names the state of ``dvc.lock`` that a report belongs to; ``None`` where the lock is of another one."""
    lock = LockEntries(read_lock())
    return lock_digest(lock.chain(stage)) if agrees(lock, report) else None


def _step(name: str, index: ReportIndex) -> dict[str, Any]:
    report = index.reports[name]
    return {
        "name": name,
        "stage": index.stage_of(name),
        "report": str(index.folder / f"{name}.json"),
        "commit": report["code"]["commit"],
        "dirty": report["code"]["dirty"],
        "changes": report["code"].get("changes"),
        "command": shlex.join(report["command"]),
        "parameters": report["parameters"],
        "seed": report["seed"],
        "inputs": [_input(link) for link in index.links(name)],
        "outputs": report["outputs"],
        "environment": report["environment"],
        "started": report["started"],
        "wall_seconds": report["wall_seconds"],
        "warnings": report["warnings"],
    }


def _input(link: Link) -> dict[str, Any]:
    return {"path": link.path, "keyed_hash": link.digest, "made_by": link.made_by, "agreement": link.agreement}


_AGREEMENTS = {
    "same": "made by {}",
    "inside": "in a folder made by {}",
    "changed": "CHANGED SINCE: {} has made it anew; run 'dvc repro'",
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
    return f"{code['commit']} with uncommitted changes: {kept_changes(code['changes'])}"


def _machines(chain: list[Mapping[str, Any]]) -> Iterator[str]:
    """What the stages ran on: said once where it was the same for all."""
    seen = {json.dumps(step["environment"], sort_keys=True): step["environment"] for step in chain}
    for environment in seen.values():
        packages = ", ".join(f"{name} {version}" for name, version in environment["packages"].items() if version)
        yield f"machine: {environment['processor']}, {environment['cores']} cores, {environment['system']}"
        yield f"versions: Python {environment['python']}, {packages}"


def _aligned(facts: Mapping[str, Any], indent: str) -> Iterator[str]:
    width = max(map(len, facts), default=0)
    return (f"{indent}{name:<{width}}  {value}" for name, value in facts.items())


COMMAND = Command(WhereFromOptions, run)
