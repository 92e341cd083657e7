"""What a causal filler's folder says of itself, and how a filler is recognised as causal.

A folder that ``train-filler`` writes holds ``causal_filler.json`` beside the weights: the instruction of the prompts
that the model was tuned on (``null``: none), the precision it runs in, and, where the folder has the adapter alone, the
model that the adapter belongs to. A base that is a folder stands there by its path from the adapter's folder, so both
can be moved together, and are found from everywhere.

The folder of a filler: weights in safetensors, configuration and tokenizer, all that ``from_pretrained`` needs.

A masked language model as an update of one that a pip package holds: what ``train-filler`` makes of such a one.

The folder has no weights of its own but what training changed of its base: each matrix in whole numbers of eight bits
with a scale for each row, everything else in float16. It has an eighth of the size, and guesses as well. Files:

- ``masked_filler.json``: the base;
- ``update.safetensors``: ``NAME`` ``(rows, columns)`` int8 with ``NAME.scale`` ``(rows,)``, or ``NAME`` float16: the
  parameter's change, or the whole parameter where the base has none. What training did not change is left out.
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
from tasks.filling.fillers.settings import misfit
from tasks.filling.settings import KINDS, FillingMethod
from tasks.model_source import check_model_folder, locate_model, unreachable

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
    """Instruction of the prompts that the model was tuned on; ``None`` where it was not tuned."""
    precision: str = "auto"
    """As in ``CausalLanguageModelFiller``."""
    base: str | None = None
    """Model that the adapter of the folder belongs to; ``None`` where the folder holds whole weights. The path of a
    folder is one from the working folder here, and one from the adapter's folder in the file."""
    gguf_file: str | None = None
    """GGUF file of the base."""
    base_is_folder: bool = False
    """Whether the base was a folder when the record was written."""

    @classmethod
    def read(cls, folder: str | Path) -> "CausalFillerRecord":
        """The record of a folder; the defaults where it has none, as a folder from the hub.

        Raises ``ModelError`` where an adapter does not say what it belongs to, or where it
        belongs to a folder that is not there.
        """
        path = Path(folder) / RECORD
        if path.exists():
            return cls(**json.loads(path.read_text(encoding="utf-8")))._found_from(folder)
        if (Path(folder) / ADAPTER).exists():
            base = _json(Path(folder) / ADAPTER).get("base_model_name_or_path")
            if not base:
                raise ModelError(
                    f"adapter folder {str(folder)!r} does not name its base model in {ADAPTER}; "
                    "make the filler with 'palimpsest train-filler'"
                )
            return cls(base=base)._found_from(folder)
        return cls()

    def _found_from(self, folder: str | Path) -> "CausalFillerRecord":
        """With a base that is a folder by its path from the working folder.

        One that the record does not call a folder is looked for in the working folder first: so adapters name theirs
        that were not written here.
        """
        if self.base is None or (not self.base_is_folder and Path(self.base).is_dir()):
            return self
        beside = os.path.normpath(os.path.join(os.path.realpath(folder), self.base))
        found = beside if Path(folder).is_absolute() else os.path.relpath(beside)
        if os.path.isdir(beside):
            return replace(self, base=found)
        if self.base_is_folder:
            raise ModelError(
                f"filler {str(folder)!r} is an adapter, and its base, the folder {found!r}, does not exist; put the "
                "base there, or make the filler again with merge: true"
            )
        return self

    def moved_to(self, folder: str | Path) -> "CausalFillerRecord":
        """As it stands in the file of a folder: with a base that is a folder by its path from there."""
        if self.base is None or not Path(self.base).is_dir():
            return self
        return replace(
            self, base=os.path.relpath(os.path.realpath(self.base), os.path.realpath(folder)), base_is_folder=True
        )

    def write(self, folder: str | Path) -> None:
        """Write the record into a folder as it is."""
        (Path(folder) / RECORD).write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")


def base_of(filler: str) -> str | None:
    """The model that a filler's adapter belongs to; ``None`` where the filler is no adapter's folder.

    Raises ``ModelError`` as ``CausalFillerRecord.read``, and as ``locate_model``.
    """
    folder = Path(locate_model(filler))
    return CausalFillerRecord.read(folder).base if folder.is_dir() else None


def is_causal(name: str) -> bool:
    """Whether a filler (hub name, folder or ``package:NAME/FOLDER``) is a causal language model.

    Goes by what its configuration says of itself, and is ``False`` where there is none to read: whoever loads it next
    says what is wrong.
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
        # Whatever keeps a hub's file from being read is said by the loading that follows.
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
    """Refuse to write over a folder that is no filler; ``ParameterError`` names it."""
    folder = Path(path)
    is_filler = any((folder / name).exists() for name in ("config.json", RECORD))
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir()) and not is_filler):
        raise ParameterError(
            f"--output {str(path)!r} exists and is no filler; name a folder that is new, empty or a filler's"
        )


def save_filler(
    model: "Network", tokenizer: "Tokenizer", path: str | Path, record: CausalFillerRecord | None = None
) -> None:
    """Write the folder, of a causal filler with its ``record``; an earlier one stays until the new one is complete."""
    check_filler_folder(path)
    record = record.moved_to(path) if record else None
    with atomic_folder(path) as fresh:
        if record is not None and record.base is not None:
            # Its tokenizer is the base's.
            save_adapter(model, fresh, record.base)
        else:
            model.save_pretrained(str(fresh), safe_serialization=True)
            tokenizer.save_pretrained(fresh)
        if record is not None:
            record.write(fresh)
        for file in fresh.iterdir():
            file.chmod(PUBLIC_MODE)


def model_folders(filler: str | None) -> list[str]:
    """A filler and the base that its adapter belongs to, as far as these are folders, whose content a report names.

    Raises ``ModelError`` where an adapter does not say what it belongs to.
    """
    if not filler or not os.path.isdir(filler):
        return []
    base = base_of(filler)
    return [filler, base] if base and os.path.isdir(base) else [filler]


def refuse_misfit(method: FillingMethod, filler: str) -> None:
    """``ParameterError`` where a method does not run with such a filler, ``ModelError`` where there is none."""
    kind = "causal_lm" if is_causal(filler) else "masked_lm"
    found = misfit(method, kind)
    if found is None:
        return
    if kind == "masked_lm":
        # What is not there is of no kind.
        source = located(filler)
        from transformers import PretrainedConfig

        try:
            PretrainedConfig.get_config_dict(source)
        except Exception as error:
            raise unreachable(filler, error) from error
    example = {"masked": "bert-base-uncased", "causal": "gpt2"}[found.needs]
    raise ParameterError(
        f"{found.what} needs a {found.needs} language model, and filler {filler!r} is a {KINDS[kind]} one; "
        f"{found.remedy}, or take a filler such as {example!r}"
    )


_UPDATE_RECORD = "masked_filler.json"
_UPDATE = "update.safetensors"
_LARGEST = 127


def base_of_update(source: str) -> str | None:
    """The model that the update in a folder belongs to; ``None`` where the folder has none."""
    path = Path(source) / _UPDATE_RECORD
    if not path.is_file():
        return None
    return str(json.loads(path.read_text(encoding="utf-8"))["base"])


def located(name: str) -> str:
    """Where a masked language model lies, or what its update belongs to.

    Raises ``ModelError`` where it is not there, or not whole.
    """
    source = locate_model(name)
    base = base_of_update(source)
    if base is not None:
        return located(base)
    check_model_folder(source, name)
    return source


def apply_update(model: "nn.Module", fresh: Collection[str], source: str) -> None:
    """Change a base's weights in place to those of the filler; ``fresh``: names of those that the base had not.

    Raises ``ModelError`` where they do not belong together.
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
    """Write what training changed; ``trained`` and ``base`` are models of one architecture, ``fresh`` as above."""
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
