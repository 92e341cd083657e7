"""Rows of pieces that a causal LM reads on, with the keys and values of what it has read.

Rows have different lengths. New pieces of all rows are appended side by side, padded on the right; where a row has
nothing, the attention mask has a hole, and positions are counted by row. To most architectures a hole is nothing; for
those that count columns (below), each row is moved together before it is read on. So a row's scores are those it
would have alone, rows can be copied, and the last pieces of a row can be taken back.

What the columns of the kept keys and values mean to an architecture, and whether rows with holes are read rightly.

To most architectures a hole is nothing: what is masked is not seen, and positions are given by row. Others
measure distances in columns: those with a sliding window, which a hole makes narrower, and those with a penalty for
distance by column (MPT). They are right where no hole is inside a row, so the holes are closed before they are read.
Architectures that keep a state instead of keys and values (RWKV, Mamba) cannot take pieces back, and are refused.
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


_WINDOWS = (
    "sliding_window",
    "sliding_window_size",
    "sliding_windows",
    "window_size",
    "attention_window_size",
    "attention_window",
    "local_attention",
    "attention_chunk_size",
    "keep_window_size",
)
"""What configurations call the number of columns that a layer sees; one that no layer uses costs time only."""
_KNOWN, _IN_VAIN, _LONGER, _LAST = 4, 2, 9, 2
"""Pieces of the test: the shorter row's, those that it takes back, the longer row's, and the last ones of each."""
_SAME = 5e-3
_SAME_IN_16_BITS = 0.1
"""Scores may differ by rounding, which takes so much of their spread over the vocabulary (root mean squares)"""
_NOTHING = 1e-5
"""and so much where all are equal."""


def window_of(config: "PreTrainedConfig") -> int | None:
    """The narrowest attention window that a configuration names, in columns; ``None`` where it names none."""
    if hasattr(config, "get_text_config"):
        config = config.get_text_config(decoder=True)
    found: list[int] = []
    for name in _WINDOWS:
        if name == "sliding_window" and getattr(config, "use_sliding_window", True) is False:
            continue
        found += _widths(getattr(config, name, None))
    return min(found, default=None)


def _widths(value: object) -> list[int]:
    if isinstance(value, list | tuple):
        return [width for part in value for width in _widths(part)]
    return [value] if isinstance(value, int) and value > 0 else []


def check_rows(language_model: "CausalLanguageModel") -> None:
    """Hold that rows with holes give the scores of whole sequences, closing the holes if need be.

    Two short rows are read beside each other in parts, with padding and with pieces that are taken back. Raises
    ``ModelError`` where the scores are not those of one pass over each row.
    """
    expected = _whole(language_model)
    usual = language_model.closed_from
    for closed_from in dict.fromkeys((usual, 0)):
        language_model.closed_from = closed_from
        try:
            found = _in_parts(language_model)
        except torch.cuda.OutOfMemoryError:
            raise
        except Exception:
            # A cache of another kind than keys and values fails in a way of its own.
            continue
        if found is not None and _alike(found, expected, language_model.model.dtype):
            return
    language_model.closed_from = usual
    kind = getattr(language_model.model.config, "model_type", type(language_model.model).__name__)
    raise ModelError(
        f"model {language_model.name!r} (model_type {kind!r}) cannot fill: it does not read a text in parts as it "
        "reads the whole, as an architecture with a recurrent state or a cache of its own does not; take another one, "
        "such as llama, gpt2, qwen2 or opt"
    )


def _sequences(language_model: "CausalLanguageModel") -> tuple[list[int], list[int]]:
    size = language_model.model.get_input_embeddings().weight.shape[0]
    shorter = [(7 * index + 5) % size for index in range(_KNOWN + _LAST)]
    return shorter, [(11 * index + 3) % size for index in range(_LONGER + _LAST)]


def _whole(language_model: "CausalLanguageModel") -> torch.Tensor:
    """Scores ``(2, V)`` behind the two sequences, in one pass without padding, mask or cache."""
    shorter, longer = _sequences(language_model)
    # What stands behind the shorter one is not seen.
    rest = [shorter[-1]] * (len(longer) - len(shorter))
    pieces = torch.tensor([[*shorter, *rest], longer], device=language_model.model.device)  # (2, T)
    with torch.inference_mode():
        scores: torch.Tensor = language_model.model(input_ids=pieces, use_cache=False).logits  # (2, T, V)
    behind = torch.stack([scores[0, len(shorter) - 1], scores[1, -1]]).float()
    if not torch.isfinite(behind).all():
        raise ModelError(f"model {language_model.name!r} {NO_NUMBERS}")
    return behind


def _in_parts(language_model: "CausalLanguageModel") -> torch.Tensor | None:
    """The same by rows; ``None`` where the model does not keep what it reads as keys and values."""
    shorter, longer = _sequences(language_model)
    rows = CausalRows(language_model, 2, ForwardClock())
    rows.read([longer[:_LONGER], [*shorter[:_KNOWN], *[shorter[0]] * _IN_VAIN]], [0, 0])
    if not rows.are_kept:
        return None
    rows = rows.chosen([1, 0])
    rows.take_back([_IN_VAIN, 0])
    return rows.read([shorter[_KNOWN:], longer[_LONGER:]], [1, 1])


def _alike(found: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether scores ``(2, V)`` are the same but for rounding; a constant that all scores of a row share is nothing."""
    if found.shape != expected.shape:
        return False
    expected = expected - expected.mean(dim=1, keepdim=True)
    difference = found - found.mean(dim=1, keepdim=True) - expected
    limit = _SAME if dtype == torch.float32 else _SAME_IN_16_BITS
    return bool((_spread(difference) <= limit * _spread(expected) + _NOTHING).all())


def _spread(scores: torch.Tensor) -> torch.Tensor:
    """Root mean squares ``(2,)`` of scores ``(2, V)``."""
    return scores.square().mean(dim=1).sqrt()


class CausalRows:
    """``B`` rows; ``lengths`` ``(B,)`` pieces read by each."""

    def __init__(self, language_model: "CausalLanguageModel", rows: int, clock: "ForwardClock") -> None:
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
            scores = scores_at(
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

    def _gathered_cache(self, rows: torch.Tensor, order: torch.Tensor) -> DynamicCache:
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
