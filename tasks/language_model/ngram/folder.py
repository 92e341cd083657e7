"""An n-gram model on disk: one ARPA file for each model of the mixture, ``vocabulary.txt`` and ``settings.json``.

A model that predicts the language of the next word first also has ``languages.safetensors``.

The models remain separate files, with their weights in ``settings.json``. So the stored mixture is the one that was
weighted and measured. An adaptation writes its own few megabytes and copies the rest. DVC's cache holds the generic
model once, since its bytes are the same in every folder. KenLM reads each file separately.

ARPA files hold a back-off model as text, for KenLM, SRILM and other recognisers. Probabilities and back-off weights are
logarithms to base 10. All n-grams of one order are in the order of their keys, so each context comes first. Files are
written and read by columns, since a generic model has millions of lines.
"""

import json
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.files.atomic_file import PRIVATE_MODE, atomic_folder, atomic_writer
from tasks.language_model.language_factors import LANGUAGES, LanguageFactors, read_factors, write_factors
from tasks.language_model.model_folder import (
    SETTINGS,
    VOCABULARY,
    check_file,
    check_replaceable,
    hash_of_file,
    read_settings,
)
from tasks.language_model.ngram.backoff_model import BackoffModel, BackoffOrder, NgramMixture, find
from tasks.language_model.settings import Kind
from tasks.language_model.vocabulary import START_ID, Vocabulary, read_vocabulary

if TYPE_CHECKING:
    import pyarrow as pa

NEVER = -99.0
"""Logarithm of 0 in this format."""
_LINES_AT_ONCE = 1 << 18
_SECTION = re.compile(rb"^\\(\d+)-grams:\n", re.MULTILINE)
_END = b"\n\\end\\\n"


def write_arpa(path: str | Path, model: BackoffModel, vocabulary: Vocabulary) -> None:
    """Write a model; words that are never predicted, except ``<s>``, are left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pa.array(vocabulary.tokens)
    listed = [_listed(model.orders[0]), *(np.arange(len(order.keys)) for order in model.orders[1:])]
    with atomic_writer(path, private=True, binary=True) as stream:
        stream.write(b"\\data\\\n")
        for length, chosen in enumerate(listed, start=1):
            stream.write(f"ngram {length}={len(chosen)}\n".encode())
        texts = words
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


def _as_text(logarithms: np.ndarray) -> "pa.Array":
    """Convert natural logarithms to decimal ones, as text with the digits of single precision."""
    import pyarrow as pa

    decimal = np.where(np.isfinite(logarithms), logarithms / math.log(10), NEVER)
    # Adding 0 turns -0 into 0.
    return pa.array(decimal.astype(np.float32) + np.float32(0)).cast(pa.string())


def read_arpa(path: str | Path, vocabulary: Vocabulary) -> BackoffModel:
    """Read an ARPA file over this vocabulary, as ``write_arpa`` writes it; the caller has checked its hash."""
    content = Path(path).read_bytes()
    sections = list(_SECTION.finditer(content))
    ends = [section.start() for section in sections[1:]] + [len(content) - len(_END) + 1]
    orders: list[BackoffOrder] = []
    view = memoryview(content)
    for section, end in zip(sections, ends, strict=True):
        words, columns = _columns(view[section.end() : end], len(orders) + 1 == len(sections))
        orders.append(_order(words, columns, orders, vocabulary))
    return BackoffModel(orders, len(vocabulary))


def _columns(section: memoryview, highest: bool) -> "tuple[pa.Array, list[np.ndarray]]":
    """The n-grams (an Arrow array of texts) and the columns of numbers of one section."""
    import pyarrow as pa
    from pyarrow import csv

    names = ["log_probability", "words", *([] if highest else ["log_backoff"])]
    kinds = {"log_probability": pa.float64(), "words": pa.string(), "log_backoff": pa.float64()}
    table = csv.read_csv(
        pa.BufferReader(pa.py_buffer(section)),
        read_options=csv.ReadOptions(column_names=names, use_threads=False),
        parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
        convert_options=csv.ConvertOptions(column_types=kinds, strings_can_be_null=False),
    )
    return table["words"].combine_chunks(), [table[column].to_numpy() for column in names if column != "words"]


def _order(
    texts: "pa.Array", columns: Sequence[np.ndarray], below: list[BackoffOrder], vocabulary: Vocabulary
) -> BackoffOrder:
    """The table of one section: words become ids, and keys come from the tables below."""
    import pyarrow as pa
    import pyarrow.compute as pc

    length, size = len(below) + 1, len(vocabulary)
    words = pc.list_flatten(pc.split_pattern(texts, " "))
    ids = pc.index_in(words, value_set=pa.array(vocabulary.tokens)).to_numpy().astype(np.int64)
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
    keys = index * size + ids[:, -1]
    backoff = numbers[1] if len(numbers) > 1 else np.zeros(len(keys))
    return BackoffOrder(keys, numbers[0], backoff)


KIND: Kind = "ngram"
FORMAT = 1
_NAMES = ("generic.arpa", "adapted.arpa")


def save_ngrams(
    folder: str | Path,
    model: BackoffModel,
    vocabulary: Vocabulary,
    languages: LanguageFactors | None = None,
    base: str | Path | None = None,
    weight: float = 1.0,
) -> None:
    """Write a folder with one model; an earlier folder is unchanged until the new one is complete.

    With ``base``, the folder also has the models of that folder, and the new one has this ``weight`` in the mixture.
    """
    check_replaceable(folder)
    with atomic_folder(folder, private=True) as fresh:
        parts = []
        for name, earlier in _parts(Path(base))[0] if base else ():
            shutil.copyfile(Path(base or "", name), fresh / name)
            (fresh / name).chmod(PRIVATE_MODE)
            parts.append((name, earlier * (1 - weight)))
        name = _NAMES[len(parts)] if len(parts) < len(_NAMES) else f"adapted-{len(parts)}.arpa"
        write_arpa(fresh / name, model, vocabulary)
        parts.append((name, weight))
        document: dict[str, Any] = {
            "format": FORMAT,
            "kind": KIND,
            "vocabulary": vocabulary.hash,
            "models": [
                {"file": name, "weight": weight, "sha256": hash_of_file(fresh / name)} for name, weight in parts
            ],
            "files": sorted([VOCABULARY, SETTINGS, *(name for name, _ in parts)]),
        }
        document |= write_factors(fresh, languages)
        if languages is not None:
            document["files"].append(LANGUAGES)
        vocabulary.write(fresh / VOCABULARY, private=True)
        with atomic_writer(fresh / SETTINGS, private=True) as stream:
            stream.write(json.dumps(document, indent=2) + "\n")


def load(folder: str | Path) -> tuple[NgramMixture, Vocabulary]:
    """Read a model folder.

    Raises ``ModelError`` where it is incomplete, of another format, or where the hash of a file differs.
    """
    folder = Path(folder)
    parts, expected = _parts(folder)
    check_file(folder / VOCABULARY, expected)
    vocabulary = read_vocabulary(folder / VOCABULARY)
    models = [read_arpa(folder / name, vocabulary) for name, _ in parts]
    languages = read_factors(folder, read_settings(folder, KIND, FORMAT, []))
    return NgramMixture(models, [weight for _, weight in parts], languages), vocabulary


def _parts(folder: Path) -> tuple[list[tuple[str, float]], str]:
    """File and weight of each model, after a check of their hashes, and the hash of the vocabulary."""
    document = read_settings(folder, KIND, FORMAT, ["vocabulary", "models"])
    for part in document["models"]:
        check_file(folder / part["file"], part["sha256"])
    return [(part["file"], float(part["weight"])) for part in document["models"]], document["vocabulary"]
