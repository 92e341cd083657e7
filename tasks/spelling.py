"""The nearest allowed spelling of a word."""

import difflib
from collections.abc import Iterable


def nearest(word: str, allowed: Iterable[str]) -> str:
    """``" (did you mean 'top_k'?)"`` if an allowed word is near, else the empty string."""
    matches = difflib.get_close_matches(word, list(allowed), n=1, cutoff=0.6)
    return f" (did you mean {matches[0]!r}?)" if matches else ""
