"""Reports of stages: measurements, with the settings and inputs that led to them.

The report file is authoritative; MLflow and the report page are views of it. It has numbers, parameters, hashes and
versions, and never a word of a corpus. Its hashes of files are HMAC-SHA256 with a key of this clone: an attacker who
knows all of a file but one word could test that word against a plain hash. Without the key, they show only which files
of one clone are equal. ``hash_key`` names the key, since hashes of two clones cannot be compared.

The report also has the code: the commit of the checkout, and its uncommitted changes, stored once for each state.

Changes are a git patch: of code, ``params.yaml`` and ``cells.yaml``, from the start of the stage. They may name private
files. So the patch stays in the clone's private folder, mode 0600, and a report has only its name: keyed digits, which
reveal no change. Files that git does not track are not included.
"""

import hashlib
import hmac
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tasks.corpora.text_lines import is_stream
from tasks.errors import CorpusError
from tasks.files.atomic_file import atomic_writer
from tasks.files.clone_key import clone_key, key_id, private_home
from tasks.project.project_files import CODE_VERSION

REPORT_VERSION = 1
_REPORTED_PACKAGES = ("palimpsest", "torch", "lightning", "transformers", "spacy", "numpy", "dvc")


@dataclass
class Report:
    """Result of a stage."""

    measured: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    seed: int | None = None
    """Seed of random draws, if it is not the cell's."""
    shown: str = ""
    """The numbers as readable text; printed if the report itself does not go to standard output."""

    def measure(self, **values: object) -> "Report":
        """Add measured values; names carry their unit (``wall_seconds``), undefined is ``None``, never 0."""
        self.measured.update(values)
        return self

    def warn(self, message: str) -> None:
        """Add one sentence that a reader of the numbers needs; no corpus text."""
        self.warnings.append(message)


@dataclass
class StageReport(Report):
    """A report under construction; ``recorded_stage`` adds the common fields of all stages."""

    stage: str = ""
    cell: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)

    def take(self, report: Report) -> None:
        """Add a stage's result."""
        self.measured.update(report.measured)
        self.warnings += report.warnings
        self.seed = self.seed if report.seed is None else report.seed


@contextmanager
def recorded_stage(
    stage: str,
    report_path: str | Path | None,
    *,
    cell: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    seed: int | None = None,
    inputs: Sequence[str | Path] = (),
    outputs: Sequence[str | Path] = (),
    options_of: Callable[[Sequence[str]], list[str]] = list,
) -> Iterator[StageReport]:
    """Time a stage, hash its inputs before and its outputs after, and write ``report_path`` when it succeeds.

    Inputs and outputs are files or folders; streams (``-``, a pipe, a device) are left out, since reading them would
    empty them. A ``report_path`` of ``-`` is standard output. Without ``report_path`` nothing is hashed or written, so
    a single command has no such cost. ``options_of``: the options in the report by those of the command line.
    """
    hashing = report_path is not None
    report = StageReport(
        stage=stage,
        cell=dict(cell or {}),
        parameters=dict(parameters or {}),
        seed=seed,
        inputs={str(path): content_hash(path) for path in inputs if hashing and not is_stream(path)},
    )
    # Before the work: later edits of parameters or code belong to the next run.
    code = code_state() if hashing else None
    started = datetime.now(UTC)
    clock, processor = time.perf_counter(), time.process_time()
    yield report
    wall_seconds, processor_seconds = time.perf_counter() - clock, time.process_time() - processor
    if report_path is None:
        return
    report.outputs = {str(path): content_hash(path) for path in outputs if not is_stream(path)}
    document = {
        "version": REPORT_VERSION,
        "stage": report.stage,
        "dvc_stage": os.environ.get("DVC_STAGE"),
        "cell": report.cell,
        "measured": report.measured,
        "warnings": report.warnings,
        "parameters": report.parameters,
        "seed": report.seed,
        "inputs": report.inputs,
        "outputs": report.outputs,
        "hash_key": key_id(),
        "command": ["palimpsest", *sys.argv[1:2], *options_of(sys.argv[2:])],
        "code": code,
        # Set by Prefect if a flow run is a process of its own, and by the run that starts a stage for a flow run.
        "flow_run": os.environ.get("PREFECT__FLOW_RUN_ID"),
        "environment": environment(),
        "started": started.isoformat(timespec="seconds"),
        "wall_seconds": round(wall_seconds, 3),
        "processor_seconds": round(processor_seconds, 3),
        "peak_memory_bytes": peak_memory_bytes(),
    }
    write_json(report_path, document)


def write_json(path: str | Path, document: object) -> None:
    """Write a JSON document with stable formatting, ``-`` to standard output; NaN and infinity raise ``ValueError``."""
    with nullcontext(sys.stdout) if path == "-" else atomic_writer(path) as stream:
        json.dump(document, stream, indent=2, ensure_ascii=False, allow_nan=False)
        stream.write("\n")


def read_report(path: str | Path) -> dict[str, Any]:
    """Read a report; ``CorpusError`` if it is missing or of another version."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CorpusError(f"report {str(path)!r} does not exist; run the stage that writes it") from None
    except ValueError as error:
        raise CorpusError(f"report {str(path)!r} is not JSON ({error}); run the stage that writes it again") from None
    if not isinstance(document, dict) or document.get("version") != REPORT_VERSION:
        raise CorpusError(f"report {str(path)!r} is not of version {REPORT_VERSION}; run its stage again")
    return document


def content_hash(path: str | Path) -> str:
    """The HMAC-SHA256 of a file, with this clone's key, or of the sorted names and hashes of a folder's files.

    Raises ``CorpusError`` if it is missing.
    """
    path = Path(path)
    if not path.exists():
        raise CorpusError(f"input {str(path)!r} does not exist; run the stage that makes it, or correct the path")
    keyed = hmac.new(clone_key("hashes"), digestmod="sha256")
    if not path.is_dir():
        return _file_hash(path, keyed)
    digest = keyed.copy()
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()}\0{_file_hash(file, keyed)}\n".encode())
    return digest.hexdigest()


def _file_hash(path: Path, keyed: hmac.HMAC) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, keyed.copy).hexdigest()


def peak_memory_bytes() -> int:
    """The largest resident memory of this process so far, in bytes.

    On Linux a process inherits the peak of ``getrusage`` from its parent, so its own record comes first.
    """
    try:
        with open("/proc/self/status", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@cache
def environment() -> dict[str, Any]:
    """Versions and hardware that can change a number."""
    from importlib.metadata import PackageNotFoundError, version

    packages: dict[str, str | None] = {}
    for name in _REPORTED_PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = None
    return {
        "python": platform.python_version(),
        "packages": packages,
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "gpu": _gpu_name(),
        "system": platform.system(),
    }


def _gpu_name() -> str | None:
    """The name of PyTorch's GPU, if the stage has loaded PyTorch."""
    torch = sys.modules.get("torch")
    return torch.cuda.get_device_name() if torch is not None and torch.cuda.is_available() else None


def processor_name() -> str:
    """The processor's name from the system."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


_DIFFERENCE = (
    *("diff", "HEAD", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"),
    # With any user settings, 'git apply' reads these. Stages write dvc.lock, and none reads it.
    *("--src-prefix=a/", "--dst-prefix=b/", "--", ":(top)", ":(top,exclude)dvc.lock"),
)


@cache
def code_state() -> dict[str, Any]:
    """``commit``, ``dirty`` (whether tracked files differ) and ``changes``, the name of the stored patch.

    ``None`` each outside a git checkout; ``changes`` also without a difference.
    """
    commit, patch = _git("rev-parse", "HEAD"), _git(*_DIFFERENCE)
    return {
        "commit": None if commit is None else commit.decode().strip(),
        "dirty": None if patch is None else bool(patch),
        "changes": _keep(patch) if patch else None,
    }


def stored_changes(name: str) -> Path:
    """The path where this clone stores the patch of a state."""
    return private_home() / "lineage" / f"{name}.patch"


def _keep(patch: bytes) -> str:
    name = hmac.digest(clone_key("lineage"), patch, "sha256").hex()[:12]
    path = stored_changes(name)
    if not path.exists():
        with atomic_writer(path, private=True, binary=True) as stream:
            stream.write(patch)
    return name


def _git(*arguments: str) -> bytes | None:
    command = ["git", *arguments]
    # Installed code is in no checkout: the project's git has its version and the parameters.
    folder = Path() if Path(CODE_VERSION).is_file() else Path(__file__).parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
