"""The prompts of the paper (3.2): an instruction, the sentence with [MASK] as input, and the sentence as output.

The parts are encoded one by one and put together, in training as in filling, so both have the same pieces.
"""

from collections.abc import Sequence

from tasks.corpora.masked_text import MASK
from tasks.filling.causal_lm.language_model import CausalLanguageModel

INSTRUCTION = "Predict the [MASK] tokens in the given sentence"
"""The paper's own words."""
MARKER = f"[{MASK}]"
_MIDDLE = "\nOutput:\n"


class CausalPrompt:
    """Makes prompts for one model."""

    def __init__(self, language_model: CausalLanguageModel, instruction: str | None) -> None:
        """``instruction``: ``None`` for a model that is not tuned on prompts, which then sees only what stands to the
        left."""
        self._language_model = language_model
        self.prompts = instruction is not None
        head = language_model.encode([f"{instruction}\nInput:"])[0] if instruction is not None else []
        self.head: list[int] = [*language_model.start, *head, *language_model.anchor] or [language_model.padding]
        """What every sentence begins with; never nothing."""
        self._middle: list[int] = language_model.encode([_MIDDLE])[0] if self.prompts else []
        self.end: list[int] = [language_model.end] if self.prompts and language_model.end is not None else []
        """What stands behind the output."""

    def inputs(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """What stands between the head and the output, for sentences of ``n + 1`` texts round ``n`` slots."""
        if not self.prompts:
            return [[] for _ in sentences]
        encoded = self._language_model.encode([MARKER.join(texts) for texts in sentences])
        return [pieces + self._middle for pieces in encoded]
