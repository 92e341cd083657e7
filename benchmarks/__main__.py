"""Run all benchmarks, or those named, and store their rows in ``benchmarks/results/latest.json``.

    python -m benchmarks [NAME...] [--small] [--output FILE]

A stored row has the commit, the date and the machine of its run. Rows of other benchmarks stay as they are.
"""

import argparse
import importlib
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.frame import ROOT
from tasks.records.stage_report import code_state, environment, write_json

MODULES = ("masking filling language_model scoring runtimes beam_search graph publishing").split()
"""Each has ``run(small) -> list[dict]``."""
RESULTS = ROOT / "benchmarks" / "results" / "latest.json"


def stamp() -> dict[str, Any]:
    """Commit, date and machine of a run."""
    code = code_state()
    machine = {key: environment()[key] for key in ("processor", "cores", "gpu", "system", "python")}
    commit = f"{str(code['commit'])[:12]}{' with changes' if code['dirty'] else ''}"
    return {"commit": commit, "date": datetime.now(UTC).date().isoformat(), "machine": machine}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="NAME", help=f"default: all of {', '.join(MODULES)}")
    parser.add_argument("--small", action="store_true", help="small inputs; without --output nothing is stored")
    parser.add_argument("--output", type=Path, help="where the rows are stored")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.modules) - set(MODULES)):
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(MODULES)}")
    output = arguments.output or (None if arguments.small else RESULTS)
    missed, own = [], stamp()
    for module in arguments.modules or MODULES:
        print(f"{module} ...", file=sys.stderr, flush=True)
        rows = importlib.import_module(f"benchmarks.{module}").run(arguments.small)
        for row in rows:
            print(json.dumps(row), flush=True)
        missed += [row["name"] for row in rows if not row["holds"]]
        if output is not None:
            earlier = json.loads(output.read_text(encoding="utf-8")) if output.exists() else []
            stored = [row for row in earlier if row["module"] != module]
            write_json(output, [*stored, *({"module": module, **row, **own} for row in rows)])
    for name in missed:
        print(f"missed: {name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
