"""Which pieces of a causal LM's vocabulary begin, carry on or are words, so that one marker gets one whole word.

A word is one piece or several. It ends where the model would go on with anything but letters and digits. The rules
of what is a word are those of ``candidate_words``; with a word list, a word of several pieces must be on it, since
pieces can be put together to anything.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.corpora.masked_text import MASK
from tasks.corpora.words import fold
from tasks.filling.masked_lm.candidate_words import CandidateWords, candidate_words, continues_word, is_word, space_sign

_CONTINUATION = "##"


@dataclass(frozen=True)
class CausalWords:
    """The pieces of one vocabulary of ``V`` entries."""

    candidates: CandidateWords
    """The words of one piece."""
    begins: tuple[np.ndarray, np.ndarray]
    """``(V,)`` booleans each: begins a word behind a line start or another character, behind a space."""
    whole: tuple[np.ndarray, np.ndarray]
    """``(V,)`` indices into ``candidates`` each, -1 where the piece alone is no word."""
    continues: np.ndarray
    """``(V,)`` booleans: carries on the word of the piece before."""
    tokenizer: Any
    known_words: Collection[str]

    @classmethod
    def of(cls, tokenizer: Any, size: int, *, name: str, known_words: Collection[str] | None = None) -> "CausalWords":
        """``size``: ``V``, which may be more than the tokenizer has; ``known_words``: folded, ``None`` or empty for no
        list."""
        candidates = candidate_words(tokenizer, name=name, known_words=known_words)
        sign = space_sign(tokenizer)
        excluded = {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}
        spaced, glued = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        for piece, entry in tokenizer.get_vocab().items():
            if entry in excluded or piece.startswith(_CONTINUATION):
                continue
            bare = piece.removeprefix(sign) if sign else piece
            # A space alone begins words whose first letter or digit is a piece of its own.
            if bare[:1].isalnum() or (sign and piece == sign):
                (spaced if sign is None or bare != piece else glued)[entry] = True
        whole_spaced, whole_glued = np.full(size, -1), np.full(size, -1)
        whole_spaced[candidates.spaced] = np.arange(len(candidates))
        # Where a word has no entry of its own for a place behind another character, ``glued`` repeats the spaced one.
        own = glued[candidates.glued] | (sign is None)
        whole_glued[candidates.glued[own]] = np.flatnonzero(own)
        for whole in (whole_spaced, whole_glued):
            # What a model copies from its prompt is no substitute.
            whole[[index >= 0 and MASK in candidates.words[index] for index in whole.tolist()]] = -1
        continues = np.zeros(size, dtype=bool)
        continues[continues_word(tokenizer)] = True
        return cls(
            candidates,
            (spaced if sign is None else glued, spaced),
            (whole_glued, whole_spaced),
            continues,
            tokenizer,
            known_words or (),
        )

    def text(self, pieces: Sequence[int]) -> str | None:
        """The word that several pieces make, or ``None`` where they make none."""
        text: str = self.tokenizer.convert_tokens_to_string(self.tokenizer.convert_ids_to_tokens(list(pieces))).strip()
        if not is_word(text) or MASK in text or (self.known_words and fold(text) not in self.known_words):
            return None
        return text
