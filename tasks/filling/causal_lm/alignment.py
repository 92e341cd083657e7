"""Whether a sentence that a model wrote is the masked one with one word for each marker, and which words these are.

Every known character must stand there as it is, white space by any white space. What stands at a marker must be one
word by the rules of ``candidate_words``, and not the marker's own name, which models copy.
"""

from collections.abc import Sequence

import regex

from tasks.corpora.masked_text import MASK
from tasks.filling.masked_lm.candidate_words import is_word

_LONGEST_FILL = 40
_UNFINISHED = "\ufffd"
"""What the first bytes of a character are decoded to."""


class Alignment:
    """Holds texts against one masked sentence."""

    def __init__(self, texts: Sequence[str]) -> None:
        """``texts``: the ``n + 1`` known texts round ``n`` slots."""
        # Not a lazy repetition: with one, regex finds a partial match in any text.
        slot = rf"(\S{{1,{_LONGEST_FILL}}})"
        self._pattern = regex.compile(r"\s*" + slot.join(map(_known, _stripped(texts))) + r"\s*")

    def words(self, text: str) -> list[str] | None:
        """The words at the slots, or ``None`` where the text is another sentence or has no word at a slot."""
        match = self._pattern.fullmatch(text)
        if match is None or not all(is_word(word) and MASK not in word for word in match.groups()):
            return None
        return list(match.groups())

    def is_possible(self, text: str) -> bool:
        """Whether the text can still become the sentence by writing on."""
        return self._pattern.fullmatch(text.rstrip(_UNFINISHED), partial=True) is not None


def _stripped(texts: Sequence[str]) -> list[str]:
    """Without white space at the ends of the line."""
    inside = list(texts)
    inside[0] = inside[0].lstrip()
    inside[-1] = inside[-1].rstrip()
    return inside


def _known(text: str) -> str:
    parts = regex.split(r"\s+", text)
    return r"\s+".join(map(regex.escape, parts))
