"""Rows of pieces that a causal LM reads on, with the keys and values of what it has read.

Rows have different lengths. New pieces of all rows are appended side by side, padded on the right; where a row has
nothing, the attention mask has a hole, and positions are counted by row. To most architectures a hole is nothing; for
those that count columns (``columns``), each row is moved together before it is read on. So a row's scores are those it
would have alone, rows can be copied, and the last pieces of a row can be taken back.
"""

import time
from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache

from tasks.causal_model import NO_NUMBERS
from tasks.errors import ModelError
from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.masked_lm.marker_scores import chosen_scores


class CausalRows:
    """``B`` rows; ``lengths`` ``(B,)`` pieces read by each."""

    def __init__(self, language_model: CausalLanguageModel, rows: int, clock: "ForwardClock") -> None:
        self._language_model = language_model
        self._model = language_model.model
        self._device = self._model.device
        self._clock = clock
        self._cache: Any = DynamicCache()
        self._mask = torch.zeros((rows, 0), dtype=torch.long, device=self._device)  # (B, P)
        self.lengths = [0] * rows

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def enough_pieces(self) -> int:
        """So many pieces at a time keep the device busy."""
        return self._language_model.enough_pieces

    @property
    def are_kept(self) -> bool:
        """Whether there are keys and values of every column; a model with a recurrent state has none for some layers,
        or for any."""
        layers, columns = self._cache.layers, self._mask.shape[1]
        return bool(layers) and all(layer.is_initialized and layer.keys.shape[2] == columns for layer in layers)

    def read(self, pieces: Sequence[Sequence[int]], wanted: Sequence[int]) -> torch.Tensor:
        """Append pieces to the rows, at least one to one of them, and return the scores behind the last ones.

        ``wanted``: for each row behind how many of its last new pieces the scores are wanted. Returns ``(sum, V)``
        float32 on the model's device, row by row. Raises ``ModelError`` where they are not numbers.
        """
        longest = max(map(len, pieces))
        if self._counts_columns(longest):
            self._close_holes()
            if len(self) > 1 and self._mask.shape[1] + longest > self._language_model.positions:
                return self._read_apart(pieces, wanted)
        padding = self._language_model.padding
        ids = torch.tensor([[*new, *[padding] * (longest - len(new))] for new in pieces], dtype=torch.long)  # (B, T)
        counts = torch.tensor([len(new) for new in pieces])  # (B,)
        steps = torch.arange(longest)
        new_mask = (steps < counts[:, None]).long().to(self._device)  # (B, T)
        options: dict[str, Any] = {}
        if self._language_model.takes_positions:
            # Behind a row's last piece stands padding that nothing looks at; its position must exist all the same.
            inside = torch.minimum(steps, (counts[:, None] - 1).clamp(min=0))
            positions = (torch.tensor(self.lengths)[:, None] + inside).clamp(max=self._language_model.positions - 1)
            options["position_ids"] = positions.to(self._device)
        self._mask = torch.cat([self._mask, new_mask], dim=1)
        rows = torch.tensor([row for row, count in enumerate(wanted) for _ in range(count)], dtype=torch.long)
        columns = torch.tensor(
            [len(new) - count + i for new, count in zip(pieces, wanted, strict=True) for i in range(count)],
            dtype=torch.long,
        )
        started = time.perf_counter()
        with torch.inference_mode():
            scores = chosen_scores(
                self._model,
                rows.to(self._device),
                columns.to(self._device),
                input_ids=ids.to(self._device),
                attention_mask=self._mask,
                past_key_values=self._cache,
                use_cache=True,
                **options,
            ).float()  # (N, V)
            # One number that is none makes the sum none; reading it also waits for the device.
            sound = bool(torch.isfinite(scores.sum()))
        self._clock.seconds += time.perf_counter() - started
        self._clock.pieces += int(counts.sum())
        self._clock.cells += ids.numel()
        self.lengths = [length + len(new) for length, new in zip(self.lengths, pieces, strict=True)]
        if not sound:
            raise ModelError(f"filler {self._language_model.name!r} {NO_NUMBERS}")
        return scores

    def _counts_columns(self, longest: int) -> bool:
        """Whether the holes matter to the model once so many pieces more are read."""
        closed_from = self._language_model.closed_from
        return closed_from is not None and self._mask.shape[1] + longest >= closed_from

    def _close_holes(self) -> None:
        """Move the pieces of each row to the right, in their order, with what is left of its holes before them."""
        if bool((self._mask[:, 1:] >= self._mask[:, :-1]).all()) and max(self.lengths) == self._mask.shape[1]:
            return
        longest = max(self.lengths)
        # The columns of each row's holes, then those of its pieces.
        order = self._mask.argsort(dim=1, stable=True)[:, self._mask.shape[1] - longest :]  # (B, P')
        self._mask = self._mask.gather(1, order)
        self._cache = self._gathered_cache(torch.arange(len(self), device=self._device), order)

    def _read_apart(self, pieces: Sequence[Sequence[int]], wanted: Sequence[int]) -> torch.Tensor:
        """``read`` for rows that are too long side by side: a model that counts columns has as many as positions."""
        by_length = sorted(range(len(self)), key=lambda row: self.lengths[row] + len(pieces[row]))
        halves = by_length[: len(self) // 2], by_length[len(self) // 2 :]
        parts = [self.chosen(half) for half in halves]
        scores: dict[int, torch.Tensor] = {}
        for part, half in zip(parts, halves, strict=True):
            if any(pieces[row] for row in half):
                read = part.read([pieces[row] for row in half], [wanted[row] for row in half])
                scores |= zip(half, read.split([wanted[row] for row in half]), strict=True)
        whole = joined(parts).chosen([by_length.index(row) for row in range(len(self))])
        self._cache, self._mask, self.lengths = whole._cache, whole._mask, whole.lengths
        return torch.cat([scores[row] for row in sorted(scores)])

    def take_back(self, counts: Sequence[int]) -> None:
        """Let each row forget its last ``counts`` pieces."""
        if not any(counts):
            return
        from_right = self._mask.flip(1).cumsum(1).flip(1)  # (B, P): 1 at a row's last piece, 2 at the one before
        self._mask = self._mask * (from_right > torch.tensor(counts, device=self._device)[:, None])
        self.lengths = [length - count for length, count in zip(self.lengths, counts, strict=True)]

    def chosen(self, rows: Sequence[int]) -> "CausalRows":
        """Copies of the given rows, which may repeat, without holes; these rows stay as they are."""
        copies = CausalRows(self._language_model, 0, self._clock)
        copies.lengths = [self.lengths[row] for row in rows]
        index = torch.tensor(rows, dtype=torch.long, device=self._device)
        longest = max(copies.lengths, default=0)
        # The columns of each row's pieces in their order, then those of its holes.
        order = self._mask.argsort(dim=1, descending=True, stable=True)[index, :longest]  # (N, P')
        lengths = torch.tensor(copies.lengths, device=self._device)
        copies._mask = (torch.arange(longest, device=self._device) < lengths[:, None]).long()
        if longest:
            copies._cache = self._gathered_cache(index, order)
        return copies

    def _gathered_cache(self, rows: torch.Tensor, order: torch.Tensor) -> Any:
        """Keys and values of rows ``(N,)`` at columns ``(N, P')``."""
        cache = DynamicCache()
        for number, layer in enumerate(self._cache.layers):
            places = _vector_places(layer.keys, rows, order)
            keys, values = (_gathered(part, places) for part in (layer.keys, layer.values))
            cache.update(keys, values, number)
        return cache


def _vector_places(kept: torch.Tensor, rows: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """Where the vectors of rows ``(N,)`` at columns ``(N, P')`` stand in ``(B, heads, P, D)``: ``(N, heads, P')``."""
    _, heads, length, _ = kept.shape
    each_head = rows[:, None] * heads + torch.arange(heads, device=rows.device)  # (N, heads)
    return each_head[:, :, None] * length + order[:, None, :]


def _gathered(kept: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """``(B, heads, P, D)`` and places ``(N, heads, P')`` of vectors -> ``(N, heads, P', D)``."""
    width = kept.shape[-1]
    return kept.reshape(-1, width).index_select(0, places.flatten()).view(*places.shape, width)


def joined(parts: Sequence[CausalRows]) -> CausalRows:
    """The rows of all parts, one part behind the other; the parts are not to be read on with."""
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
    """Indices of rows to be read together, the shorter ones first: a group ends where it has ``enough`` pieces and the
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
    """What the model itself took."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """Seconds inside the model."""
        self.pieces = 0
        """Pieces read, without padding."""
        self.cells = 0
        """Pieces read, with padding."""
