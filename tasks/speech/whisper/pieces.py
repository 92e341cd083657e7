"""Whisper's pieces of words: bytes, and which of them a transcript may not have."""

import base64
import binascii
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tasks.errors import ModelError

_READ_ALOUD = "%$&+=#@€£¥¢§°½¼¾²³"
"""Signs that stand for a word and that the normalisation takes for punctuation."""


class WhisperPieces:
    """The ordinary pieces by id; the ids from ``len(pieces)`` on are marks, the first of them the end of the text."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = list(pieces)

    def __len__(self) -> int:
        return len(self._pieces)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ordinary pieces; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self._pieces[piece] for piece in ids).decode("utf-8", errors="replace").strip()

    def with_digits(self) -> list[int]:
        """Ids of the pieces that hold a digit or a sign that is read aloud.

        A sign of several bytes (€) may be split over two pieces; those stay.
        """
        texts = [piece.decode("utf-8", errors="replace") for piece in self._pieces]
        return [number for number, text in enumerate(texts) if has_digits(text)]


def has_digits(text: str) -> bool:
    """Whether a text holds a digit of any script, or a sign that is read aloud."""
    return any(character.isdigit() or character in _READ_ALOUD for character in text)


def read_ranks(path: str | Path) -> WhisperPieces:
    """Pieces of a ``.tiktoken`` file, as OpenAI's package has them: a piece in base 64 and its rank on each line.

    Raises ``ModelError`` where the file is missing or is none.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError:
        raise ModelError(
            f"vocabulary {str(path)!r} does not exist or cannot be read; give the .tiktoken file of OpenAI's package"
        ) from None
    try:
        pairs = [line.split() for line in lines if line]
        # OpenAI's multilingual file has an empty piece, written as a single "=".
        ranks = {int(rank): base64.b64decode(piece, validate=piece != b"=") for piece, rank in pairs}
    except (ValueError, binascii.Error):
        ranks = {}
    if not ranks or sorted(ranks) != list(range(len(ranks))):
        raise ModelError(f"vocabulary {str(path)!r} is no .tiktoken file: a piece in base 64 and its rank on each line")
    return WhisperPieces([ranks[rank] for rank in range(len(ranks))])


def pieces_of_tokenizer(tokenizer: Any, count: int, model: str) -> WhisperPieces:
    """The first ``count`` pieces of a tokenizer of Hugging Face's, which writes each byte as a letter.

    Raises ``ModelError`` where it lacks some of them.
    """
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    byte_of = {letter: byte for byte, letter in bytes_to_unicode().items()}
    names = {number: name for name, number in tokenizer.get_vocab().items()}
    missing = [number for number in range(count) if number not in names]
    foreign = [n for n in range(count) if n in names and any(letter not in byte_of for letter in names[n])]
    if missing or foreign:
        raise ModelError(
            f"model {model!r}: its tokenizer lacks {len(missing)} of {count} pieces and has {len(foreign)} that are no "
            "bytes; fetch vocab.json, merges.txt and tokenizer.json of the model too"
        )
    return WhisperPieces([bytes(byte_of[letter] for letter in names[number]) for number in range(count)])
