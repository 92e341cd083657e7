"""Next-word scores of a causal language model: the log-probability of whole words after many histories.

A search scores a word once it is complete. Keys and values of every piece are cached and shared by all sequences that
begin with it. So a word costs its own pieces, however long its history is, and all words of one call are one batch.
Pieces, sentence ends and scores are the same as in rescoring.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from tasks.errors import ModelError

if TYPE_CHECKING:
    from tasks.language_model.causal_lm.model import CausalModel

BEGINNING = 0
"""The empty history."""
_ROWS_AT_ONCE = 64
_FIRST_CAPACITY = 256
_SAME = 1e-3
_PROBE = ("the", "end", "of", "the")


class WholeWords:
    """Scores histories, which are numbers; equal sequences of words have the same number."""

    def __init__(self, causal: "CausalModel") -> None:
        """Raises ``ModelError`` where the model cannot continue from cached keys and values."""
        self._causal = causal
        self._model = causal.network
        self._device = self._model.device
        self._pieces: dict[str, tuple[int, ...]] = {}
        try:
            found = self._probed()
        except (TypeError, ValueError, RuntimeError, NotImplementedError, IndexError, AttributeError):
            found = None
        (expected,) = causal.score_sentences([[_PROBE]])
        tolerance = _SAME if self._model.dtype == torch.float32 else 100 * _SAME
        if found is None or not np.allclose(found, expected, rtol=tolerance, atol=10 * tolerance):
            raise ModelError(
                f"model {causal.name!r} does not cache keys and values of the text that it reads, and a search needs "
                "them; use it with 'palimpsest rescore'"
            )

    def _probed(self) -> np.ndarray:
        self.start()
        history = BEGINNING
        for word in _PROBE[:2]:
            history = self.extend(history, word)
        self.read(np.array([history]))
        for word in _PROBE[2:]:
            history = self.extend(history, word)
        ends = self.sentence_ends(np.array([history]))
        return self.values(np.array([history])) + ends

    def start(self) -> None:
        """Forget all histories."""
        self._children: dict[tuple[int, str], int] = {}
        self._parent, self._word = [-1], [""]
        self._value = np.full(_FIRST_CAPACITY, np.nan)
        self._value[BEGINNING] = 0.0
        # By history: rows of the table with the keys and values of its pieces but the last; and the last piece.
        *before, last = self._causal.pieces.start
        self._rows: list[np.ndarray | None] = [np.zeros(0, dtype=np.int64)]
        self._last: list[int] = [last]
        self._table: list[tuple[Tensor, Tensor]] = []
        self._used = 0
        if before:
            rows, _ = self._run([(np.zeros(0, dtype=np.int64), tuple(before), ())])
            self._rows[BEGINNING] = rows[0]

    def extend(self, history: int, word: str) -> int:
        """The history extended by one word; nothing is computed yet."""
        key = history, word
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = len(self._parent)
            self._parent.append(history)
            self._word.append(word)
            self._rows.append(None)
            self._last.append(-1)
            if found == len(self._value):
                self._value = np.concatenate([self._value, np.full_like(self._value, np.nan)])
        return found

    def values(self, histories: np.ndarray) -> np.ndarray:
        """The log-probability of each history's words (N,), in nats; NaN before ``read`` of it."""
        return self._value[histories]

    def read(self, histories: np.ndarray) -> None:
        """Compute the values of these histories (N,), one level of the tree at a time."""
        levels = []
        while len(histories := np.unique(histories[np.isnan(self._value[histories])])):
            levels.append(histories)
            histories = np.array([self._parent[history] for history in histories.tolist()])
        self._divide([word for level in levels for word in (self._word[history] for history in level.tolist())])
        for level in reversed(levels):
            wanted = [history for history in level.tolist() if np.isnan(self._value[history])]
            tasks = [(history, self._pieces[self._word[history]]) for history in wanted]
            tasks.sort(key=lambda task: len(self._before(self._parent[task[0]])[0]))
            for begin in range(0, len(tasks), _ROWS_AT_ONCE):
                self._read_some(tasks[begin : begin + _ROWS_AT_ONCE])

    def _divide(self, words: list[str]) -> None:
        new = sorted({word for word in words if word not in self._pieces})
        self._pieces |= {
            word: tuple(pieces) for word, pieces in zip(new, self._causal.pieces.of_words(new), strict=True)
        }

    def _before(self, history: int) -> tuple[np.ndarray, int]:
        """Rows and last piece of a history that has been read."""
        rows = self._rows[history]
        if rows is None:
            raise RuntimeError("a history was read before its parent")
        return rows, self._last[history]

    def _read_some(self, tasks: list[tuple[int, tuple[int, ...]]]) -> None:
        asked = []
        for history, pieces in tasks:
            rows, last = self._before(self._parent[history])
            asked.append((self._within(rows, len(pieces)), (last, *pieces[:-1]), pieces))
        found, values = self._run(asked)
        for (history, pieces), (rows, *_), own, value in zip(tasks, asked, found, values.tolist(), strict=True):
            self._rows[history] = np.concatenate([rows, own])
            self._last[history] = pieces[-1]
            self._value[history] = self._value[self._parent[history]] + value

    def _within(self, rows: np.ndarray, more: int) -> np.ndarray:
        """These rows, or the rows of the start where they and as many pieces exceed the model's window."""
        start = self._rows[BEGINNING]
        return rows if start is None or len(rows) + more <= self._causal.longest else start

    def sentence_ends(self, histories: np.ndarray) -> np.ndarray:
        """The log-probability of the sentence end after each history (N,), in nats."""
        self.read(histories)
        end = tuple(self._causal.pieces.end)
        wanted, inverse = np.unique(histories, return_inverse=True)
        found = []
        used = self._used
        for begin in range(0, len(wanted), _ROWS_AT_ONCE):
            asked = []
            for history in wanted[begin : begin + _ROWS_AT_ONCE].tolist():
                rows, last = self._before(history)
                asked.append((self._within(rows, len(end)), (last, *end[:-1]), end))
            found.append(self._run(asked)[1])
            self._used = used  # nothing follows an end
        return np.concatenate([np.zeros(0), *found])[inverse]

    @torch.inference_mode()
    def _run(
        self, asked: list[tuple[np.ndarray, tuple[int, ...], tuple[int, ...]]]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Read pieces after cached rows; returns the new rows, and the log-probability of each one's targets (N,)."""
        from transformers import DynamicCache

        count = len(asked)
        past, inputs = max(len(rows) for rows, *_ in asked), max(len(pieces) for _, pieces, _ in asked)
        chain = np.full((count, past), -1, dtype=np.int64)
        tokens = np.zeros((count, inputs), dtype=np.int64)
        places = np.zeros((count, inputs), dtype=np.int64)
        for index, (rows, pieces, _) in enumerate(asked):
            chain[index, past - len(rows) :] = rows
            tokens[index, : len(pieces)] = pieces
            places[index] = len(rows) + np.minimum(np.arange(inputs), len(pieces) - 1)
        seen = np.ones((count, 1, inputs, past + inputs), dtype=bool)
        seen[..., :past] = (chain >= 0)[:, None, None]
        seen[..., past:] = np.tri(inputs, dtype=bool)
        dtype = self._model.dtype
        visible = torch.from_numpy(seen).to(self._device)
        mask = torch.zeros(visible.shape, dtype=dtype, device=self._device)
        mask.masked_fill_(~visible, torch.finfo(dtype).min)
        cache = DynamicCache()
        if past:
            flat = torch.from_numpy(np.maximum(chain, 0)).flatten().to(self._device)
            for number, tables in enumerate(self._table):
                keys, contents = (
                    table.index_select(0, flat).view(count, past, *table.shape[1:]).transpose(1, 2) for table in tables
                )
                cache.update(keys, contents, number)
        logits = self._model(
            input_ids=torch.from_numpy(tokens).to(self._device),
            attention_mask=mask,
            position_ids=torch.from_numpy(places).to(self._device),
            past_key_values=cache,
            use_cache=True,
        ).logits.float()  # (N, L, V)
        inside = np.arange(inputs) < np.array([len(pieces) for _, pieces, _ in asked])[:, None]  # (N, L)
        own = np.full((count, inputs), -1)
        own[inside] = np.arange(self._used, self._used + int(inside.sum()))
        self._store(cache.layers, past, torch.from_numpy(inside).to(self._device))
        targets = np.full((count, inputs), -1)
        for index, (_, _, wanted) in enumerate(asked):
            targets[index, : len(wanted)] = wanted
        row, column = np.nonzero(targets >= 0)
        sums: np.ndarray = np.zeros(count)
        if len(row):
            chosen = logits[torch.from_numpy(row).to(self._device), torch.from_numpy(column).to(self._device)]  # (E, V)
            target = torch.from_numpy(targets[row, column]).to(self._device)
            scores = chosen.gather(1, target[:, None])[:, 0] - chosen.logsumexp(1)
            sums = np.bincount(row, weights=scores.double().cpu().numpy(), minlength=count)
        return [rows[mask_of] for rows, mask_of in zip(own, inside, strict=True)], sums

    def _store(self, layers: Sequence[Any], past: int, inside: Tensor) -> None:
        """Write the keys and values of the new pieces to the table; ``inside`` (N, L) is False for padding."""
        end = self._used + int(inside.sum())
        for number, layer in enumerate(layers):
            new = [part[:, :, past:].transpose(1, 2)[inside] for part in (layer.keys, layer.values)]  # (M, H, D)
            if number == len(self._table):
                empty = (part.new_empty(_FIRST_CAPACITY, *part.shape[1:]) for part in new)
                self._table.append((next(empty), next(empty)))
            if end > len(self._table[number][0]):
                self._table[number] = (_longer(self._table[number][0], end), _longer(self._table[number][1], end))
            for table, part in zip(self._table[number], new, strict=True):
                table[self._used : end] = part
        self._used = end


def _longer(table: Tensor, rows: int) -> Tensor:
    """A larger copy of a table, with at least this many rows; at least twice as long."""
    return torch.cat([table, table.new_empty(max(len(table), rows - len(table)), *table.shape[1:])])
