"""A text as the units of a recogniser, for language models over them."""

from functools import partial
from typing import TYPE_CHECKING, Any

from tasks.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tasks.language_model.encoded_text import EncodedText
    from tasks.language_model.vocabulary import Vocabulary
    from tasks.speech.recogniser.units import Units


def unit_encoder(units: "Units") -> "Callable[[str, Vocabulary], EncodedText]":
    """Encodes a text file for a model whose vocabulary is these units."""
    return partial(_encode_for, units)


def check_units(model: str, vocabulary: "Vocabulary", units: "Units") -> None:
    """Raise ``ModelError`` where a model is not over these units."""
    from tasks.speech.fusion.subword_fusion import unit_vocabulary

    expected = unit_vocabulary(units.pieces)
    if vocabulary.hash != expected.hash:
        raise ModelError(
            f"the model {model!r} has the vocabulary {vocabulary.hash[:12]} and the recogniser's units are "
            f"{expected.hash[:12]}; give a model over the units of this recogniser"
        )


def _encode_for(units: "Units", path: str, vocabulary: Any) -> "EncodedText":
    return encode_units(path, units)


def encode_units(path: str, units: "Units") -> "EncodedText":
    """A text file as ids of units behind the special tokens, as ``unit_vocabulary`` numbers them.

    Raises ``CorpusError`` where no line has a word.
    """
    import numpy as np

    from tasks.corpora.text_lines import read_lines
    from tasks.errors import CorpusError
    from tasks.language_model.encoded_text import EncodedText
    from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID

    tokens: list[int] = []
    offsets, lines, empty = [0], [], 0
    for number, line in enumerate(read_lines(path), start=1):
        found = units.encode(line)
        if not found:
            empty += 1
            continue
        tokens += [START_ID, *(unit + len(SPECIAL_TOKENS) for unit in found), END_ID]
        offsets.append(len(tokens))
        lines.append(number)
    if not lines:
        raise CorpusError(f"corpus file {path!r} holds no word; a language model needs text")
    return EncodedText(
        tokens=np.array(tokens, dtype=np.int32),
        offsets=np.array(offsets, dtype=np.int64),
        lines=np.array(lines, dtype=np.int64),
        empty_lines=empty,
        marker_like=0,
        markers_are_targets=True,
    )
