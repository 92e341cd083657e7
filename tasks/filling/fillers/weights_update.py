"""A masked language model as an update of one that a pip package holds: what ``train-filler`` makes of such a one.

The folder has no weights of its own but what training changed of its base: each matrix in whole numbers of eight bits
with a scale for each row, everything else in float16. It has an eighth of the size, and guesses as well. Files:

- ``masked_filler.json``: the base;
- ``update.safetensors``: ``NAME`` ``(rows, columns)`` int8 with ``NAME.scale`` ``(rows,)``, or ``NAME`` float16: the
  parameter's change, or the whole parameter where the base has none. What training did not change is left out.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from tasks.errors import ModelError
from tasks.model_source import check_model_folder, locate_model

RECORD = "masked_filler.json"
_UPDATE = "update.safetensors"
_LARGEST = 127


def base_of_update(source: str) -> str | None:
    """The model that the update in a folder belongs to; ``None`` where the folder has none.

    Raises ``ModelError`` where its record is damaged.
    """
    path = Path(source) / RECORD
    if not path.is_file():
        return None
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["base"])
    except (ValueError, KeyError, TypeError):
        raise ModelError(f"{str(path)!r} is damaged: it does not name the base; fetch the filler again") from None


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


def apply_update(model: Any, fresh: Collection[str], source: str) -> None:
    """Change a base's weights in place to those of the filler; ``fresh``: names of those that the base had not.

    Raises ``ModelError`` where they do not belong together.
    """
    import torch
    from safetensors.torch import load_file

    try:
        update = load_file(Path(source) / _UPDATE)
    except Exception as error:
        # Damaged files fail in as many ways as there are places in them.
        raise ModelError(f"filler {source!r} has no readable {_UPDATE} ({type(error).__name__})") from error
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


def write_update(trained: Any, base: Any, fresh: Collection[str], base_name: str, folder: str | Path) -> None:
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
    (Path(folder) / RECORD).write_text(json.dumps({"base": base_name}, indent=2) + "\n", encoding="utf-8")
