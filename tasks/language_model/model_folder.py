"""Common parts of the model folders of all kinds: file names, kind, hashes, and the check before one is replaced."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from tasks.errors import ModelError
from tasks.language_model.settings import Kind
from tasks.model_source import PACKAGE_PREFIX

SETTINGS, VOCABULARY, WEIGHTS = "settings.json", "vocabulary.txt", "model.safetensors"
_OF_HUGGING_FACE = ("config.json", "*.gguf")
"""A folder with one of these files and without ``settings.json`` is a causal model of Hugging Face."""


def kind_of_model(model: str | Path) -> Kind:
    """The kind of a model folder, a Hugging Face folder, a hub name or ``package:NAME/FOLDER``.

    Returns ``transformer`` where a folder does not exist or does not name its kind; the reader then raises the error.
    """
    name, folder = str(model), Path(model)
    if not folder.is_dir():
        is_path = name.startswith((".", "/", "~")) or name.count("/") > 1
        return "transformer" if is_path and not name.startswith(PACKAGE_PREFIX) else "causal_lm"
    if not (folder / SETTINGS).is_file() and any(any(folder.glob(pattern)) for pattern in _OF_HUGGING_FACE):
        return "causal_lm"
    try:
        kind = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        return "transformer"
    return kind if kind in get_args(Kind) else "transformer"


def check_replaceable(folder: str | Path) -> None:
    """Raise ``ModelError`` where ``folder`` is a file or holds files that are no part of a model."""
    folder = Path(folder)
    if folder.is_dir():
        others = sorted({file.name for file in folder.iterdir()} - {WEIGHTS, VOCABULARY, SETTINGS} - _own_files(folder))
        if others:
            raise ModelError(
                f"output folder {str(folder)!r} holds {others[0]!r}, which is no part of a model; give a new folder"
            )
    elif folder.exists():
        raise ModelError(f"output {str(folder)!r} is a file; give the path of a new folder")


def _own_files(folder: Path) -> set[str]:
    """Names of the files that ``settings.json`` lists for a model of another kind."""
    try:
        return set(json.loads((folder / SETTINGS).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def read_settings(
    folder: Path, kind: str, version: int, keys: Iterable[str], thing: str = "model", maker: str = "pretrain' or 'adapt"
) -> dict[str, Any]:
    """The content of ``settings.json`` of a model of this kind, which must have these ``keys``.

    Raises ``ModelError`` where the file is missing, or of another kind or format. ``thing`` names the model in
    messages.
    """
    path = folder / SETTINGS
    if not folder.is_dir():
        raise ModelError(f"{thing} folder {str(folder)!r} does not exist; 'palimpsest {maker}' makes one")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"{thing} folder {str(folder)!r} holds no {SETTINGS!r}; give a folder that 'palimpsest {maker}' made"
        ) from None
    except ValueError:
        raise ModelError(f"{str(path)!r} is not JSON; make the {thing} again") from None
    found = document.get("kind") if isinstance(document, dict) else None
    if found != kind:
        raise ModelError(f"{thing} folder {str(folder)!r} is of kind {found!r}; give one of kind {kind!r}")
    missing = sorted({"format", *keys} - document.keys())
    if missing or document["format"] != version:
        state = f"lacks {', '.join(missing)}" if missing else f"is of format {document['format']!r}"
        raise ModelError(f"{str(path)!r} {state}; this version reads format {version}: make the {thing} again")
    return document


def checked_content(path: Path, expected: str, thing: str = "model") -> bytes:
    """The content of a file, checked as by ``check_file``."""
    check_file(path, expected, thing)
    return path.read_bytes()


def check_file(path: Path, expected: str, thing: str = "model") -> None:
    """Raise ``ModelError`` where a file is missing or its hash is not the saved one."""
    if not path.is_file():
        raise ModelError(f"{thing} folder {str(path.parent)!r} holds no {path.name!r}; make it or fetch it again")
    found = hash_of_file(path)
    if found != expected:
        raise ModelError(
            f"{thing} {str(path)!r} is damaged or belongs to another {thing}: its hash is {found[:12]}, the {thing} "
            f"was saved with {expected[:12]}; make the {thing} again or fetch it again"
        )


def hash_of_file(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
