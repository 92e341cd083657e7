"""Whisper's decoder one piece at a time, for several hypotheses of each window.

transformers' own generation gives every hypothesis a copy of the encoder's keys and values, and moves the copies at
every step: 18 MB each for the smallest model, 490 for the largest. Here all hypotheses of a window read the same.
"""

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention


class DecoderSteps:
    """What the decoder has read so far of B windows with K hypotheses each."""

    @torch.inference_mode()
    def __init__(self, model: Any, encoded: torch.Tensor) -> None:
        """``encoded``: (B, S, D), the encoder's output."""
        self._model = model
        self._decoder = model.model.decoder
        self._read = 0
        self._own: list[tuple[torch.Tensor, torch.Tensor] | None] = [None] * len(self._decoder.layers)
        self._spoken = []
        for layer in self._decoder.layers:
            attention = layer.encoder_attn
            keys, values = attention.k_proj(encoded), attention.v_proj(encoded)  # (B, S, D)
            self._spoken.append((_heads(keys, attention), _heads(values, attention)))  # (B, H, S, D / H)

    @torch.inference_mode()
    def step(self, pieces: torch.Tensor) -> torch.Tensor:
        """Read one more piece of each hypothesis, (B, K); log-probabilities of the next, (B, K, V) float32."""
        windows, width = pieces.shape
        hidden = self._decoder.embed_tokens(pieces) + self._decoder.embed_positions.weight[self._read]  # (B, K, D)
        for number, layer in enumerate(self._decoder.layers):
            normed = layer.self_attn_layer_norm(hidden)
            hidden = hidden + self._attend_to_pieces(number, layer.self_attn, normed)
            attention = layer.encoder_attn
            keys, values = self._spoken[number]
            queries = _heads(attention.q_proj(layer.encoder_attn_layer_norm(hidden)), attention)  # (B, H, K, D / H)
            found = scaled_dot_product_attention(queries, keys, values).transpose(1, 2).reshape(windows, width, -1)
            hidden = hidden + attention.out_proj(found)
            normed = layer.final_layer_norm(hidden)
            hidden = hidden + layer.fc2(layer.activation_fn(layer.fc1(normed)))
        self._read += 1
        return self._model.proj_out(self._decoder.layer_norm(hidden)).float().log_softmax(-1)

    def _attend_to_pieces(self, number: int, attention: Any, normed: torch.Tensor) -> torch.Tensor:
        windows, width, _ = normed.shape
        single = (windows, width, attention.num_heads, 1, attention.head_dim)
        queries, keys, values = (
            projection(normed).reshape(single) for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        earlier = self._own[number]
        if earlier is not None:
            keys, values = torch.cat((earlier[0], keys), 3), torch.cat((earlier[1], values), 3)  # (B, K, H, T, D / H)
        self._own[number] = keys, values
        found = scaled_dot_product_attention(
            queries.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1)
        )  # (B K, H, 1, D / H)
        return attention.out_proj(found.reshape(windows, width, -1))

    def choose(self, hypotheses: torch.Tensor) -> None:
        """Go on from other hypotheses: ``hypotheses`` (B, K') says which of the K before each one continues."""
        rows = torch.arange(len(hypotheses), device=hypotheses.device)[:, None]
        self._own = [own and (own[0][rows, hypotheses], own[1][rows, hypotheses]) for own in self._own]

    def keep_windows(self, windows: torch.Tensor) -> None:
        """Go on with some windows only, by their indices (B',)."""
        self._own = [own and (own[0][windows], own[1][windows]) for own in self._own]
        self._spoken = [(keys[windows], values[windows]) for keys, values in self._spoken]


def _heads(values: torch.Tensor, attention: Any) -> torch.Tensor:
    """(B, S, D) as (B, H, S, D / H)."""
    return values.unflatten(2, (attention.num_heads, attention.head_dim)).transpose(1, 2)
