"""Compare each text, model and number of an experiment with those of an earlier commit on the same machine.

    python -m tests.goldens small                    # 600 lines through every technique, method and attack
    python -m tests.goldens default                  # the default experiment
    python -m tests.goldens default --folder CLONE   # one that has run already

Goldens are in .palimpsest/goldens, for the machine that made them: last digits differ between processors. Where there
are none they are written, so run this on the commit before the change first.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tasks.files.private_folders import close_private_folders
from tasks.records.stage_report import processor_name
from tasks.results.tracking.run_record import flat
from tests.project_copy import ROOT, copy_project

STORED = ROOT / ".palimpsest" / "goldens"
SHOWN = 40
"""Differences that are printed."""
_OF_A_RUN = re.compile(
    r"(^|_)(seconds|second|commit|memory_bytes|key|date|when|started|runs?|version|ready_made_at|hash|real_time_factor)$"
)
"""Ends of names of values that each run or commit has for itself."""
_KEY = "data/private/keys/clone_key"
_PAGES = ("results/report.html", "results/published.json", "results/cells.ok")
"""Outputs that show the numbers of other outputs."""


def main() -> int:
    """Run the experiment unless it is there, and compare; exit status 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=("small", "default"))
    parser.add_argument("--folder", type=Path, help="a checkout whose experiment has run; another key rounds otherwise")
    asked = parser.parse_args()
    if asked.folder:
        return compared(asked.experiment, fingerprint(asked.folder))
    with tempfile.TemporaryDirectory(prefix="palimpsest-goldens-") as place:
        folder = Path(place) / "checkout"
        copy_project(folder)
        close_private_folders(folder)
        if asked.experiment == "small":
            merge_parameters(folder)
        # Rounding and hashes in reports depend on the key of a clone.
        (folder / _KEY).parent.mkdir(parents=True, exist_ok=True)
        (folder / _KEY).write_bytes(bytes(32))
        (folder / _KEY).chmod(0o600)
        variables = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        if code := subprocess.run(["palimpsest", "run"], cwd=folder, env=variables).returncode:
            return code
        return compared(asked.experiment, fingerprint(folder))


def merge_parameters(folder: Path) -> None:
    """``params.yaml`` of the folder with the values of ``small.yaml``."""

    def merged(before: Any, said: Any) -> Any:
        if not isinstance(before, dict) or not isinstance(said, dict):
            return said
        return before | {name: merged(before.get(name), value) for name, value in said.items()}

    parameters = folder / "params.yaml"
    small = yaml.safe_load((Path(__file__).parent / "small.yaml").read_text(encoding="utf-8"))
    whole = merged(yaml.safe_load(parameters.read_text(encoding="utf-8")), small)
    parameters.write_text(yaml.safe_dump(whole, sort_keys=False), encoding="utf-8")


def fingerprint(folder: Path) -> dict[str, Any]:
    """By path of each output in ``dvc.lock``: the numbers of a report, the SHA-256 of any other file."""
    stages = yaml.safe_load((folder / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    outputs = {out["path"] for stage in stages.values() for out in stage.get("outs", [])}
    found: dict[str, Any] = {}
    for output in sorted(outputs - set(_PAGES)):
        path = folder / output
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in (one for one in files if one.is_file()):
            name = file.relative_to(folder).as_posix()
            if name == "results/summary.json" or name.startswith("results/reports/"):
                document = json.loads(file.read_text(encoding="utf-8"))
                found[name] = without_run(
                    document["measured"] if isinstance(document, dict) and "measured" in document else document
                )
            else:
                found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def without_run(value: Any) -> Any:
    """A document without the values that each run has for itself."""
    if isinstance(value, dict):
        return {name: without_run(each) for name, each in value.items() if not _OF_A_RUN.search(name)}
    return [without_run(each) for each in value] if isinstance(value, list) else value


def compared(experiment: str, found: dict[str, Any]) -> int:
    """Print what differs from the goldens of this machine, or write them where there are none."""
    path = STORED / f"{experiment}.{machine()}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: written, {len(found)} outputs; digest {digest(found)}")
        return 0
    golden = json.loads(path.read_text(encoding="utf-8"))
    lines = list(differences(golden, json.loads(json.dumps(found))))
    for line in lines[:SHOWN]:
        print(line)
    print(f"{len(lines)} differences in {len(found)} outputs; digest {digest(found)}, golden {digest(golden)}")
    return 1 if lines else 0


def differences(golden: Any, found: Any) -> Iterator[str]:
    """A line for each value that differs, by its path."""
    before, after = dict(flat(golden)), dict(flat(found))
    for path in sorted(before.keys() | after.keys()):
        was, now = (shortened(values[path]) if path in values else "missing" for values in (before, after))
        if path not in before or path not in after or before[path] != after[path]:
            yield f"{path}: {was}, now {now}"


def shortened(value: Any) -> str:
    """At most 60 characters of a value."""
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def digest(values: Mapping[str, Any]) -> str:
    """The first twelve digits of a SHA-256 of all."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def machine() -> str:
    """A name of the processor and of the instructions that PyTorch takes."""
    import torch

    name = f"{processor_name()} {torch.backends.cpu.get_cpu_capability()}"
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


if __name__ == "__main__":
    sys.exit(main())
