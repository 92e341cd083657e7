"""Batches with several windows in a row; no window attends to another one."""

from collections.abc import Sequence

import numpy as np
import torch

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.transformer.batching import Batch, Windows, cut, pools
from tasks.language_model.vocabulary import PADDING_ID


def pack(chosen: np.ndarray, length: np.ndarray, row_length: int) -> list[np.ndarray]:
    """Pack windows into rows of at most ``row_length`` inputs: longest first, each into the fullest row that has room.

    Every chosen window is in exactly one row (best-fit decreasing).
    """
    rows: list[list[int]] = []
    with_room: list[list[int]] = [[] for _ in range(row_length + 1)]  # rows by their free inputs
    order = chosen[np.argsort(-length[chosen], kind="stable")]
    for window, inputs in zip(order.tolist(), length[order].tolist(), strict=True):
        room = next((room for room in range(inputs, row_length + 1) if with_room[room]), None)
        if room is None:
            room = row_length
            with_room[room].append(len(rows))
            rows.append([])
        row = with_room[room].pop()
        rows[row].append(window)
        with_room[room - inputs].append(row)
    return [np.array(row) for row in rows]


def packed_batches(
    windows: Windows, row_length: int, batch_tokens: int, seed: int, epoch: int
) -> list[list[np.ndarray]]:
    """Divide all windows into batches of packed rows, in an order that depends on seed and epoch.

    A batch has at most ``batch_tokens`` inputs, or is one longer row.
    """
    generator = np.random.default_rng([seed, epoch])
    batches: list[list[np.ndarray]] = []
    for part in pools(windows, batch_tokens, generator):
        rows = pack(part, windows.length, row_length)
        inputs = np.array([windows.length[row].sum() for row in rows])
        batches += [[rows[n] for n in chosen] for chosen in cut(generator.permutation(len(rows)), inputs, batch_tokens)]
    return [batches[index] for index in generator.permutation(len(batches))]


def make_packed_batch(text: EncodedText, is_target: np.ndarray, windows: Windows, rows: Sequence[np.ndarray]) -> Batch:
    """Gather rows of windows into a batch; the windows are numbered from 0 in the order of the rows."""
    chosen = np.concatenate(rows)
    length = windows.length[chosen]
    row = np.repeat(np.arange(len(rows)), [len(each) for each in rows])  # (W,) row of each window
    ends = np.cumsum(length)
    row_starts = np.concatenate([[0], np.cumsum([windows.length[each].sum() for each in rows])])[:-1]
    start = ends - length - row_starts[row]  # (W,) column where each window begins
    window = np.repeat(np.arange(len(chosen)), length)  # (I,) window of each input
    place = np.arange(len(window)) - np.repeat(ends - length, length)
    column = start[window] + place
    width = int(column.max()) + 1
    index = windows.first[chosen][window] + place
    shape = (len(rows), width)
    tokens, places, segments = np.full(shape, PADDING_ID), np.zeros(shape, dtype=np.int64), np.full(shape, -1)
    tokens[row[window], column] = text.tokens[index]
    places[row[window], column] = place
    segments[row[window], column] = window
    counted = is_target[index + 1] & (place >= windows.context[chosen][window])
    return Batch(
        tokens=torch.from_numpy(tokens.astype(np.int64)),
        positions=torch.from_numpy((row[window] * width + column)[counted]),
        targets=torch.from_numpy(text.tokens[index[counted] + 1].astype(np.int64)),
        rows=torch.from_numpy(window[counted]),
        places=torch.from_numpy(places),
        segments=torch.from_numpy(segments.astype(np.int64)),
    )
