"""What this machine has: processor cores, memory, disk and GPUs, asked without PyTorch."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from tasks.threads import available_cores


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as its driver names it."""

    name: str
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Machine:
    """What an experiment can use."""

    cores: int
    memory_bytes: int
    available_memory_bytes: int
    disk_bytes: int
    """Free, where the checkout lies."""
    gpus: tuple[Gpu, ...]


def this_machine(root: Path) -> Machine:
    """Ask the system; a missing or silent driver means that there is no GPU."""
    memory = psutil.virtual_memory()
    return Machine(
        cores=available_cores(),
        memory_bytes=memory.total,
        available_memory_bytes=memory.available,
        disk_bytes=shutil.disk_usage(root).free,
        gpus=_gpus(),
    )


def _gpus() -> tuple[Gpu, ...]:
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if answer.returncode:
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = []
    for line in answer.stdout.splitlines():
        name, _, mebibytes = line.rpartition(",")
        if name and mebibytes.strip().isdigit():
            gpus.append(Gpu(name.strip(), int(mebibytes) * 2**20))
    if visible is not None:
        gpus = gpus[: len([number for number in visible.split(",") if number.strip()])]
    return tuple(gpus)
