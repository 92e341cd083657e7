"""Runs ``tests/faults`` and counts the faults: how often each was tried, and how often all was right after a rerun.

    python -m benchmarks.faults                 half an hour; writes results/faults.json and docs/faults.md
    python -m benchmarks.faults --moments 2     a quick look, written nowhere

A machine without the right to mount a disk skips those on a full disk, and stores that.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.__main__ import stamp
from benchmarks.frame import ROOT
from tasks.records.stage_report import write_json

RESULTS, PAGE = ROOT / "benchmarks/results/faults.json", ROOT / "docs/faults.md"
BEGIN, END = "<!-- counts: written by python -m benchmarks.faults -->\n", "<!-- end of counts -->\n"
MOMENTS = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=MOMENTS, help="moments per process (default: %(default)s)")
    moments = parser.parse_args().moments
    with tempfile.NamedTemporaryFile(prefix="palimpsest faults ") as lines:
        variables = {"PALIMPSEST_FAULT_RESULTS": lines.name, "PALIMPSEST_FAULT_MOMENTS": str(moments)}
        command = [sys.executable, "-m", "pytest", "-m", "slow", "-rs", "-p", "no:xdist", "tests/faults"]
        done = subprocess.run(command, cwd=ROOT, env=os.environ | variables, stdout=subprocess.PIPE, text=True)
        # Files by their names: a folder of this machine says nothing elsewhere.
        written = re.sub(r"'/[^']*/([^'/]+)'", r"'\1'", Path(lines.name).read_text(encoding="utf-8"))
    print(done.stdout)
    trials = [json.loads(line) for line in written.splitlines()]
    skipped = sorted(set(re.findall(r"^SKIPPED \[\d+\] [^:]+:\d+: (.*)$", done.stdout, re.MULTILINE)))
    counts = counted(trials)
    if moments >= MOMENTS:
        result = {**stamp(), "counts": counts, "skipped": skipped, "trials": trials}
        write_json(RESULTS, result)
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(
            f"{before}{BEGIN}{table(counts, result['date'])}{END}{rest.partition(END)[2]}", encoding="utf-8"
        )
    print(json.dumps(counts, indent=1))
    return int(done.returncode != 0 or not all(trial["held"] for trial in trials))


def counted(trials: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """By fault: how often it was tried, how often it met work, and how often all was right after a rerun."""
    of = {fault: [trial for trial in trials if trial["fault"] == fault] for fault in {t["fault"]: 0 for t in trials}}
    keys = ("met_work", "held")
    return {
        fault: {"tried": len(own)} | {k: sum(bool(t.get(k)) for t in own) for k in keys} for fault, own in of.items()
    }


def table(counts: dict[str, dict[str, int]], date: str) -> str:
    """The counts in Markdown."""
    rows = [f"| {fault} | {one['tried']} | {one['met_work']} | {one['held']} |" for fault, one in counts.items()]
    head = ["", "| fault | tried | met work | right after a rerun |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, "", f"Counted on {date}.", "", ""])


if __name__ == "__main__":
    sys.exit(main())
