"""The fault suite, counted: what was killed or broken, how often, and how often all was right after a rerun.

    python -m benchmarks.faults                 half an hour; writes results/faults.json and docs/faults.md
    python -m benchmarks.faults --moments 2     a quick look, written nowhere unless --output says where

It runs ``tests/faults``; a machine without the right to mount a disk skips those on a full disk, and counts them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.records.stage_report import environment, write_json

CHECKOUT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "faults.json"
PAGE = CHECKOUT / "docs" / "faults.md"
BEGIN, END = "<!-- counts: written by python -m benchmarks.faults -->\n", "<!-- end of counts -->\n"
"""The lines of the page between which the table stands."""
MOMENTS = 10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--moments", type=int, default=MOMENTS, help="moments per process (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="where the counts are written")
    arguments = parser.parse_args()
    output = arguments.output or (RESULTS if arguments.moments >= MOMENTS else None)
    with tempfile.TemporaryDirectory(prefix="palimpsest faults ") as folder:
        lines = Path(folder) / "trials.jsonl"
        lines.touch()
        variables = {"PALIMPSEST_FAULT_RESULTS": str(lines), "PALIMPSEST_FAULT_MOMENTS": str(arguments.moments)}
        command = [sys.executable, "-m", "pytest", "-m", "slow", "-rs", "-p", "no:xdist", "tests/faults"]
        done = subprocess.run(
            command, cwd=CHECKOUT, env=os.environ | variables, stdout=subprocess.PIPE, text=True, check=False
        )
        print(done.stdout, file=sys.stderr)
        # Files by their names: a folder of this machine says nothing elsewhere.
        told = re.sub(r"'/[^']*/([^'/]+)'", r"'\1'", lines.read_text(encoding="utf-8"))
        trials = [json.loads(line) for line in told.splitlines()]
    skipped = re.findall(r"^SKIPPED \[\d+\] [^:]+:\d+: (.*)$", done.stdout, re.MULTILINE)
    counts = counted(trials)
    if output is not None:
        machine = {key: environment()[key] for key in ("processor", "cores", "system", "python")}
        date = datetime.now(UTC).date().isoformat()
        document = {"date": date, "machine": machine, "counts": counts, "skipped": sorted(set(skipped))}
        write_json(output, {**document, "trials": trials})
        if output == RESULTS:
            PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), counts, date), encoding="utf-8")
    for fault, numbers in counts.items():
        print(f"{fault}: {numbers['tried']} tried, {numbers['met_work']} met work, {numbers['held']} right in the end")
    held = sum(numbers["held"] for numbers in counts.values())
    print(f"{held} of {len(trials)} faults ended in a finished, correct state without duplicates")
    for reason in sorted(set(skipped)):
        print(f"skipped: {reason}")
    return int(done.returncode != 0 or held < len(trials))


def counted(trials: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """By fault: how often it was tried, how often it met work, and how often all was right after a rerun."""
    tried = Counter(trial["fault"] for trial in trials)
    met = Counter(trial["fault"] for trial in trials if trial.get("met_work"))
    held = Counter(trial["fault"] for trial in trials if trial["held"])
    return {fault: {"tried": tried[fault], "met_work": met[fault], "held": held[fault]} for fault in tried}


def with_table(page: str, counts: dict[str, dict[str, int]], date: str) -> str:
    """The page with these counts in the place of those that it had."""
    rows = [f"| {fault} | {one['tried']} | {one['met_work']} | {one['held']} |" for fault, one in counts.items()]
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    lines = [
        "| fault | tried | met work | right after a rerun |",
        "|---|---|---|---|",
        *rows,
        "",
        f"Counted on {date}.",
    ]
    return "\n".join([before + BEGIN, *lines, "", END + after])


if __name__ == "__main__":
    sys.exit(main())
