"""What the folders of models of all kinds have in common: names of files, the kind, and what may be replaced."""

import json
from pathlib import Path
from typing import get_args

from tasks.errors import ModelError
from tasks.language_model.settings import Kind
from tasks.model_source import PACKAGE_PREFIX

SETTINGS, VOCABULARY, WEIGHTS = "settings.json", "vocabulary.txt", "model.safetensors"
_OF_HUGGING_FACE = ("config.json", "*.gguf")
"""A folder with one of these, and without ``settings.json``, is a causal model as it comes."""


def kind_of_model(model: str | Path) -> Kind:
    """The kind of a model folder, a folder of Hugging Face's, a hub name or ``package:NAME/FOLDER``.

    That of the Transformer where a folder does not say, or does not exist, since its reader says what is wrong.
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
    """``ModelError`` where ``folder`` is a file or holds anything but an earlier model: that is never overwritten."""
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
    """The files that a model of another kind says it is made of."""
    try:
        return set(json.loads((folder / SETTINGS).read_text(encoding="utf-8"))["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return set()
