"""Check whether this machine has everything that an experiment needs, without starting anything.

The table covers data, models, packages, cores, speed, memory, disk and GPUs. It says how to get
each missing thing, and where to put it.

Hub models are looked for in folders and in the hub's cache on this machine. Nothing is fetched. The
exit status is 0 only if nothing is missing.

Examples:
  palimpsest doctor                        the experiment of params.yaml
  palimpsest doctor --profile paper        the paper's, before params.yaml is written for it
  palimpsest doctor --profile paper --json
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.doctor.finding import Finding

from tasks.options import Command, Options

SUMMARY = "check what is missing for an experiment, and how to get it"

_SIGNS = {"there": "ok", "missing": "MISSING", "made later": "later"}


class DoctorOptions(Options):
    """What is looked at."""

    profile: str | None = None
    """name of a file in profiles/ (default: params.yaml as it is)"""
    json_: bool = False
    """print everything as JSON"""


def run(options: DoctorOptions) -> int:
    """Look, and print one table; 1 where something is missing."""
    from tasks.doctor.data_findings import checks
    from tasks.doctor.machine_findings import machine_findings, package_findings, this_machine
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters
    from tasks.profiles.profile_command import read_profile

    root = Path()
    parameters = read_profile(options.profile, root) if options.profile else read_parameters(root / DEFAULT_PATH)
    findings = [
        *(check.look() for check in checks(parameters, root)),
        *package_findings(parameters),
        *machine_findings(parameters, this_machine(root), root),
    ]
    missing = [finding for finding in findings if finding.state == "missing"]
    if options.json_:
        document = {
            "profile": options.profile or DEFAULT_PATH,
            "ready": not missing,
            "findings": [finding.as_dict() for finding in findings],
        }
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print(options.profile, findings)
    return 1 if missing else 0


def _print(profile: str | None, findings: "list[Finding]") -> None:
    rows: list[tuple[str, ...]] = []
    for finding in findings:
        detail = finding.detail if finding.remedy is None else f"{finding.detail}\n-> {finding.remedy}"
        rows.append((finding.area, finding.name, _SIGNS[finding.state], detail))
    _table(rows)
    missing = sum(finding.state == "missing" for finding in findings)
    print()
    if missing:
        print(f"{missing} of {len(findings)} things are missing: each line above that says MISSING has the remedy")
    elif profile is None:
        print("everything is there: 'palimpsest run' starts it")
    else:
        print(f"everything is there: 'palimpsest profile {profile}' writes params.yaml, 'palimpsest run' starts it")


def _table(rows: list[tuple[str, ...]]) -> None:
    """Columns of one width; an area is named once, and a long detail is wrapped at the width of the terminal."""
    import shutil
    import textwrap

    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    indent = sum(widths) + 6
    width = max(shutil.get_terminal_size((120, 24)).columns - indent, 40)
    area = ""
    for row in rows:
        shown = "" if row[0] == area else row[0]
        if shown and area:
            print()
        area = row[0]
        parts = row[3].split("\n")
        lines = [
            line
            for part in parts
            for line in textwrap.wrap(part, width, subsequent_indent="   ", break_on_hyphens=False)
        ]
        head = "  ".join(text.ljust(size) for text, size in zip((shown, *row[1:3]), widths, strict=True))
        print(f"{head}  {lines[0] if lines else ''}".rstrip())
        for line in lines[1:]:
            print(" " * indent + line)


COMMAND = Command(DoctorOptions, run)
