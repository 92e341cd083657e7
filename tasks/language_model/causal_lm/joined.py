"""``JoinedModels``: causal models of one tokenizer as one model, the weighted sum of their log-probabilities.

Each model has its own keys and values. The published code of corpus inverse distillation gives the unwanted model those
of the other one, from the second piece on.
"""

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import DynamicCache
    from transformers.modeling_outputs import CausalLMOutputWithPast


class JoinedModels(nn.Module):
    """Scores are the sum of w log p, up to a constant of each history. A model with an ``alpha`` above 0 owns a mask:
    pieces less probable than ``alpha`` times its likeliest piece are excluded.

    Use it as any causal model of Hugging Face. Its cache holds the layers of all models, one after the other.
    """

    def __init__(self, weighted: Sequence[tuple[Any, float, float]]) -> None:
        """``weighted``: model, weight and alpha of each."""
        super().__init__()
        self.models: Any = nn.ModuleList(model for model, *_ in weighted)
        self.weights = [weight for _, weight, _ in weighted]
        self.alphas = [alpha for *_, alpha in weighted]
        self.config = copy.copy(weighted[0][0].config)

    @property
    def device(self) -> torch.device:
        """Device of the first model."""
        found: torch.device = self.models[0].device
        return found

    @property
    def dtype(self) -> torch.dtype:
        """Data type of the first model."""
        found: torch.dtype = self.models[0].dtype
        return found

    def get_input_embeddings(self) -> nn.Module:
        """Input embeddings of the first model."""
        found: nn.Module = self.models[0].get_input_embeddings()
        return found

    def set_attn_implementation(self, name: str) -> None:
        """Set the attention implementation of all models."""
        for model in self.models:
            model.set_attn_implementation(name)

    def forward(
        self, input_ids: Tensor, past_key_values: "DynamicCache | None" = None, use_cache: bool = False, **more: object
    ) -> "CausalLMOutputWithPast":
        """Scores (B, T, V) float32 as ``logits``, and the keys and values of all models."""
        from transformers import DynamicCache
        from transformers.modeling_outputs import CausalLMOutputWithPast

        before = list(past_key_values.layers) if past_key_values is not None else []
        share = len(before) // len(self.models)
        after: list[Any] = []
        total: Tensor | None = None
        hidden: Tensor | None = None
        for number, (model, weight, alpha) in enumerate(zip(self.models, self.weights, self.alphas, strict=True)):
            own = DynamicCache() if use_cache else None
            if own is not None and before:
                own.layers = before[number * share : (number + 1) * share]
            output = model(input_ids=input_ids, past_key_values=own, use_cache=use_cache, **more)
            after += own.layers if own is not None else []
            scores = output.logits.float().log_softmax(-1)
            if alpha:
                below = scores < scores.amax(-1, keepdim=True) + math.log(alpha)
                hidden = below if hidden is None else hidden | below
            total = weight * scores if total is None else total.add_(scores, alpha=weight)
        assert total is not None, "there is a model at least"
        if hidden is not None:
            total = total.masked_fill(hidden, -math.inf)
        cache = past_key_values if past_key_values is not None else DynamicCache() if use_cache else None
        if cache is not None:
            cache.layers = after
        return CausalLMOutputWithPast(logits=total, past_key_values=cache)
