"""Update MLflow from the reports: one run for each cell, and one for each unlearning method.

The reports are authoritative, and MLflow is a view of them. Each run has a key, made of the cell
and a hash of everything that led to it. So publishing again changes nothing, and fills an empty or
lost store again. If training did not log its curves live, they come from the reports. Runs of an
earlier state of a cell remain, with the tag palimpsest.current = false.

Numbers, parameters and keyed hashes are sent. The only texts that are sent are the made-up
sentences of 'palimpsest examples'. Language models are copied only if 'palimpsest release' has
released them. docs/tracking.md lists everything that is sent.

example:
  palimpsest publish
  MLFLOW_TRACKING_URI=http://127.0.0.1:5000 palimpsest publish
"""

import sys
from pathlib import Path

from tasks.options import Command, Options
from tasks.parameters.parameter_file import DEFAULT_PATH, read_sections
from tasks.records.stage_report import write_json
from tasks.results.summary.summary_file import SUMMARY_FILE, read_summary
from tasks.results.tracking.forgetting_records import forgetting_records
from tasks.results.tracking.model_registry import released_models
from tasks.results.tracking.publication import publish
from tasks.results.tracking.run_record import run_records
from tasks.results.tracking.tracking_store import shown_uri, tracking_uri

SUMMARY = "update MLflow from the reports"


def run(_: Options) -> None:
    """Publish every row of the summary, and write how many runs there are and their keys."""
    settings = read_sections(DEFAULT_PATH, ["tracking"])["tracking"]
    rows, folder = read_summary(SUMMARY_FILE), Path(SUMMARY_FILE).parent
    reports = folder / "reports"
    models, problems = released_models(rows, reports)
    records = [*run_records(rows, reports), *forgetting_records(reports)]
    result = publish(records, settings, models)
    write_json(folder / "published.json", {"runs": len(records), "keys": [record.key for record in records]})
    counts = ", ".join(f"{result[name]} {name}" for name in ("created", "completed", "unchanged"))
    superseded = f", {result['superseded']} earlier superseded" if result["superseded"] else ""
    store = shown_uri(tracking_uri(settings))
    print(f"{len(records)} runs in {store}, experiment {settings.experiment}: {counts}{superseded}")
    if result["models"]:
        print(f"{result['models']} language models copied into MLflow")
    for problem in problems:
        print(f"warning: {problem}", file=sys.stderr)


COMMAND = Command(Options, run)
