"""Randomness that belongs to a marker: the same for a seed, line and marker, whatever else is filled beside it.

A counter-based generator (Philox) is keyed by seed, line number and marker index, so a fill does not depend on batch
size, on the order of filling, or on whether the corpus is filled in one run or in shards. With a secret the key is the
secret's hash of the three, so that nobody else can draw the same (``fill_secret``).
"""

import hashlib
import struct
from dataclasses import dataclass

import numpy as np

from tasks.errors import ParameterError


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
