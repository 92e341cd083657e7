"""What MLflow knows of a run whose reports are there no longer: a run of an earlier state."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from tasks.errors import CorpusError
from tasks.records.run_key import cell_path_of
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import (
    KEY_TAG,
    RETIRED_KEY_TAG,
    TrackingStore,
    check_exists,
    locked_store,
    shown_uri,
)


def again(code: Mapping[str, Any], stage: str, name: str) -> str:
    """What to type for a number anew; ``name`` is one that 'palimpsest restore' takes."""
    if not code["commit"]:
        return f"dvc repro {shlex.quote(stage)}"
    if not code["dirty"] or code.get("changes"):
        return f"palimpsest restore {shlex.quote(name)}"
    return "not as it was: its uncommitted changes are not recorded; 'palimpsest run' makes it of what is here now"


def is_run_id(name: str) -> bool:
    """Whether a name looks like the id of an MLflow run: 32 hexadecimal digits."""
    return re.fullmatch(r"[0-9a-f]{32}", name) is not None


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


def _describe(run: Any) -> dict[str, Any]:
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
