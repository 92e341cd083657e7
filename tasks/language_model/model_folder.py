"""What the folders of models of all kinds have in common: names of files, and what may be replaced."""

import json
from pathlib import Path

from tasks.errors import ModelError

SETTINGS, VOCABULARY, WEIGHTS = "settings.json", "vocabulary.txt", "model.safetensors"


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
