"""Run all benchmarks, or those named on the command line, and write ``benchmarks/results/latest.json``.

Each benchmark module has ``run() -> list[dict]`` with rows ``{"name", "ours", "peer", "unit", "ratio", "target",
"holds"}``. ``ours`` and ``peer`` are medians of the same run; ``ratio`` is what is claimed, ``target`` what it
should reach, ``holds`` whether it does. The outputs of both sides are compared before anything is timed.
"""

import argparse
import importlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks import process_environment
from tasks.records.stage_report import environment, write_json

MODULES = (
    "masking_speed",
    "tagging_speed",
    "filling_speed",
    "causal_filling_speed",
    "contrastive_decoding_speed",
    "language_model_speed",
    "language_model_evaluation_speed",
    "transducer_loss_speed",
    "rescoring_speed",
    "audit_speed",
    "beam_search_speed",
    "graph_speed",
    "publishing_speed",
    "empirical_epsilon",
)
RESULTS = Path(__file__).parent / "results" / "latest.json"


def _kept(path: Path, modules: list[str]) -> list[dict[str, Any]]:
    """The rows of an earlier run that this one did not measure again."""
    if not modules or not path.exists():
        return []
    return [row for row in json.loads(path.read_text(encoding="utf-8")) if row["module"] not in modules]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("modules", nargs="*", help=f"which benchmarks (default: all of {', '.join(MODULES)})")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the rows are written")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.modules) - set(MODULES))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(MODULES)}")
    process_environment.set_variables()
    machine = {key: environment()[key] for key in ("processor", "cores", "system", "python")}
    rows = []
    for module in arguments.modules or MODULES:
        print(f"{module} ...", file=sys.stderr, flush=True)
        for row in importlib.import_module(f"benchmarks.{module}").run():
            rows.append({"module": module, **row, "machine": machine, "date": datetime.now(UTC).date().isoformat()})
            print(json.dumps(row), flush=True)
    write_json(arguments.output, [*_kept(arguments.output, arguments.modules), *rows])
    missed = [row["name"] for row in rows if not row["holds"]]
    print(f"{len(rows) - len(missed)} of {len(rows)} targets hold; written to {arguments.output}", file=sys.stderr)
    for name in missed:
        print(f"  missed: {name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
