"""Whether this machine has the cores, memory, disk, devices and packages that an experiment asks for; asked without
PyTorch.
"""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from configparser import ConfigParser
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import psutil

from tasks.corpora.settings import CorpusSettings
from tasks.doctor.finding import Finding, bytes_text
from tasks.doctor.model_findings import hub_parameters, transformer_parameters
from tasks.errors import CorpusError
from tasks.parameters.cells_file import tunings
from tasks.parameters.parameter_file import Parameters, first_base
from tasks.records.cells import NO_LANGUAGE_MODEL, PRETRAINED, expected_cells, is_filled
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
    disk_bytes: int
    """Free, where the checkout lies."""
    gpus: tuple[Gpu, ...]
    speed: float = 0.0
    """Multiplications and additions a second, of float32 matrices by NumPy on all cores."""


def this_machine(root: Path) -> Machine:
    """Ask the system; a missing or silent driver means that there is no GPU."""
    memory = psutil.virtual_memory()
    return Machine(
        cores=available_cores(),
        memory_bytes=memory.total,
        disk_bytes=shutil.disk_usage(root).free,
        gpus=_gpus_of_nvidia(),
        speed=_speed(),
    )


_SIDE, _PRODUCTS = 1536, 5


def _speed() -> float:
    """A fixed piece of work, half a second of two usual cores, by which times of other machines can be compared."""
    import numpy as np

    matrix = np.ones((_SIDE, _SIDE), dtype=np.float32)
    seconds = []
    for _ in range(_PRODUCTS):
        started = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - started)
    return 2 * _SIDE**3 / min(seconds)


def _gpus_of_nvidia() -> tuple[Gpu, ...]:
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


_BASE_MEMORY = 1.5e9
_TRAINING_BYTES, _FLOAT_BYTES, _HALF_BYTES = 16, 4, 2
"""A parameter with its gradient and AdamW's two moments; a weight in float32, and in bfloat16."""
_ACTIVATION_BYTES_PER_TOKEN = 60
"""Times layers and width: what the backward pass keeps of a token."""
_BYTES_PER_SENTENCE = 90
_MEMORY_PER_BYTE = 2.2
"""Of text, in memory: 120 bytes a sentence and 5 a word, of which there is one to 6 bytes."""
_LARGEST_WITHOUT_GPU = 1_000_000_000


def machine_findings(parameters: Parameters, machine: Machine, root: Path) -> list[Finding]:
    """Cores, GPUs, their memory, main memory and disk."""
    sizes = {name: _text_bytes(parameters.corpora[name], root) for name in parameters.compare.datasets}
    return [
        _cores(parameters, machine),
        Finding("machine", "speed", "there", f"{machine.speed / 1e9:.0f} billion operations a second"),
        *_gpus(parameters, machine, root),
        _memory(parameters, sizes, machine, root),
        _disk(parameters, sizes, machine, root),
        _dvc_tables(root),
    ]


def _text_bytes(settings: CorpusSettings, root: Path) -> int:
    """Bytes of a corpus: of its files, or of as many sentences as it may have; 0 where its files are not there."""
    try:
        source = settings.model_copy(update={"source": str(root / settings.source)}).open()
    except CorpusError:
        return 0
    size, sentences = sum(Path(file).stat().st_size for file in source.files), settings.cleaning.train_sentences
    return size if sentences is None else min(size, sentences * _BYTES_PER_SENTENCE)


def _of_machine(name: str, detail: str, *, suffices: bool, remedy: str) -> Finding:
    return Finding("machine", name, "there" if suffices else "missing", detail, None if suffices else remedy)


def _cores(parameters: Parameters, machine: Machine) -> Finding:
    resources = parameters.resources
    asked = resources.threads * resources.parallel_stages
    remedy = (
        f"set resources.threads and resources.parallel_stages so that their product is {machine.cores} at most; "
        "more than that makes each stage slower"
    )
    detail = f"{machine.cores} cores, {asked} asked for"
    return _of_machine("cores", detail, suffices=asked <= machine.cores, remedy=remedy)


def _gpus(parameters: Parameters, machine: Machine, root: Path) -> list[Finding]:
    asked = parameters.resources.devices * parameters.resources.nodes
    sizes = _filler_sizes(parameters, root)
    largest = max(sizes, key=lambda name: sizes[name], default=None)
    needs_gpu = asked > 1 or (largest is not None and sizes[largest] >= _LARGEST_WITHOUT_GPU)
    kinds = Counter(f"{gpu.name} ({bytes_text(gpu.memory_bytes)})" for gpu in machine.gpus)
    there = ", ".join(f"{count} x {kind}" for kind, count in kinds.items()) or "none"
    if not needs_gpu:
        return [Finding("machine", "GPUs", "there", f"{there}; none is needed")]
    wanted = max(parameters.resources.devices, 1)
    if len(machine.gpus) < wanted:
        remedy = f"run on a machine with {wanted}, or set resources.devices: {max(len(machine.gpus), 1)}"
        remedy += " (the numbers stay the same, training takes longer)"
        if not machine.gpus and largest is not None and sizes[largest] >= _LARGEST_WITHOUT_GPU:
            remedy += f"; the filler {largest!r} with its {sizes[largest] / 1e9:.1f} billion parameters needs one"
        return [Finding("machine", "GPUs", "missing", f"{wanted} asked for; there: {there}", remedy)]
    needed = max(_training_memory(parameters), *(1.3 * _HALF_BYTES * size for size in sizes.values()), 0.0)
    smallest = min(gpu.memory_bytes for gpu in machine.gpus)
    detail = f"{bytes_text(smallest)} a card, about {bytes_text(needed)} needed"
    remedy = "raise accumulate in language_model, lower batch_sentences in filling, or take smaller fillers"
    memory = _of_machine("GPU memory", detail, suffices=smallest >= needed, remedy=remedy)
    return [Finding("machine", "GPUs", "there", there), memory]


def _training_memory(parameters: Parameters) -> float:
    """Bytes that one device needs for training: the state of the model, and what the backward pass keeps."""
    settings = parameters.language_model
    if settings.kind == "ngram":
        return 0.0
    shape, training = settings.architecture, settings.pretraining
    tokens = training.batch_tokens / training.accumulate / parameters.resources.devices
    activations = tokens * shape.layers * shape.width * _ACTIVATION_BYTES_PER_TOKEN
    return _TRAINING_BYTES * transformer_parameters(settings) + activations


def _filler_sizes(parameters: Parameters, root: Path) -> dict[str, int]:
    sizes = {name: hub_parameters(parameters.fillers[name].model, root) for name in parameters.pretrained_fillers()}
    return {name: size for name, size in sizes.items() if size}


def _memory(parameters: Parameters, sizes: dict[str, int], machine: Machine, root: Path) -> Finding:
    largest = max(_filler_sizes(parameters, root).values(), default=0)
    model: float
    if machine.gpus:
        # Weights pass through main memory on their way to the card.
        model = max(_HALF_BYTES * largest, _FLOAT_BYTES * transformer_parameters(parameters.language_model))
    else:
        model = max(1.2 * _FLOAT_BYTES * largest, _training_memory(parameters))
    text = _MEMORY_PER_BYTE * max(_text_bytes(parameters.generic, root), *sizes.values())
    needed = parameters.resources.parallel_stages * (_BASE_MEMORY + max(model, text))
    detail = f"{bytes_text(machine.memory_bytes)}, about {bytes_text(needed)} needed"
    remedy = "run on a machine with more, lower resources.parallel_stages, or take smaller fillers"
    return _of_machine("memory", detail, suffices=needed <= machine.memory_bytes, remedy=remedy)


def _disk(parameters: Parameters, sizes: dict[str, int], machine: Machine, root: Path) -> Finding:
    """Language models, fillers, and masked and filled text."""
    compare = parameters.compare
    cells = expected_cells(compare)
    model = _FLOAT_BYTES * transformer_parameters(parameters.language_model)
    adapted = 1 + sum(cell.method not in (NO_LANGUAGE_MODEL, PRETRAINED) for cell in cells)
    fillers = _filler_sizes(parameters, root)
    masked = [dataset for dataset in compare.datasets for _ in compare.techniques]
    bases = [first_base(str(cell.filler), parameters.tuned_fillers) for cell in tunings(parameters)]
    tuned = _HALF_BYTES * sum(fillers.get(base, 0) for base in bases)
    filled = [str(cell.dataset) for cell in cells if is_filled(cell)]
    text = sum(sizes[dataset] for dataset in (*masked, *filled))
    needed = adapted * model + tuned + sum(_HALF_BYTES * size for size in fillers.values()) + text
    detail = (
        f"{bytes_text(machine.disk_bytes)} free, about {bytes_text(needed)} needed ({adapted:,} language models, "
        f"{bytes_text(tuned)} of tuned fillers)"
    )
    if needed <= machine.disk_bytes:
        return Finding("machine", "disk", "there", detail)
    remedy = "free some space, set DVC's cache on a larger disk ('dvc cache dir PATH'), or compare less"
    return Finding("machine", "disk", "missing", detail, remedy)


def _dvc_tables(root: Path) -> Finding:
    """Whether another user can swap DVC's tables of hashes and links, which DVC loads as pickles."""
    local = ConfigParser(interpolation=None, strict=False)
    local.read(root / ".dvc" / "config.local", encoding="utf-8")
    named = os.environ.get("DVC_SITE_CACHE_DIR") or local.get("core", "site_cache_dir", fallback="")
    folder = Path(named or "/var/tmp/dvc").absolute()
    above = [place for place in (folder, *folder.parents) if place.is_dir()]
    closed = any(place.stat().st_mode & 0o077 == 0 for place in above)
    remedy = "unset DVC_SITE_CACHE_DIR and run 'make install', or close that folder with 'chmod 700'"
    detail = f"{folder}: {'closed' if closed else 'open'} to other users of the machine"
    return _of_machine("DVC's tables of hashes", detail, suffices=closed, remedy=remedy)


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
