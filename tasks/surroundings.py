"""State of code and machine on which a number depends besides its inputs, for hashes and clusters."""

import hashlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tasks.project.project_files import COPY

_LIBRARIES = (
    "palimpsest numpy torch transformers tokenizers peft faker regex spacy presidio-analyzer python-crfsuite".split()
)
_PACKAGES = Path(__file__).parents[1]


def surroundings(threads: int, *, uses_model: bool) -> dict[str, Any]:
    """Code, libraries and machine."""
    return {
        # The order of a sum changes its last digits.
        "threads": threads,
        "on_gpu": has_gpu() if uses_model else None,
        "code": code_hash(),
        "versions": {name: _version(name) for name in _LIBRARIES},
    }


def code_hash() -> str:
    """The hash of the present files of the code, with word lists and models, committed or not."""
    digest = hashlib.sha256()
    for file in sorted(file for name in ("tasks", "dashboards") for file in (_PACKAGES / name).rglob("*.*")):
        if file.is_file() and file.suffix != ".pyc" and COPY not in file.parents:
            digest.update(f"{file.relative_to(_PACKAGES)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except (PackageNotFoundError, ValueError):
        return None


def has_gpu() -> bool:
    """Whether PyTorch sees a GPU."""
    import torch

    return torch.cuda.is_available()
