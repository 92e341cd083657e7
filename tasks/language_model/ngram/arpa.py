"""ARPA files: a back-off model as text, for KenLM, SRILM and every recogniser that reads them.

Probabilities and back-off weights are logarithms to base 10. All n-grams of one order stand in the order of their keys,
each context before what follows it. Written and read by columns, since a generic model has millions of lines.
"""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.errors import ModelError
from tasks.files.atomic_file import atomic_writer
from tasks.language_model.ngram.backoff_model import BackoffModel, BackoffOrder, find
from tasks.language_model.vocabulary import START_ID, Vocabulary

NEVER = -99.0
"""Stands for the logarithm of 0, as everywhere in this format."""
_LINES_AT_ONCE = 1 << 18
_SECTION = re.compile(rb"^\\(\d+)-grams:\n", re.MULTILINE)
_END = b"\n\\end\\\n"


def write_arpa(path: str | Path, model: BackoffModel, vocabulary: Vocabulary, *, private: bool = False) -> None:
    """Write a model; words that are never predicted, but for ``<s>``, are left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pa.array(vocabulary.tokens)
    listed = [_listed(model.orders[0]), *(np.arange(len(order.keys)) for order in model.orders[1:])]
    with atomic_writer(path, private=private, binary=True) as stream:
        stream.write(b"\\data\\\n")
        for length, chosen in enumerate(listed, start=1):
            stream.write(f"ngram {length}={len(chosen)}\n".encode())
        texts: Any = words
        for length, (order, chosen) in enumerate(zip(model.orders, listed, strict=True), start=1):
            stream.write(f"\n\\{length}-grams:\n".encode())
            if length > 1:
                contexts, last = np.divmod(order.keys, model.vocabulary_size)
                texts = pc.binary_join_element_wise(texts.take(pa.array(contexts)), words.take(pa.array(last)), " ")
            highest = length == model.order
            for begin in range(0, len(chosen), _LINES_AT_ONCE):
                rows = chosen[begin : begin + _LINES_AT_ONCE]
                columns = [_as_text(order.log_probability[rows]), texts.take(pa.array(rows))]
                columns += [] if highest else [_as_text(order.log_backoff[rows])]
                stream.write("\n".join(pc.binary_join_element_wise(*columns, "\t").to_pylist()).encode() + b"\n")
        stream.write(_END)


def _listed(order: BackoffOrder) -> np.ndarray:
    return np.flatnonzero(np.isfinite(order.log_probability) | (order.keys == START_ID))


def _as_text(logarithms: np.ndarray) -> Any:
    """Natural logarithms to decimal ones as text, with the digits of single precision."""
    import pyarrow as pa

    decimal = np.where(np.isfinite(logarithms), logarithms / math.log(10), NEVER)
    # No weight is written as -0: adding 0 makes it 0.
    return pa.array(decimal.astype(np.float32) + np.float32(0)).cast(pa.string())


def read_arpa(path: str | Path, vocabulary: Vocabulary) -> BackoffModel:
    """Read a model over this vocabulary as ``write_arpa`` writes it.

    Raises ``ModelError`` where the file is missing, damaged, or of another vocabulary.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise ModelError(f"n-gram model {str(path)!r} does not exist; make the model again") from None
    sections = list(_SECTION.finditer(content))
    announced = re.findall(rb"^ngram (\d+)=(\d+)$", content[: sections[0].start()] if sections else b"", re.MULTILINE)
    complete = content.endswith(_END) and [int(length) for length, _ in announced] == [int(s[1]) for s in sections]
    if not complete or not sections:
        raise ModelError(f"n-gram model {str(path)!r} is not an ARPA file, or not a whole one; make the model again")
    ends = [section.start() for section in sections[1:]] + [len(content) - len(_END) + 1]
    orders: list[BackoffOrder] = []
    view = memoryview(content)
    for (_, count), section, end in zip(announced, sections, ends, strict=True):
        words, columns = _columns(view[section.end() : end], orders, len(orders) + 1 == len(sections), str(path))
        if len(columns[0]) != int(count):
            raise ModelError(f"n-gram model {str(path)!r} has not the n-grams that it announces; make the model again")
        orders.append(_order(words, columns, orders, vocabulary, str(path)))
    return BackoffModel(orders, len(vocabulary))


def _columns(section: memoryview, below: list[BackoffOrder], highest: bool, name: str) -> tuple[Any, list[np.ndarray]]:
    """The n-grams (an Arrow array of texts) and the columns of numbers of one section."""
    import pyarrow as pa
    from pyarrow import csv

    names = ["log_probability", "words", *([] if highest else ["log_backoff"])]
    kinds = {"log_probability": pa.float64(), "words": pa.string(), "log_backoff": pa.float64()}
    try:
        table = csv.read_csv(
            pa.BufferReader(pa.py_buffer(section)),
            read_options=csv.ReadOptions(column_names=names, use_threads=False),
            parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
            convert_options=csv.ConvertOptions(column_types=kinds, strings_can_be_null=False),
        )
    except pa.ArrowInvalid:
        raise ModelError(
            f"n-gram model {name!r}: the {len(below) + 1}-grams are not numbers and words; make the model again"
        ) from None
    return table["words"].combine_chunks(), [table[column].to_numpy() for column in names if column != "words"]


def _order(
    texts: Any, columns: Sequence[np.ndarray], below: list[BackoffOrder], vocabulary: Vocabulary, name: str
) -> BackoffOrder:
    """The table of one section; words are looked up, and keys made from the tables below."""
    import pyarrow as pa
    import pyarrow.compute as pc

    length, size = len(below) + 1, len(vocabulary)
    words = pc.list_flatten(pc.split_pattern(texts, " "))
    ids = pc.fill_null(pc.index_in(words, value_set=pa.array(vocabulary.tokens)), -1).to_numpy().astype(np.int64)
    if len(ids) != length * len(texts) or (ids < 0).any():
        raise ModelError(
            f"n-gram model {name!r}: the {length}-grams hold words that are not in its vocabulary; make the model again"
        )
    numbers = [np.where(column <= NEVER, -np.inf, column * math.log(10)) for column in columns]
    ids = ids.reshape(-1, length)
    if length == 1:
        probability, backoff = np.full(size, -np.inf), np.zeros(size)
        probability[ids[:, 0]] = numbers[0]
        if len(numbers) > 1:
            backoff[ids[:, 0]] = numbers[1]
        return BackoffOrder(np.arange(size), probability, backoff)
    index = ids[:, 0]
    for order, column in zip(below[1:], range(1, length - 1), strict=True):
        index = find(order.keys, index * size + ids[:, column])
        if (index < 0).any():
            raise ModelError(f"n-gram model {name!r} lacks the contexts of some {length}-grams; make the model again")
    keys = index * size + ids[:, -1]
    sorting = np.argsort(keys, kind="stable")
    backoff = numbers[1] if len(numbers) > 1 else np.zeros(len(keys))
    return BackoffOrder(keys[sorting], numbers[0][sorting], backoff[sorting])
