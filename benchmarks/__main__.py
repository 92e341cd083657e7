"""Compare speeds with other programs, and store the rows in ``benchmarks/results/latest.json``.

    python -m benchmarks [NAME...] [--small]

Rows of other benchmarks stay as they are. The page of benchmarks (``docs/reference.py``) shows all of them.
"""

import argparse
import importlib
import json
import sys

from benchmarks.stored_numbers import RESULTS, stamp
from tasks.records.stage_report import write_json

MODULES = "masking filling language_model beam_search publishing".split()
"""Each has ``run(small) -> list[dict]``."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="NAME", help=f"default: all of {', '.join(MODULES)}")
    parser.add_argument("--small", action="store_true", help="small inputs; nothing is stored")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.modules) - set(MODULES)):
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(MODULES)}")
    path, own = RESULTS / "latest.json", stamp()
    for module in arguments.modules or MODULES:
        print(f"{module} ...", file=sys.stderr, flush=True)
        rows = importlib.import_module(f"benchmarks.{module}").run(arguments.small)
        print(*map(json.dumps, rows), sep="\n", flush=True)
        if not arguments.small:
            others = [row for row in json.loads(path.read_text(encoding="utf-8")) if row["module"] != module]
            write_json(path, [*others, *({"module": module, **row, **own} for row in rows)])


if __name__ == "__main__":
    main()
