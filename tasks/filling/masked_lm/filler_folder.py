"""The folder of a filler: weights in safetensors, configuration and tokenizer, all that ``from_pretrained`` needs."""

from pathlib import Path
from typing import Any

from tasks.errors import ParameterError
from tasks.files.atomic_file import PUBLIC_MODE, atomic_folder
from tasks.filling.causal_lm.filler_folder import RECORD


def check_filler_folder(path: str | Path) -> None:
    """Refuse to write over a folder that is no filler; ``ParameterError`` names it."""
    folder = Path(path)
    is_filler = any((folder / name).exists() for name in ("config.json", RECORD))
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not is_filler):
        raise ParameterError(
            f"--output {str(path)!r} exists and is no filler; name a folder that is new, empty or a filler's"
        )


def save_filler(model: Any, tokenizer: Any, path: str | Path) -> None:
    """Write the folder; an earlier one stays until the new one is complete."""
    target = Path(path)
    check_filler_folder(target)
    with atomic_folder(target) as fresh:
        model.save_pretrained(fresh, safe_serialization=True)
        tokenizer.save_pretrained(fresh)
        for file in fresh.iterdir():
            file.chmod(PUBLIC_MODE)
