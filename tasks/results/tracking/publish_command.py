"""Update MLflow from the reports: one run for each cell.

The reports are authoritative, and MLflow is a view of them. Each run has a key, made of the cell
and a hash of everything that led to it. So publishing again changes nothing, and fills an empty or
lost store again. A complete run is never changed: if a number was measured again, a new run
replaces it. Runs of an earlier state of a cell remain, with the tag palimpsest.current = false.

Numbers, parameters and keyed hashes are sent, and no text. Language models are copied only if
'palimpsest release' has released them. docs/tracking.md lists everything that is sent.

example:
  palimpsest publish
  MLFLOW_TRACKING_URI=http://127.0.0.1:5000 palimpsest publish
"""

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.options import Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.records.stage_report import write_json
from tasks.results.summary.summary_file import SUMMARY_FILE, read_summary
from tasks.results.tracking.model_registry import ReleasedModel, register_models, released_models
from tasks.results.tracking.run_record import RunRecord, run_records
from tasks.results.tracking.settings import TrackingSettings
from tasks.results.tracking.tracking_store import (
    CELL_TAG,
    CURRENT_TAG,
    KEY_TAG,
    TrackingStore,
    locked_store,
    shown_uri,
    tracking_uri,
)

if TYPE_CHECKING:
    from mlflow.entities import Run

SUMMARY = "update MLflow from the reports"
RECORD_TAG = "palimpsest.record"
"""Tag with the fingerprint of the record that a run fully contains; a run without it is incomplete."""


def run(_: Options) -> None:
    """Publish every row of the summary, and write how many runs there are and their keys."""
    settings = read_sections(DEFAULT_PATH, ["tracking"])["tracking"]
    rows, folder = read_summary(SUMMARY_FILE), Path(SUMMARY_FILE).parent
    models, problems = released_models(rows, folder / "reports")
    records = run_records(rows, folder / "reports")
    result = publish(records, settings, models)
    write_json(folder / "published.json", {"runs": len(records), "keys": [record.key for record in records]})
    counts = ", ".join(f"{count} {name}" for name, count in result.items() if name != "models")
    print(f"{len(records)} runs in {shown_uri(tracking_uri(settings))}, experiment {settings.experiment}: {counts}")
    if result["models"]:
        print(f"{result['models']} language models copied into MLflow")
    for problem in problems:
        print(f"warning: {problem}", file=sys.stderr)


def publish(
    records: Sequence[RunRecord], settings: TrackingSettings, models: Sequence[ReleasedModel] = ()
) -> Counter[str]:
    """Update the store to the state of the records, holding its lock; ``models`` are registered.

    Returns how many runs were ``created``, ``unchanged`` and newly ``superseded``, and how many ``models`` were copied.
    Raises ``ResourceError`` if the store cannot be used.
    """
    result = Counter(created=0, unchanged=0)
    with locked_store(settings) as store:
        by_cell: dict[str | None, list[Run]] = defaultdict(list)
        for run in store.runs():
            by_cell[run.data.tags.get(CELL_TAG)].append(run)
        run_ids = {record.key: _publish(record, by_cell[record.cell.path], store, result) for record in records}
        result["models"] = register_models(models, run_ids, store.client, settings)
    return result


def _publish(record: RunRecord, earlier: "Sequence[Run]", store: TrackingStore, result: Counter[str]) -> str:
    """The id of the record's run, which is made if it is missing; earlier runs of the cell are no longer current."""
    from mlflow.entities import RunTag

    tags, same = record.tags | {RECORD_TAG: record.fingerprint}, None
    for run in earlier:
        its = run.data.tags
        if its.get(KEY_TAG) == record.key and RECORD_TAG not in its:
            # Of a training, or of a publication that was interrupted.
            store.client.delete_run(run.info.run_id)
        elif (its.get(KEY_TAG), its.get(RECORD_TAG)) == (record.key, record.fingerprint):
            same = run
        elif its.get(CURRENT_TAG) != "false":
            store.client.set_tag(run.info.run_id, CURRENT_TAG, "false")
            result["superseded"] += 1
    if same is None:
        result["created"] += 1
        return _create(record, store)
    result["unchanged"] += 1
    if changed := [RunTag(*tag) for tag in tags.items() if tag not in same.data.tags.items()]:
        store.client.log_batch(same.info.run_id, tags=changed)
    return str(same.info.run_id)


def _create(record: RunRecord, store: TrackingStore) -> str:
    """Make the run of a record; the tag that marks it as complete comes last."""
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

    run = store.client.create_run(store.experiment_id, record.started, record.tags, record.cell.path)
    run_id = str(run.info.run_id)
    metrics = [Metric(name, value, record.measured_at, 0) for name, value in record.metrics.items()]
    metrics += [Metric(name, value, record.curve_time(step), step) for (name, step), value in record.curve.items()]
    datasets = [
        DatasetInput(
            Dataset(name=name, digest=digest, source_type="dvc", source=json.dumps({"path": name})),
            [InputTag("mlflow.data.context", context)],
        )
        for name, digest, context in record.inputs
    ]
    store.client.log_inputs(run_id, datasets=datasets)
    store.log(run_id, metrics, [Param(*item) for item in record.parameters.items()])
    store.client.set_terminated(run_id, end_time=record.ended)
    store.client.set_tag(run_id, RECORD_TAG, record.fingerprint)
    return run_id


COMMAND = Command(Options, run)
