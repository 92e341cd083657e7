"""What is timed: shapes and synthetic text. Nothing here is a trained model, and names say so.

``tiny`` shapes are for a test of the code on a processor; their numbers mean nothing.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

SEED = 1


@dataclass(frozen=True)
class Training:
    """Shape and length of the language model's training."""

    layers: int
    heads: int
    width: int
    words: int
    maximum_tokens: int
    batch_tokens: int
    steps: int
    warm_steps: int
    """Steps before the clock starts: kernels are chosen and compiled in them."""

    def architecture(self, context: str) -> Any:
        from tasks.language_model.settings import ArchitectureSettings

        return ArchitectureSettings.model_validate(
            {
                "layers": self.layers,
                "heads": self.heads,
                "width": self.width,
                "maximum_tokens": self.maximum_tokens,
                "context": context,
            }
        )


def training_workload(tiny: bool) -> Training:
    """The paper's language model (profiles/paper.yaml), or a tiny one."""
    if tiny:
        return Training(2, 2, 32, 500, 32, 256, steps=15, warm_steps=5)
    from pathlib import Path

    from tasks.profiles.profile_command import read_profile

    settings = read_profile("paper", Path(__file__).parents[2]).language_model
    shape = settings.architecture
    return Training(
        shape.layers,
        shape.heads,
        shape.width,
        settings.vocabulary.size,
        shape.maximum_tokens,
        settings.pretraining.batch_tokens,
        steps=60,
        warm_steps=20,
    )


def zipf_text(workload: Training) -> Any:
    """Words by Zipf's law in sentences of 3 to 60 words, about as many as the steps need."""
    from tasks.language_model.encoded_text import EncodedText
    from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID

    generator = np.random.default_rng(SEED)
    first = len(SPECIAL_TOKENS)
    frequencies = 1 / np.arange(1, workload.words - first + 1)
    longest = min(60, workload.maximum_tokens - 2)
    count = workload.steps * workload.batch_tokens // (longest // 2) + 8
    lengths = generator.integers(3, longest + 1, size=count)
    drawn = generator.choice(workload.words - first, size=int(lengths.sum()), p=frequencies / frequencies.sum()) + first
    sentences = np.split(drawn, np.cumsum(lengths)[:-1])
    tokens = np.concatenate([np.concatenate([[START_ID], sentence, [END_ID]]) for sentence in sentences])
    return EncodedText(
        tokens=tokens.astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths + 2)]),
        lines=np.arange(1, count + 1),
        empty_lines=0,
        marker_like=0,
        markers_are_targets=True,
    )


def masked_lines(count: int) -> list[str]:
    """Strings of frequent words with every sixth word masked: 2 to 5 markers each."""
    generator = np.random.default_rng(SEED)
    words = plain_words()
    lines = []
    for _ in range(count):
        chosen = [words[index] for index in generator.integers(0, len(words), size=int(generator.integers(12, 31)))]
        for position in range(int(generator.integers(0, 6)), len(chosen), 6):
            chosen[position] = "[MASK]"
        lines.append(" ".join(chosen))
    return lines


def plain_words() -> list[str]:
    """The 2,000 most frequent English words, in their order."""
    import wordfreq

    return [word for word in wordfreq.top_n_list("en", 2500) if word.isalpha() and word.isascii()][:2000]
