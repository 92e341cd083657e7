"""Randomness of a marker by seed, line and marker, and the secret for fills that follow the masked words.

A counter-based generator (Philox) is keyed by seed, line number and marker index. So a fill does not depend on the
batch size, the order of filling, or the division of the corpus.

Fills that follow the masked words need a secret, since seeds are public: an attacker could try out which original gives
the published word. Their key is an HMAC-SHA256 of the sidecar, so nobody without the sidecar can repeat the draws. *An
attacker who knows all masked words of a corpus except a few can test these few.* Fills with noisy counts protect
against this attack, so their draws do not use the sidecar.
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
    """Random generators of one seed."""

    def __init__(self, seed: int, secret: bytes = b"") -> None:
        """``secret``: at most 64 bytes, needed to repeat the draws; empty for draws by the seed alone."""
        if not 0 <= seed < 2**63:
            raise ParameterError(f"seed {seed!r} is not allowed; use a whole number from 0 to 2**63 - 1")
        self._seed, self._secret = seed, secret
        self.key = secret + str(seed).encode()
        """Key for draws by a word instead of a place."""

    def at(self, place: Place, *, stream: int = 0, step: int = 0) -> np.random.Generator:
        """The generator of one slot; other values of ``stream`` and ``step`` (below 2**64) give independent ones."""
        key = np.array([self._seed, (place.line << 32) + place.marker], dtype=np.uint64)
        if self._secret:
            packed = struct.pack("<3Q", self._seed, place.line, place.marker)
            key = np.frombuffer(hashlib.blake2b(packed, digest_size=16, key=self._secret).digest(), dtype=np.uint64)
        bits = np.random.Philox(key=key)
        if stream:
            bits = bits.jumped(stream)
        return np.random.Generator(bits.advance(step << 64) if step else bits)


def fill_secret(sidecar: str | Path) -> bytes:
    """32 bytes derived from the masked words of a sidecar. Raises as ``read_lines``."""
    digest = hmac.new(_KEY, digestmod="sha256")
    for line in read_lines(sidecar, "sidecar"):
        digest.update(f"{line}\n".encode())
    return digest.digest()
