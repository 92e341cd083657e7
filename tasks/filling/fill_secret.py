"""A secret for chance that must not be drawn again by others: where a fill keeps clear of the words that were masked.

Seeds are public: they stand in ``params.yaml`` and in reports. Whoever has the masked text, the filler and the seed can
fill the text once more without the sidecar; wherever that gives another word than the published fill, the word that was
avoided, the masked one, is the one it gives. So what is drawn there comes from the seed and from the masked words
themselves, by HMAC-SHA256 of the sidecar: the same text and parameters give the same fill everywhere, and nobody
without the sidecar can repeat the draws. *Who knows all masked words of a corpus but a few can try these few out.*
Fills with noisy counts, which promise to withstand that, read no sidecar when they draw.
"""

import hmac
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError

_KEY = b"palimpsest: draws of a fill"
_BLOCK = 1 << 20


def draws_from_secret(settings: Any) -> bool:
    """Whether fills by these settings depend on the masked words that a sidecar tells: keep clear of them, or follow
    their form as surrogates do."""
    return bool(settings.forbid_original or settings.kind == "surrogate" or settings.classes == "match")


def fill_secret(sidecar: str | Path) -> bytes:
    """32 bytes of what was masked; ``CorpusError`` where the sidecar does not exist or is a folder."""
    digest = hmac.new(_KEY, digestmod="sha256")
    try:
        with open(sidecar, "rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    except (FileNotFoundError, NotADirectoryError):
        raise CorpusError(f"sidecar {str(sidecar)!r} does not exist; give the one of the masked text") from None
    except IsADirectoryError:
        raise CorpusError(f"sidecar {str(sidecar)!r} is a folder; give the file of the masked text") from None
    return digest.digest()
