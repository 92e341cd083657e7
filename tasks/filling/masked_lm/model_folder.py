"""What a model folder must hold; the file that is missing is named before the library says something less plain."""

import json
from pathlib import Path

from tasks.errors import ModelError

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_INDEX = ".index.json"
_TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "spm.model")


def check_model_folder(source: str, name: str) -> None:
    """Raise ``ModelError`` where ``source`` is a folder without configuration, weights or tokenizer.

    ``name`` is what the user called the model. A source that is no folder (a hub name) is not looked at.
    """
    folder = Path(source)
    if not folder.is_dir():
        return
    missing = []
    if not (folder / "config.json").exists():
        missing.append("config.json")
    missing += _missing_weights(folder)
    if not any((folder / file).exists() for file in _TOKENIZERS):
        missing.append("a tokenizer (tokenizer.json)")
    elif not (folder / "tokenizer.json").exists() and (folder / "vocab.json").exists():
        # A vocabulary of byte pairs is of no use without its merges.
        missing += [file for file in ("merges.txt",) if not (folder / file).exists()]
    if missing:
        raise ModelError(f"model folder {name!r} lacks {', '.join(missing)}; copy or fetch the whole model")


def _missing_weights(folder: Path) -> list[str]:
    """The weight files that are not there; those of a model in several files are named in its index."""
    if any((folder / file).exists() for file in _WEIGHTS):
        return []
    for file in _WEIGHTS:
        index = folder / f"{file}{_INDEX}"
        if index.exists():
            try:
                parts = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            except (ValueError, KeyError, TypeError, AttributeError):
                raise ModelError(f"{str(index)!r} is no index of weight files; fetch the whole model again") from None
            return sorted(part for part in parts if not (folder / part).exists())
    return ["weights (model.safetensors)"]
