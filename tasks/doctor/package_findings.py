"""Which packages are installed, in the versions that palimpsest was written for."""

import sys
from importlib.metadata import PackageNotFoundError, requires, version

from tasks.doctor.finding import Finding
from tasks.parameters.parameter_file import Parameters

_PYTHON = (3, 11)


def package_findings(parameters: Parameters) -> list[Finding]:
    """Python, and one finding for all packages together or for each that is missing or of another version."""
    from packaging.requirements import Requirement

    python = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] == _PYTHON:
        findings = [Finding("package", "Python", "there", python)]
    else:
        findings = [_missing("Python", python, "install Python 3.11")]
    wrong, count = [], 0
    for line in requires("palimpsest") or []:
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        count += 1
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            wrong.append(_missing(requirement.name, "not installed", "run 'make install'"))
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            detail = f"{installed} is installed, {requirement.specifier} is needed"
            wrong.append(_missing(requirement.name, detail, "run 'make install'"))
    if _needs_bitsandbytes(parameters):
        try:
            version("bitsandbytes")
        except PackageNotFoundError:
            wrong.append(_missing("bitsandbytes", "not installed", "pip install bitsandbytes (needs a GPU)"))
    if not wrong:
        findings.append(Finding("package", "packages", "there", f"all {count} in the versions that were tested"))
    return findings + wrong


def _missing(name: str, detail: str, remedy: str) -> Finding:
    return Finding("package", name, "missing", detail, remedy)


def _needs_bitsandbytes(parameters: Parameters) -> bool:
    fillers = (parameters.fillers[name] for name in parameters.pretrained_fillers())
    return any(getattr(filler, "precision", None) == "4bit" for filler in fillers)
