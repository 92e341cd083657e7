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
    from transformers import PreTrainedConfig

    from tasks.filling.causal_lm.language_model import CausalLanguageModel

_SHORTER, _LONGER = [5, 12, 19, 26, 33, 40], [3, 14, 25, 36, 47, 58, 69, 80, 91, 102, 113]
"""Pieces of the two rows of the test."""
_SAME = 5e-3
_SAME_IN_16_BITS = 0.1
"""Allowed rounding difference of scores, as a share of their spread over the vocabulary (root mean square)."""
_NOTHING = 1e-5
"""Allowed difference in addition, for scores that are all equal."""


def window_of(config: "PreTrainedConfig") -> int | None:
    """The narrowest attention window of a configuration, in columns; ``None`` if it has none."""
    config = config.get_text_config(decoder=True)
    names = ["window_size", "attention_chunk_size"]
    if getattr(config, "use_sliding_window", True) is not False:
        names.append("sliding_window")
    return min(filter(None, (getattr(config, name, None) for name in names)), default=None)


def check_rows(language_model: "CausalLanguageModel") -> None:
    """Raise ``ModelError`` if rows with padding and with pieces that are taken back differ from whole sequences."""
    size = language_model.model.get_input_embeddings().weight.shape[0]
    shorter, longer = ([piece % size for piece in pieces] for pieces in (_SHORTER, _LONGER))
    # A causal model does not see the pieces after the shorter sequence.
    whole = torch.tensor([[*shorter, *longer[len(shorter) :]], longer], device=language_model.model.device)  # (2, T)
    with torch.inference_mode():
        scores = language_model.model(input_ids=whole, use_cache=False).logits  # (2, T, V)
    expected = torch.stack([scores[0, len(shorter) - 1], scores[1, -1]]).float()
    if not torch.isfinite(expected).all():
        raise ModelError(f"model {language_model.name!r} {NO_NUMBERS}")
    try:
        rows = CausalRows(language_model, 2, ForwardClock())
        rows.read([longer[:9], [*shorter[:4], shorter[0], shorter[0]]], [0, 0])
        has_keys = rows.has_keys_of_every_column
        rows = rows.chosen([1, 0])
        rows.take_back([2, 0])
        found = rows.read([shorter[4:], longer[9:]], [1, 1])
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception:
        # A cache without keys and values may raise any exception.
        has_keys = False
    if not has_keys or not _alike(found, expected, language_model.model.dtype):
        kind = getattr(language_model.model.config, "model_type", type(language_model.model).__name__)
        raise ModelError(
            f"model {language_model.name!r} (model_type {kind!r}) cannot fill. It scores a text in parts differently "
            "from the whole text. Models with a recurrent state or a special cache do so. Take another one, such as "
            "llama, gpt2, qwen2 or opt"
        )


def _alike(found: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether scores ``(2, V)`` are equal except for rounding and a constant per row."""
    found, expected = (scores - scores.mean(dim=1, keepdim=True) for scores in (found, expected))
    limit = _SAME if dtype == torch.float32 else _SAME_IN_16_BITS
    difference, spread = ((scores.square().mean(dim=1).sqrt()) for scores in (found - expected, expected))
    return bool((difference <= limit * spread + _NOTHING).all())


class CausalRows:
    """``B`` rows with their cache; ``lengths`` has the number of pieces that each row has read."""

    def __init__(self, language_model: "CausalLanguageModel", rows: int, clock: "ForwardClock") -> None:
        self._language_model = language_model
        self._model = language_model.model
        self._device = self._model.device
        self._clock = clock
        self.enough_pieces = language_model.enough_pieces
        """Number of pieces in a pass that use the device fully."""
        self._cache: Any = DynamicCache()
        self._mask = torch.zeros((rows, 0), dtype=torch.long, device=self._device)  # (B, P)
        self.lengths = [0] * rows

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def has_keys_of_every_column(self) -> bool:
        """Whether the cache has keys and values of every column. A model with a recurrent state lacks them in some
        layers, or in all."""
        layers, columns = self._cache.layers, self._mask.shape[1]
        return bool(layers) and all(layer.is_initialized and layer.keys.shape[2] == columns for layer in layers)

    def read(self, pieces: Sequence[Sequence[int]], wanted: Sequence[int]) -> torch.Tensor:
        """Append pieces to the rows and return the scores after the last ones. At least one row must get a piece.

        ``wanted``: number of last new pieces of each row whose scores are returned. Returns ``(sum, V)`` float32 on the
        model's device, row by row. Raises ``ModelError`` if the scores are not finite.
        """
        longest = max(map(len, pieces))
        if self._mask.shape[1] + longest > 2 * self._language_model.positions:
            compact = self.chosen(range(len(self)))
            self._cache, self._mask = compact._cache, compact._mask
        padding = self._language_model.padding
        ids = torch.tensor([[*new, *[padding] * (longest - len(new))] for new in pieces], dtype=torch.long)  # (B, T)
        counts = torch.tensor([len(new) for new in pieces])  # (B,)
        steps = torch.arange(longest)
        new_mask = (steps < counts[:, None]).long().to(self._device)  # (B, T)
        options: dict[str, Any] = {}
        if self._language_model.takes_positions:
            # Nothing attends to the padding after a row's last piece, but its position must exist.
            inside = torch.minimum(steps, (counts[:, None] - 1).clamp(min=0))
            positions = (torch.tensor(self.lengths)[:, None] + inside).clamp(max=self._language_model.positions - 1)
            options["position_ids"] = positions.to(self._device)
        self._mask = torch.cat([self._mask, new_mask], dim=1)
        places = [
            (row, len(new) - count + i)
            for row, (new, count) in enumerate(zip(pieces, wanted, strict=True))
            for i in range(count)
        ]
        rows, columns = torch.tensor(places, dtype=torch.long).reshape(-1, 2).to(self._device).unbind(dim=1)
        started = time.perf_counter()
        with torch.inference_mode():
            scores = scores_at(
                self._model,
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
        self._clock.seconds += time.perf_counter() - started
        self._clock.pieces += int(counts.sum())
        self.lengths = [length + len(new) for length, new in zip(self.lengths, pieces, strict=True)]
        if not sound:
            raise ModelError(f"filler {self._language_model.name!r} {NO_NUMBERS}")
        return scores

    def take_back(self, counts: Sequence[int]) -> None:
        """Remove the last ``counts`` pieces from each row."""
        if not any(counts):
            return
        from_right = self._mask.flip(1).cumsum(1).flip(1)  # (B, P): 1 at a row's last piece, 2 at the one before
        self._mask = self._mask * (from_right > torch.tensor(counts, device=self._device)[:, None])
        self.lengths = [length - count for length, count in zip(self.lengths, counts, strict=True)]

    def chosen(self, rows: Sequence[int]) -> "CausalRows":
        """Copies of the given rows without holes; a row may repeat. The original rows do not change."""
        copies = CausalRows(self._language_model, 0, self._clock)
        copies.lengths = [self.lengths[row] for row in rows]
        index = torch.tensor(rows, dtype=torch.long, device=self._device)
        longest = max(copies.lengths, default=0)
        # The columns of each row's pieces in their order, then the columns of its holes.
        order = self._mask.argsort(dim=1, descending=True, stable=True)[index, :longest]  # (N, P')
        lengths = torch.tensor(copies.lengths, device=self._device)
        copies._mask = (torch.arange(longest, device=self._device) < lengths[:, None]).long()
        for number, layer in enumerate(self._cache.layers if longest else ()):
            heads, columns = layer.keys.shape[1:3]
            each_head = index[:, None] * heads + torch.arange(heads, device=self._device)  # (N, heads)
            places = each_head[:, :, None] * columns + order[:, None, :]  # (N, heads, P')
            keys, values = (
                part.reshape(-1, part.shape[-1]).index_select(0, places.flatten()).view(*places.shape, part.shape[-1])
                for part in (layer.keys, layer.values)
            )
            copies._cache.update(keys, values, number)
        return copies


def joined(parts: Sequence[CausalRows]) -> CausalRows:
    """The rows of all parts, in their order. The parts must not be used afterwards."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    rows = CausalRows(first._language_model, 0, first._clock)
    rows.lengths = [length for part in parts for length in part.lengths]
    longest = max(part._mask.shape[1] for part in parts)

    def widened(tensor: torch.Tensor, dimension: int) -> torch.Tensor:
        shape = list(tensor.shape)
        shape[dimension] = longest - shape[dimension]
        return torch.cat([tensor, tensor.new_zeros(shape)], dim=dimension) if shape[dimension] else tensor

    rows._mask = torch.cat([widened(part._mask, 1) for part in parts])
    for number in range(len(first._cache.layers)):
        layers = [part._cache.layers[number] for part in parts]
        keys = torch.cat([widened(layer.keys, 2) for layer in layers])
        values = torch.cat([widened(layer.values, 2) for layer in layers])
        rows._cache.update(keys, values, number)
    return rows


def length_groups(lengths: Sequence[int], enough: int) -> list[list[int]]:
    """Indices of rows to read in one batch, the shorter ones first. A group ends if it has ``enough`` pieces and the
    next row would pad the others."""
    groups: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        if groups:
            longest = lengths[groups[-1][-1]]
            if len(groups[-1]) * longest < enough or lengths[row] == longest:
                groups[-1].append(row)
                continue
        groups.append([row])
    return groups


class ForwardClock:
    """Time and pieces of the model's forward passes."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """Seconds in the model."""
        self.pieces = 0
        """Pieces read, without padding."""
