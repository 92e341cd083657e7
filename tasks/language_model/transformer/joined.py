"""Transformers in one: a contrast of several, and one whose hidden states are steered.

Both are Transformers like any other, so that they are saved, evaluated, attacked, and asked by a beam search like any
other. A sum of log-probabilities is that of scores, but for a constant of each history, and scores are products of
hidden states and embeddings: so a Transformer as wide as all together, whose weights are those of each on the diagonal,
says softmax(sum of w log p) where the last norm of each is multiplied by its w.
"""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor

from tasks.errors import ModelError
from tasks.language_model.transformer.model import TransformerLanguageModel


def joined(weighted: Sequence[tuple[TransformerLanguageModel, float]]) -> TransformerLanguageModel:
    """The model that says softmax(sum of w log p) over models of one vocabulary, each with its weight w.

    Raises ``ModelError`` where they differ in layers, positions, or units of a head.
    """
    models = [model for model, _ in weighted]
    first = models[0].architecture
    same = [(a.layers, a.width // a.heads, a.maximum_tokens, a.positions) for a in (m.architecture for m in models)]
    if len(set(same)) > 1 or first.positions != "learned" or any(m.architecture.steering for m in models):
        raise ModelError(
            f"models with layers, units a head, positions and their kind {same[0]!r} and {same[-1]!r} cannot be "
            "joined; they have to be alike, with learned positions, and none may be steered"
        )
    parts = [model.architecture.parts for model in models]
    widths = {model.architecture.width // count for model, count in zip(models, parts, strict=True)}
    if len(widths) > 1:
        raise ModelError(f"models of {sorted(widths)} units cannot be joined; they have to be of one width")
    architecture = first.model_copy(
        update={
            "width": sum(model.architecture.width for model in models),
            "heads": sum(model.architecture.heads for model in models),
            "parts": sum(parts),
        }
    )
    found = TransformerLanguageModel(architecture, models[0].embedding.num_embeddings)
    found.load_state_dict({name: _beside(name, weighted) for name in found.state_dict()})
    return found.eval()


def steered(model: TransformerLanguageModel, down: Tensor, up: Tensor) -> TransformerLanguageModel:
    """A copy whose last hidden states h are h + h down up; ``down`` (D, R), ``up`` (R, D)."""
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


def _beside(name: str, weighted: Sequence[tuple[TransformerLanguageModel, float]]) -> Tensor:
    """A weight of the joined model."""
    own = [model.state_dict()[name] for model, _ in weighted]
    if name.startswith("final_norm"):
        own = [weight * values for (_, weight), values in zip(weighted, own, strict=True)]
    if "attention_input" in name:
        # Queries of all, then keys, then values.
        thirds = zip(*(values.chunk(3) for values in own), strict=True)
        return torch.cat([_together(name, part) for part in thirds])
    return _together(name, own)


def _together(name: str, own: Sequence[Tensor]) -> Tensor:
    if own[0].dim() == 1 or name in ("embedding.weight", "positions.weight"):
        return torch.cat(list(own), dim=-1)
    return torch.block_diag(*own)
