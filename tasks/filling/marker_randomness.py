"""Randomness that belongs to a marker: the same for a seed, line and marker, whatever else is filled beside it.

A counter-based generator (Philox) is keyed by seed, line number and marker index, so a fill does not depend on batch
size, on the order of filling, or on whether the corpus is filled in one run or in shards. With a secret the key is the
secret's hash of the three, so that nobody else can draw the same.

A secret for chance that must not be drawn again by others: where a fill keeps clear of the words that were masked.

Seeds are public: they stand in ``params.yaml`` and in reports. Whoever has the masked text, the filler and the seed can
fill the text once more without the sidecar; wherever that gives another word than the published fill, the word that was
avoided, the masked one, is the one it gives. So what is drawn there comes from the seed and from the masked words
themselves, by HMAC-SHA256 of the sidecar: the same text and parameters give the same fill everywhere, and nobody
without the sidecar can repeat the draws. *Who knows all masked words of a corpus but a few can try these few out.*
Fills with noisy counts, which promise to withstand that, read no sidecar when they draw.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import read_lines
from tasks.errors import ParameterError

_KEY = b"palimpsest: draws of a fill"


@dataclass(frozen=True, slots=True)
class Place:
    """A slot in the corpus: line number (from 1) and index of its first marker (from 0)."""

    line: int
    marker: int


class MarkerRandomness:
    """Generators of one seed."""

    def __init__(self, seed: int, secret: bytes = b"") -> None:
        """``secret``: at most 64 bytes, without which the draws cannot be repeated; empty: by the seed alone."""
        if not 0 <= seed < 2**63:
            raise ParameterError(f"seed {seed!r} is not allowed; use a whole number from 0 to 2**63 - 1")
        self._seed, self._secret = seed, secret
        self.key = secret + str(seed).encode()
        """For what is drawn by a word instead of a place."""

    def at(self, place: Place, *, stream: int = 0, step: int = 0) -> np.random.Generator:
        """The generator of one slot; ``stream`` and ``step`` (below 2**64) give others that have nothing in common
        with it."""
        key = np.array([self._seed, (place.line << 32) + place.marker], dtype=np.uint64)
        if self._secret:
            packed = struct.pack("<3Q", self._seed, place.line, place.marker)
            key = np.frombuffer(hashlib.blake2b(packed, digest_size=16, key=self._secret).digest(), dtype=np.uint64)
        bits = np.random.Philox(key=key)
        if stream:
            bits = bits.jumped(stream)
        return np.random.Generator(bits.advance(step << 64) if step else bits)


def fill_secret(sidecar: str | Path) -> bytes:
    """32 bytes of what was masked; raises what ``read_lines`` does."""
    digest = hmac.new(_KEY, digestmod="sha256")
    for line in read_lines(sidecar, "sidecar"):
        digest.update(f"{line}\n".encode())
    return digest.digest()
