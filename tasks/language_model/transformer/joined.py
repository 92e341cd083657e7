"""Transformers joined into one: a contrast of several, and one whose last hidden states are steered.

The result is an ordinary Transformer, so it can be saved, evaluated, attacked and used in a beam search. A sum of
log-probabilities is a sum of scores, up to a constant of each history. Scores are products of hidden states and
embeddings. So one Transformer as wide as all together, with their weights on the diagonal, has p = softmax(sum of w log
p). The last norm of each is multiplied by its w.
"""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from tasks.errors import ModelError
from tasks.language_model.transformer.model import TransformerLanguageModel


def joined(weighted: Sequence[tuple[TransformerLanguageModel, float]]) -> TransformerLanguageModel:
    """The model with p = softmax(sum of w log p) over models of one vocabulary, each with its weight w.

    Raises ``ModelError`` where they differ in layers, positions, units of a head or width, or one is steered.
    """
    models = [model for model, _ in weighted]
    sizes = [model.architecture for model in models]
    first = sizes[0]
    same = [(a.layers, a.width // a.heads, a.width // a.parts, a.maximum_tokens, a.positions) for a in sizes]
    if len(set(same)) > 1 or first.positions != "learned" or any(a.steering for a in sizes):
        raise ModelError(
            f"models with layers, units a head, width, positions and their kind {same[0]!r} and {same[-1]!r} cannot be "
            "joined. These must be equal, with learned positions, and none may be steered"
        )
    architecture = first.model_copy(
        update={
            "width": sum(a.width for a in sizes),
            "heads": sum(a.heads for a in sizes),
            "parts": sum(a.parts for a in sizes),
        }
    )
    found = TransformerLanguageModel(architecture, models[0].embedding.num_embeddings)
    found.load_state_dict({name: _joined_weight(name, weighted) for name in found.state_dict()})
    return found.eval()


def steered(model: TransformerLanguageModel, down: Tensor, up: Tensor) -> TransformerLanguageModel:
    """A copy with last hidden states h + h down up; ``down`` (D, R), ``up`` (R, D)."""
    architecture = model.architecture.model_copy(update={"steering": down.shape[1]})
    found = TransformerLanguageModel(architecture, model.embedding.num_embeddings)
    found.load_state_dict(
        {
            **copy.deepcopy(model.state_dict()),
            "final_norm.steering_down": down.detach().clone(),
            "final_norm.steering_up": up.detach().clone(),
        }
    )
    return found.eval()


def _joined_weight(name: str, weighted: Sequence[tuple[TransformerLanguageModel, float]]) -> Tensor:
    """One weight of the joined model."""
    own = [model.state_dict()[name] for model, _ in weighted]
    if name.startswith("final_norm"):
        own = [weight * values for (_, weight), values in zip(weighted, own, strict=True)]
    if "attention_input" in name:
        # First the queries of all models, then keys, then values.
        thirds = zip(*(values.chunk(3) for values in own), strict=True)
        return torch.cat([_together(name, part) for part in thirds])
    return _together(name, own)


def _together(name: str, own: Sequence[Tensor]) -> Tensor:
    if own[0].dim() == 1 or name in ("embedding.weight", "positions.weight"):
        return torch.cat(list(own), dim=-1)
    return torch.block_diag(*own)
