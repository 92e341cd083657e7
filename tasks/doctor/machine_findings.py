"""Checks of this machine: Python, programs, threads, disk and GPUs, without PyTorch."""

import importlib.util
import os
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

from tasks.doctor.finding import Finding, bytes_text
from tasks.parameters.parameter_file import Parameters
from tasks.threads import available_cores

_PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))


def machine_findings(parameters: Parameters, root: Path) -> list[Finding]:
    """One finding for each requirement of a run on the machine."""
    python = ".".join(map(str, sys.version_info[:3]))
    git, dvc = shutil.which("git"), importlib.util.find_spec("dvc")
    found = [
        _finding("Python", python, suffices=sys.version_info[:2] in _PYTHONS, remedy="install Python 3.11 to 3.14"),
        _finding("git", git or "not installed", suffices=bool(git), remedy="install git"),
        _finding("DVC", "installed" if dvc else "not installed", suffices=bool(dvc), remedy="run 'make install'"),
    ]
    if parameters.compare.speech_datasets:
        espeak = importlib.util.find_spec("espeakng_loader")
        remedy = "pip install 'palimpsest[synthesis]', or bring recordings"
        detail = "installed" if espeak else "not installed"
        found.append(_finding("espeak-ng", detail, suffices=bool(espeak), remedy=remedy))
    free = bytes_text(shutil.disk_usage(root).free)
    return [
        *found,
        _threads(parameters),
        Finding("machine", "disk", "there", f"{free} free"),
        _gpus(parameters),
        _dvc_tables(root),
    ]


def _finding(name: str, detail: str, *, suffices: bool, remedy: str) -> Finding:
    return Finding("machine", name, "there" if suffices else "missing", detail, None if suffices else remedy)


def _threads(parameters: Parameters) -> Finding:
    threads, stages, cores = parameters.resources.threads, parameters.resources.stages_at_once, available_cores()
    remedy = (
        f"set resources.threads and resources.parallel_stages so that their product is {cores} at most; more makes "
        "each stage slower"
    )
    detail = f"{threads} for each of {stages} stages at once, {cores} cores"
    return _finding("threads", detail, suffices=threads * stages <= cores, remedy=remedy)


def _gpus(parameters: Parameters) -> Finding:
    names, asked = gpu_names(), parameters.resources.devices
    there = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "none"
    detail = there if asked == 1 else f"{there}; {asked} asked for"
    remedy = f"run on a machine with {asked}, or set resources.devices: {max(len(names), 1)}"
    return _finding("GPUs", detail, suffices=asked == 1 or len(names) >= asked, remedy=remedy)


def gpu_names() -> list[str]:
    """The GPUs that may be used, by their driver's names; empty without a driver."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    names = [line.strip() for line in answer.stdout.splitlines() if line.strip()] if answer.returncode == 0 else []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return names if visible is None else names[: len([number for number in visible.split(",") if number.strip()])]


def _dvc_tables(root: Path) -> Finding:
    """Check whether another user can replace DVC's tables of hashes and links, which DVC loads as pickles."""
    local = ConfigParser(interpolation=None, strict=False)
    local.read(root / ".dvc" / "config.local", encoding="utf-8")
    named = os.environ.get("DVC_SITE_CACHE_DIR") or local.get("core", "site_cache_dir", fallback="")
    folder = Path(named or "/var/tmp/dvc").absolute()
    above = [place for place in (folder, *folder.parents) if place.is_dir()]
    closed = any(place.stat().st_mode & 0o077 == 0 for place in above)
    remedy = "unset DVC_SITE_CACHE_DIR and run 'make install', or close that folder with 'chmod 700'"
    detail = f"{folder}: {'closed' if closed else 'open'} to other users of the machine"
    return _finding("DVC's tables of hashes", detail, suffices=closed, remedy=remedy)
