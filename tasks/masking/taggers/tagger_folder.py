"""The folder of a tagger from ``palimpsest train-tagger``: its files, and ``tagger.json``.

``tagger.json`` has the kind of the model, its entity types, the version of its word features, and the SHA-256 of the
other files. So a damaged model is found before it is read.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.errors import ModelError, ParameterError
from tasks.files.atomic_file import PUBLIC_MODE, atomic_folder, atomic_writer
from tasks.model_source import PACKAGE_PREFIX, locate_model

DESCRIPTION_FILE = "tagger.json"
AUDIT_FILE = "audit.json"
"""Number of labelled lines that the tagger learned from, and the results of attacks, ``null`` before an attack."""


def check_tagger_folder(path: str | Path, what: str = "tagger", file: str = DESCRIPTION_FILE) -> None:
    """Raise ``ParameterError`` if a path exists and is not the folder of a tagger, which holds ``file``."""
    folder = Path(path)
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not (folder / file).exists()):
        raise ParameterError(
            f"--output {str(path)!r} exists and is no {what}; name a new or empty folder, or the folder of a {what}"
        )


def write_tagger_folder(path: str | Path, files: Mapping[str, bytes], description: Mapping[str, Any]) -> None:
    """Write the folder; an earlier one stays until the new one is complete. ``description`` needs ``kind``,
    ``features`` and ``entity_types``."""
    check_tagger_folder(path)
    with atomic_folder(path) as fresh:
        for name, content in files.items():
            (fresh / name).write_bytes(content)
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        (fresh / DESCRIPTION_FILE).write_text(
            json.dumps({**description, "sha256": hashes}, indent=1) + "\n", encoding="utf-8"
        )
        for file in fresh.iterdir():
            file.chmod(PUBLIC_MODE)


def write_audit_record(folder: str | Path, lines: int, attacks: Mapping[str, Any] | None = None) -> None:
    """Record that a tagger learned from labelled text, and the results of ``palimpsest audit-tagger``."""
    with atomic_writer(Path(folder) / AUDIT_FILE) as stream:
        stream.write(json.dumps({"learned_from_labelled_lines": lines, "attacks": attacks}, indent=1) + "\n")


def tagger_settings(model: str) -> dict[str, str]:
    """Kind and model of a trained tagger; a model without ``tagger.json`` is a spaCy pipeline."""
    try:
        kind = json.loads((_folder(model) / DESCRIPTION_FILE).read_text(encoding="utf-8"))["kind"]
    except FileNotFoundError:
        kind = "spacy"
    except (ValueError, KeyError, TypeError):
        raise ModelError(
            f"tagger {model!r}: {DESCRIPTION_FILE!r} has no kind of tagger; train the model again"
        ) from None
    return {"kind": kind, "model": model}


def _check_there(what: str, folder: Path, name: str) -> None:
    if not (folder / name).is_file():
        raise ModelError(f"{what}: the file {name!r} is missing; train the model again")


def read_tagger_folder(model: str, kind: str, features: int, files: Sequence[str]) -> tuple[Path, dict[str, Any]]:
    """The checked folder of a model, and its description; ``ModelError`` has the problem and the solution."""
    folder = _folder(model)
    what = f"{kind} model {str(folder)!r}"
    if not folder.is_dir():
        raise ModelError(f"{what} is no folder; train one with 'palimpsest train-tagger', or give the folder of one")
    _check_there(what, folder, DESCRIPTION_FILE)
    try:
        description = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
        hashes, version, found = description["sha256"], description["features"], description["kind"]
    except (ValueError, KeyError, TypeError):
        raise ModelError(f"{what}: {DESCRIPTION_FILE!r} is no description of a tagger; train the model again") from None
    if found != kind:
        raise ModelError(f"{what} is a tagger of kind {found!r}; set kind: {found}")
    if version != features:
        raise ModelError(f"{what} was trained on features of version {version!r}, not {features!r}; train it again")
    for name in files:
        _check_there(what, folder, name)
        if hashlib.sha256((folder / name).read_bytes()).hexdigest() != hashes.get(name):
            raise ModelError(f"{what}: the file {name!r} is not the one that was written; train the model again")
    return folder, description


def base_of(model: str) -> str:
    """The model that a checked word classifier updates."""
    return str(json.loads((_folder(model) / DESCRIPTION_FILE).read_text(encoding="utf-8"))["base"])


def _folder(model: str) -> Path:
    """A folder, or one inside a package; no hub has such models."""
    return Path(locate_model(model) if model.startswith(PACKAGE_PREFIX) else model)
