"""Scoring the references of canaries: speed against a plain loop over sentences.

Ours is ``LanguageModel.score_sentences`` as the audit calls it, on sentences of one form, whose first words are read
once. The peer is a model of transformers with the same weights, one sentence at a time, as attacks on language models
are usually written; its token ids are ready before the clock starts. Both multiply in float32. Processor time on one
thread, in alternating turns; the model has the size of the default experiment's.
"""

from typing import Any

import numpy as np

from benchmarks.language_model_workload import Workload
from benchmarks.rescoring_speed import word_sides
from benchmarks.turns import compared, row

REFERENCES, FORM, DRAWN = 2047, 5, 3
"""Sentences of a form, its fixed words, and its drawn ones."""
ROUNDS = 3
TARGET, TARGET_SPEED = 5.0, 3000
_SAME = 1e-4


def references(words: list[str]) -> list[list[tuple[str, ...]]]:
    """Sentences of one form, each with drawn words behind the same beginning."""
    generator = np.random.default_rng(1)
    drawn = generator.choice(2000, size=(REFERENCES, DRAWN))
    beginning = tuple(words[:FORM])
    return [list(dict.fromkeys(beginning + tuple(words[place] for place in places) for places in drawn.tolist()))]


def run() -> list[dict[str, Any]]:
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    ours, _, single = word_sides(Workload(20_000, 128, 100), references)
    scores, expected = ours(), single()
    relative = float(np.abs(scores[0] / expected[0] - 1).max())
    our_seconds, peer_seconds, ratio = compared(ROUNDS, ours, single)
    speed, peer_speed = (round(len(scores[0]) / seconds) for seconds in (our_seconds, peer_seconds))
    name = "references of canaries scored by a word Transformer"
    faster = row(
        f"{name} against one sentence at a time",
        speed,
        peer_speed,
        "sentences/s",
        round(ratio, 2),
        f">= {TARGET}",
        ratio >= TARGET,
    )
    return [
        faster,
        row(f"{name}, a core", speed, None, "sentences/s", None, f">= {TARGET_SPEED}", speed >= TARGET_SPEED),
        row(f"{name}, largest difference", round(relative, 8), None, "relative", None, f"< {_SAME}", relative < _SAME),
    ]
