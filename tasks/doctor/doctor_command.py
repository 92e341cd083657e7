"""Check whether this machine has everything that an experiment needs, without starting anything.

The list covers data, models, programs, threads, disk and GPUs. It says how to get each missing
thing, and where to put it.

Hub models are looked for in folders and in the hub's cache on this machine. Nothing is fetched. The
exit status is 0 only if nothing is missing.

Examples:
  palimpsest doctor                        the experiment of params.yaml
  palimpsest doctor --profile paper        the paper's, before params.yaml is written for it
  palimpsest doctor --profile paper --json
"""

import json
from dataclasses import asdict
from pathlib import Path

from tasks.options import Command, Options

SUMMARY = "check what is missing for an experiment, and how to get it"

_SIGNS = {"there": "ok", "missing": "MISSING", "made later": "later"}


class DoctorOptions(Options):
    """Options of the check."""

    profile: str | None = None
    """name of a file in profiles/ (default: params.yaml as it is)"""
    json_: bool = False
    """print everything as JSON"""


def run(options: DoctorOptions) -> int:
    """Run the checks and print a line for each; return 1 if something is missing."""
    from tasks.doctor.data_findings import checks
    from tasks.doctor.machine_findings import machine_findings
    from tasks.parameters.parameter_file import DEFAULT_PATH, read_parameters
    from tasks.profiles.profile_command import read_profile

    root, profile = Path(), options.profile
    parameters = read_profile(profile, root) if profile else read_parameters(root / DEFAULT_PATH)
    findings = [*(check.look() for check in checks(parameters, root)), *machine_findings(parameters, root)]
    missing = sum(finding.state == "missing" for finding in findings)
    if options.json_:
        found = list(map(asdict, findings))
        document = {"profile": profile or DEFAULT_PATH, "ready": not missing, "findings": found}
        print(json.dumps(document, indent=2, ensure_ascii=False))
        return 1 if missing else 0
    for finding in findings:
        print(f"{_SIGNS[finding.state]:<8} {finding.area:<8} {finding.name}: {finding.detail}")
        if finding.remedy:
            print(f"{'':<17} -> {finding.remedy}")
    if missing:
        print(f"\n{missing} of {len(findings)} things are missing: the line below each says how to get it")
    else:
        write = f"'palimpsest profile {profile}' writes params.yaml, " if profile else ""
        print(f"\neverything is there: {write}'palimpsest run' starts it")
    return 1 if missing else 0


COMMAND = Command(DoctorOptions, run)
