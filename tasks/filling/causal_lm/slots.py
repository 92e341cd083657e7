"""A masked sentence as a causal LM's pieces: what is known before, between and behind its slots."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.filling.causal_lm.language_model import CausalLanguageModel
from tasks.filling.masked_sentence import MaskedSentence

_WORD = re.compile(r"\s*\S+")


@dataclass(frozen=True)
class EncodedSentence:
    """A sentence with ``n`` slots and the pieces of its ``n + 1`` known texts.

    The space before a slot belongs to the word that will stand there, as in every vocabulary that has signs for
    spaces.
    """

    sentence: MaskedSentence
    known: list[list[int]]
    """Pieces of each text, without the space before a slot."""
    spaced: list[bool]
    """Whether a space stands before each slot."""
    following: list[list[int]]
    """Pieces of the first known words behind each slot."""
    input: list[int]
    """What stands between the prompt's head and the output."""

    @property
    def length(self) -> int:
        """Pieces of the input and all known texts."""
        return len(self.input) + sum(map(len, self.known))


def encode_sentences(
    language_model: CausalLanguageModel,
    sentences: Sequence[MaskedSentence],
    inputs: Sequence[list[int]],
    *,
    following_words: int,
) -> list[EncodedSentence]:
    """Encode sentences in one go; ``following_words``: how many known words behind each slot."""
    texts: list[str] = []
    for sentence in sentences:
        bare = [_without_space(text) for text in sentence.texts[:-1]] + [sentence.texts[-1]]
        texts += bare
        texts += ["".join(_WORD.findall(text)[:following_words]) for text in bare[1:]]
    pieces = iter(language_model.encode(texts))
    encoded = []
    for sentence, given in zip(sentences, inputs, strict=True):
        slots = len(sentence.slots)
        known = [next(pieces) for _ in range(slots + 1)]
        following = [next(pieces) for _ in range(slots)]
        spaced = [text.endswith(" ") for text in sentence.texts[:-1]]
        encoded.append(EncodedSentence(sentence, known, spaced, following, given))
    return encoded


def _without_space(text: str) -> str:
    return text[:-1] if text.endswith(" ") else text
