"""Rows of token pieces that a causal LM reads in parts, with a cache of keys and values.

Rows have different lengths. ``read`` appends new pieces to all rows in one batch, padded on the right. The attention
mask has a hole where a row has no piece, and positions are counted per row. So a row's scores are those it would have
alone. Rows can be copied, and the last pieces of a row can be taken back.

A hole narrows a sliding window, which counts columns. So a model has at most half as many positions as the window has
columns, and rows lose their holes before they have more columns. Architectures with a recurrent state instead of keys
and values (RWKV, Mamba), or with a distance penalty by column (MPT), are refused.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache

from tasks.causal_model import NO_NUMBERS
from tasks.errors import ModelError
from tasks.filling.masked_lm.marker_scores import scores_at

if TYPE_CHECKING:
    from tasks.filling.causal_lm.language_model import CausalLanguageModel

_SHORTER, _LONGER = [5, 12, 19, 26, 33, 40], [3, 14, 25, 36, 47, 58, 69, 80, 91, 102, 113]
"""Pieces of the two rows of the test."""
_SAME, _SAME_IN_16_BITS = 5e-3, 0.1
"""Allowed rounding difference of scores, as a share of their spread over the vocabulary (root mean square)."""
_NOTHING = 1e-5
"""Allowed difference in addition, for scores that are all equal."""


def check_rows(language_model: "CausalLanguageModel") -> None:
    """Raise ``ModelError`` if rows with padding and with pieces that are taken back differ from whole sequences."""
    model = language_model.model
    size = model.get_input_embeddings().weight.shape[0]
    shorter, longer = ([piece % size for piece in pieces] for pieces in (_SHORTER, _LONGER))
    # A causal model does not see the pieces after the shorter sequence.
    whole = torch.tensor([[*shorter, *longer[len(shorter) :]], longer], device=model.device)  # (2, T)
    with torch.inference_mode():
        scores = model(input_ids=whole, use_cache=False).logits  # (2, T, V)
    expected = torch.stack([scores[0, len(shorter) - 1], scores[1, -1]]).float()
    if not torch.isfinite(expected).all():
        raise ModelError(f"model {language_model.name!r} {NO_NUMBERS}")
    limit = _SAME if model.dtype == torch.float32 else _SAME_IN_16_BITS
    try:
        rows = CausalRows(language_model, 2)
        rows.read([longer[:9], [*shorter[:4], shorter[0], shorter[0]]], [0, 0])
        # A model with a recurrent state lacks keys in some layers, or in all.
        has_keys = rows.has_keys_of_every_column
        rows = rows.chosen([1, 0])
        rows.take_back([2, 0])
        found = rows.read([shorter[4:], longer[9:]], [1, 1])
        found, expected = (each - each.mean(dim=1, keepdim=True) for each in (found, expected))
        difference, spread = (each.square().mean(dim=1).sqrt() for each in (found - expected, expected))
        alike = has_keys and bool((difference <= limit * spread + _NOTHING).all())
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception:
        # A cache without keys and values may raise any exception.
        alike = False
    if not alike:
        kind = getattr(model.config, "model_type", type(model).__name__)
        raise ModelError(
            f"model {language_model.name!r} (model_type {kind!r}) cannot fill. It scores a text in parts differently "
            "from the whole text. Models with a recurrent state or a special cache do so. Take another one, such as "
            "llama, gpt2, qwen2 or opt"
        )


class CausalRows:
    """``B`` rows with their cache; ``lengths`` has the number of pieces that each row has read."""

    def __init__(self, language_model: "CausalLanguageModel", rows: int) -> None:
        self._language_model, self._device = language_model, language_model.model.device
        self._cache: Any = DynamicCache()
        self._mask = torch.zeros((rows, 0), dtype=torch.long, device=self._device)  # (B, P)
        self.lengths = [0] * rows

    @property
    def has_keys_of_every_column(self) -> bool:
        """Whether each layer's cache has keys and values of every column."""
        layers, columns = self._cache.layers, self._mask.shape[1]
        return bool(layers) and all(layer.is_initialized and layer.keys.shape[2] == columns for layer in layers)

    def read(self, pieces: Sequence[Sequence[int]], wanted: Sequence[int]) -> torch.Tensor:
        """Append pieces to the rows and return the scores after the last ones. At least one row must get a piece.

        ``wanted``: number of last new pieces of each row whose scores are returned. Returns ``(sum, V)`` float32 on the
        model's device, row by row. Raises ``ModelError`` if the scores are not finite.
        """
        language_model, longest = self._language_model, max(map(len, pieces))
        if self._mask.shape[1] + longest > 2 * language_model.positions:
            compact = self.chosen(range(len(self.lengths)))
            self._cache, self._mask = compact._cache, compact._mask
        ids = torch.tensor([[*new, *[language_model.padding] * (longest - len(new))] for new in pieces])  # (B, T)
        counts = torch.tensor([len(new) for new in pieces])  # (B,)
        steps = torch.arange(longest)
        self._mask = torch.cat([self._mask, (steps < counts[:, None]).long().to(self._device)], dim=1)
        options: dict[str, Any] = {}
        if language_model.takes_positions:
            # Nothing attends to the padding after a row's last piece, but its position must exist.
            inside = torch.minimum(steps, (counts[:, None] - 1).clamp(min=0))
            positions = (torch.tensor(self.lengths)[:, None] + inside).clamp(max=language_model.positions - 1)
            options["position_ids"] = positions.to(self._device)
        places = [
            (row, len(new) - count + i)
            for row, (new, count) in enumerate(zip(pieces, wanted, strict=True))
            for i in range(count)
        ]
        rows, columns = torch.tensor(places, dtype=torch.long).reshape(-1, 2).to(self._device).unbind(dim=1)
        started = time.perf_counter()
        with torch.inference_mode():
            scores = scores_at(
                language_model.model,
                rows,
                columns,
                input_ids=ids.to(self._device),
                attention_mask=self._mask,
                past_key_values=self._cache,
                use_cache=True,
                **options,
            ).float()  # (N, V)
            # The sum is finite only if all scores are; reading the sum also waits for the device.
            sound = bool(torch.isfinite(scores.sum()))
        language_model.seconds += time.perf_counter() - started
        language_model.counts["pieces_read"] += int(counts.sum())
        self.lengths = [length + len(new) for length, new in zip(self.lengths, pieces, strict=True)]
        if not sound:
            raise ModelError(f"filler {language_model.name!r} {NO_NUMBERS}")
        return scores

    def take_back(self, counts: Sequence[int]) -> None:
        """Remove the last ``counts`` pieces from each row."""
        from_right = self._mask.flip(1).cumsum(1).flip(1)  # (B, P): 1 at a row's last piece, 2 at the one before
        self._mask = self._mask * (from_right > torch.tensor(counts, device=self._device)[:, None])
        self.lengths = [length - count for length, count in zip(self.lengths, counts, strict=True)]

    def chosen(self, rows: Sequence[int]) -> "CausalRows":
        """Copies of the given rows without holes; a row may repeat. The original rows do not change."""
        copies = CausalRows(self._language_model, 0)
        copies.lengths = [self.lengths[row] for row in rows]
        index = torch.tensor(rows, dtype=torch.long, device=self._device)
        longest = max(copies.lengths, default=0)
        # The columns of each row's pieces in their order, then the columns of its holes.
        order = self._mask.argsort(dim=1, descending=True, stable=True)[index, :longest]  # (N, P')
        lengths = torch.tensor(copies.lengths, device=self._device)
        copies._mask = (torch.arange(longest, device=self._device) < lengths[:, None]).long()
        for number, layer in enumerate(self._cache.layers if longest else ()):
            keys, values = (part[index[:, None], :, order].transpose(1, 2) for part in (layer.keys, layer.values))
            copies._cache.update(keys, values, number)
        return copies
