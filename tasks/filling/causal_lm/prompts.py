"""Prompts of the paper (3.2) for a causal LM, and sentences as pieces.

A prompt has an instruction, the sentence with [MASK] as input, and the sentence as output. Training and filling encode
the parts separately and concatenate them, so both have the same pieces.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.corpora.masked_text import MASK
from tasks.filling.masked_sentence import MaskedSentence

if TYPE_CHECKING:
    from tasks.filling.causal_lm.language_model import CausalLanguageModel

INSTRUCTION = "Predict the [MASK] tokens in the given sentence"
"""Instruction of the paper (3.2), verbatim."""
MARKER = f"[{MASK}]"
_MIDDLE = "\nOutput:\n"
_ANY_WORD = re.compile(r"\s*\S+")


class CausalPrompt:
    """Makes the prompts for one model."""

    def __init__(self, language_model: "CausalLanguageModel", instruction: str | None) -> None:
        """``instruction``: ``None`` for a model that is not tuned on prompts; it then sees only the left context."""
        self._language_model, self._prompts = language_model, instruction is not None
        head, self._middle = language_model.encode([f"{instruction}\nInput:", _MIDDLE]) if self._prompts else ([], [])
        self.head: list[int] = [*language_model.start, *head, *language_model.anchor] or [language_model.padding]
        """First pieces of every prompt; never empty."""
        self.end: list[int] = [language_model.end] if self._prompts and language_model.end is not None else []
        """Pieces after the output."""

    def inputs(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """The pieces between the head and the output, for sentences of ``n + 1`` texts around ``n`` slots."""
        if not self._prompts:
            return [[] for _ in sentences]
        return [pieces + self._middle for pieces in self._language_model.encode(list(map(MARKER.join, sentences)))]


@dataclass(frozen=True)
class EncodedSentence:
    """A sentence with ``n`` slots and the pieces of its ``n + 1`` known texts.

    The space before a slot belongs to the word of the slot, as in every vocabulary that has signs for spaces.
    """

    sentence: MaskedSentence
    known: list[list[int]]
    """Pieces of each text, without the space before a slot."""
    spaced: list[bool]
    """Whether there is a space before each slot."""
    following: list[list[int]]
    """Pieces of the first known words after each slot."""
    input: list[int]
    """Pieces between the prompt's head and the output."""

    @property
    def length(self) -> int:
        """Number of pieces of the input and all known texts."""
        return len(self.input) + sum(map(len, self.known))


def encode_sentences(
    language_model: "CausalLanguageModel",
    prompt: CausalPrompt,
    sentences: Sequence[MaskedSentence],
    *,
    following_words: int,
) -> list[EncodedSentence]:
    """Encode sentences in one call; ``following_words``: number of known words after each slot."""
    inputs = prompt.inputs([sentence.texts for sentence in sentences])
    texts: list[str] = []
    for sentence in sentences:
        bare = [text.removesuffix(" ") for text in sentence.texts[:-1]] + [sentence.texts[-1]]
        texts += bare
        texts += ["".join(_ANY_WORD.findall(text)[:following_words]) for text in bare[1:]]
    pieces = iter(language_model.encode(texts))
    encoded = []
    for sentence, given in zip(sentences, inputs, strict=True):
        known, following = ([next(pieces) for _ in range(len(sentence.slots) + one)] for one in (1, 0))
        if following_words and following and following[-1] == known[-1]:
            # A model that was tuned on prompts marks the end of a sentence.
            following[-1] = following[-1] + prompt.end
        spaced = [text.endswith(" ") for text in sentence.texts[:-1]]
        encoded.append(EncodedSentence(sentence, known, spaced, following, given))
    return encoded
