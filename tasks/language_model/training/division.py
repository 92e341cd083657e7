"""How a Transformer is divided among devices."""

from typing import Any

from tasks.language_model.transformer.model import TransformerLanguageModel


def divide_model(model: TransformerLanguageModel, mesh: Any) -> None:
    """Divide the weights among the ranks of ``mesh`` (FSDP2), in place: each block, and the rest together."""
    from torch.distributed.fsdp import fully_shard

    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    # The embedding is used once more after the model has run, by the projection onto the vocabulary.
    fully_shard(model, mesh=mesh, reshard_after_forward=False)
