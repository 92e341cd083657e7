"""Folders of fillers: the record of a causal filler, adapters with their bases, and updates of packaged models.

A folder has weights in safetensors, configuration and tokenizer, as ``from_pretrained`` needs them. A causal filler
also has ``causal_filler.json``. An adapter names its base there; the path of a base folder is relative to the adapter's
folder, so both can be moved together.

A masked language model of a pip package is written as an update: only the changes of the base's weights, in an eighth
of the size, with equal accuracy. Files:

- ``masked_filler.json``: the base;
- ``update.safetensors``: ``NAME`` ``(rows, columns)`` int8 with ``NAME.scale`` ``(rows,)``, or ``NAME`` float16. It is
  the change of the parameter, or the whole parameter if the base lacks it. Unchanged parameters are left out.
"""

import json
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.causal_model import ADAPTER, gguf_file_in, save_adapter
from tasks.errors import ModelError, ParameterError
from tasks.files.atomic_file import PUBLIC_MODE, atomic_folder
from tasks.model_source import check_model_folder, locate_model

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from tasks.causal_model import Network

RECORD = "causal_filler.json"
_CAUSAL_ENDINGS = ("ForCausalLM", "LMHeadModel")


@dataclass(frozen=True, slots=True)
class CausalFillerRecord:
    """The content of ``causal_filler.json``."""

    instruction: str | None = None
    """Instruction of the prompts that the model was tuned on; ``None`` if it was not tuned."""
    precision: str = "auto"
    """Precision, as in ``CausalLanguageModelFiller``."""
    base: str | None = None
    """Base of the folder's adapter; ``None`` if the folder has whole weights. The path of a folder is relative to the
    working folder here, and to the adapter's folder in the file."""
    gguf_file: str | None = None
    """GGUF file of the base."""
    base_is_folder: bool = False
    """Whether the base was a folder when the record was written."""

    @classmethod
    def read(cls, folder: str | Path) -> "CausalFillerRecord":
        """The record of a folder, or the defaults if it has none, such as a folder from the hub.

        Raises ``ModelError`` if an adapter does not name its base, or if the folder of its base does not exist.
        """
        folder = Path(folder)
        record = cls()
        if (folder / RECORD).exists():
            record = cls(**json.loads((folder / RECORD).read_text(encoding="utf-8")))
        elif (folder / ADAPTER).exists():
            record = cls(base=_json(folder / ADAPTER).get("base_model_name_or_path"))
            if not record.base:
                raise ModelError(
                    f"adapter folder {str(folder)!r} does not name its base model in {ADAPTER}; "
                    "make the filler with 'palimpsest train-filler'"
                )
        # Other programs name the base by its path from the working folder.
        if record.base is None or (not record.base_is_folder and Path(record.base).is_dir()):
            return record
        absolute = os.path.normpath(os.path.join(os.path.realpath(folder), record.base))
        found = absolute if folder.is_absolute() else os.path.relpath(absolute)
        if record.base_is_folder and not os.path.isdir(absolute):
            raise ModelError(
                f"filler {str(folder)!r} is an adapter, and its base, the folder {found!r}, does not exist; put the "
                "base there, or make the filler again with merge: true"
            )
        return replace(record, base=found) if os.path.isdir(absolute) else record


def base_of(filler: str) -> str | None:
    """The base of a filler's adapter; ``None`` if the filler is no adapter's folder.

    Raises ``ModelError`` as ``CausalFillerRecord.read``, and as ``locate_model``.
    """
    folder = Path(locate_model(filler))
    return CausalFillerRecord.read(folder).base if folder.is_dir() else None


def is_causal(name: str) -> bool:
    """Whether a filler (hub name, folder or ``package:NAME/FOLDER``) is a causal language model.

    Its configuration decides. ``False`` if there is none: the loading of the filler then raises the error.
    """
    try:
        source = locate_model(name)
    except ModelError:
        return False
    folder = Path(source)
    if folder.is_dir():
        if (folder / RECORD).exists() or (folder / ADAPTER).exists() or gguf_file_in(folder):
            return True
        return _says_causal(_json(folder / "config.json"))
    from transformers import PretrainedConfig

    try:
        configuration, _ = PretrainedConfig.get_config_dict(source)
    except Exception:
        # If the hub's file cannot be read, the loading that follows raises the error.
        return False
    return _says_causal(configuration)


def _says_causal(configuration: dict[str, Any]) -> bool:
    return any(str(name).endswith(_CAUSAL_ENDINGS) for name in configuration.get("architectures") or ())


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def check_filler_folder(path: str | Path) -> None:
    """Raise ``ParameterError`` if the path is a file, or a folder with files that is no filler."""
    folder = Path(path)
    is_filler = any((folder / name).exists() for name in ("config.json", RECORD))
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not is_filler):
        raise ParameterError(
            f"--output {str(path)!r} exists and is no filler; name a folder that is new, empty or a filler's"
        )


def save_filler(
    model: "Network", tokenizer: "Tokenizer", path: str | Path, record: CausalFillerRecord | None = None
) -> None:
    """Write the folder, for a causal filler with its ``record``. It replaces an old folder when it is complete."""
    check_filler_folder(path)
    if record is not None and record.base is not None and Path(record.base).is_dir():
        base = os.path.relpath(os.path.realpath(record.base), os.path.realpath(path))
        record = replace(record, base=base, base_is_folder=True)
    with atomic_folder(path) as fresh:
        if record is not None and record.base is not None:
            # An adapter has the tokenizer of its base.
            save_adapter(model, fresh, record.base)
        else:
            model.save_pretrained(str(fresh), safe_serialization=True)
            tokenizer.save_pretrained(fresh)
        if record is not None:
            (fresh / RECORD).write_text(json.dumps(asdict(record), indent=2) + "\n", encoding="utf-8")
        for file in fresh.iterdir():
            file.chmod(PUBLIC_MODE)


def model_folders(filler: str | None) -> list[str]:
    """The folders of a filler and of its adapter's base, for the inputs of a report.

    Raises ``ModelError`` if an adapter does not name its base.
    """
    if not filler or not os.path.isdir(filler):
        return []
    base = base_of(filler)
    return [filler, base] if base and os.path.isdir(base) else [filler]


_UPDATE_RECORD = "masked_filler.json"
_UPDATE = "update.safetensors"
_LARGEST = 127


def base_of_update(source: str) -> str | None:
    """The base of the update in a folder; ``None`` if the folder has no update."""
    path = Path(source) / _UPDATE_RECORD
    if not path.is_file():
        return None
    return str(json.loads(path.read_text(encoding="utf-8"))["base"])


def located(name: str) -> str:
    """The location of a masked language model, or of the base of its update.

    Raises ``ModelError`` if it is missing or incomplete.
    """
    source = locate_model(name)
    base = base_of_update(source)
    if base is not None:
        return located(base)
    check_model_folder(source, name)
    return source


def apply_update(model: "nn.Module", fresh: Collection[str], source: str) -> None:
    """Change a base's weights in place to the filler's; ``fresh``: names of the weights that the base lacks.

    Raises ``ModelError`` if update and base do not match.
    """
    import torch
    from safetensors.torch import load_file

    update = load_file(Path(source) / _UPDATE)
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name in [name for name in update if not name.endswith(".scale")]:
            change = update[name].float()
            if name not in weights or weights[name].shape != change.shape:
                raise ModelError(f"filler {source!r} is not an update of its base: {name!r} does not fit")
            if f"{name}.scale" in update:
                change *= update[f"{name}.scale"][:, None]
            if name in fresh:
                weights[name].copy_(change)
            else:
                weights[name].add_(change)


def write_update(
    trained: "nn.Module", base: "nn.Module", fresh: Collection[str], base_name: str, folder: str | Path
) -> None:
    """Write the changes of the training. ``trained`` and ``base`` have one architecture; ``fresh``: as above."""
    import torch
    from safetensors.torch import save_file

    before = dict(base.named_parameters())
    update: dict[str, torch.Tensor] = {}
    for name, parameter in trained.named_parameters():
        weight = parameter.detach()
        change = weight if name in fresh else weight - before[name].detach()
        if name not in fresh and not change.any():
            continue
        if change.ndim == 2:
            scale = (change.abs().amax(dim=1) / _LARGEST).clamp(min=1e-12)
            update[name] = (change / scale[:, None]).round().to(torch.int8).contiguous()
            update[f"{name}.scale"] = scale.float()
        else:
            update[name] = change.half().contiguous()
    save_file(update, Path(folder) / _UPDATE)
    (Path(folder) / _UPDATE_RECORD).write_text(json.dumps({"base": base_name}, indent=2) + "\n", encoding="utf-8")
