"""What the trainings of fillers have in common: what a report says of them, and their text.

The text that a filler is fine-tuned on: in-domain, without any private original, and less what is held out.

A masked corpus gives two kinds of text (paper 3.2): the sentences without any marker, or the whole corpus with its
markers filled by the filler as it is. What is held out is the same in both, in every round and with every seed, and is
shown to the model as the masked corpus has it, markers as mask tokens: only words that were never masked are guessed,
and no fill helps. Sentences that are equal to a held-out one in the masked corpus are not trained on either; corpora of
``palimpsest corpora`` have hardly any, since that leaves repeats out.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.corpora.masked_text import count_markers, unescape
from tasks.errors import CorpusError
from tasks.filling.fillers.settings import Tuning
from tasks.filling.masked_sentence import MaskedSentence, read_masked_line

_CURVE_POINTS = 40
BETAS = (0.9, 0.98)
"""Of AdamW."""


def loss_curve(losses: Sequence[float]) -> list[dict[str, float]]:
    """Mean loss of each of at most 40 stretches of steps."""
    size = math.ceil(len(losses) / _CURVE_POINTS)
    stretches = [losses[start : start + size] for start in range(0, len(losses), size)]
    return [
        {"step": min((index + 1) * size, len(losses)), "loss": round(sum(stretch) / len(stretch), 4)}
        for index, stretch in enumerate(stretches)
    ]


def before_and_after(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> dict[str, Any]:
    """Held-out numbers of a base and of what was tuned from it, as a report has them: ``base_held_out_loss`` beside
    ``held_out_loss``; both losses ``None`` where there was nothing to test on."""
    if before is None or after is None:
        return {"base_held_out_loss": None, "held_out_loss": None}
    counts = {name for name in after if name.endswith("words")}
    named = {f"base_{_held_out(name)}": value for name, value in before.items() if name not in counts}
    return named | {_held_out(name): value for name, value in after.items()}


def _held_out(name: str) -> str:
    return name.replace("valid_", "held_out_", 1)


_HELD_OUT_SEED = 1
_MOST_HELD_OUT_TESTED = 2000
"""A test of so many sentences is exact enough; more may be held out."""


@dataclass(frozen=True)
class TuningText:
    """What to train on and what to test on."""

    lines: list[str]
    """Training text, unescaped, one sentence each."""
    held_out: list[MaskedSentence]
    """Sentences to test on, with slots where the corpus has markers."""
    measured: dict[str, Any]
    """Counts for the report."""


def tuning_text(
    masked: Sequence[str], settings: Tuning, fill: Callable[[], tuple[list[str], dict[str, Any]]]
) -> TuningText:
    """Divide a masked corpus; ``fill`` gives the filled lines and what was measured, and is called where they are used.

    ``settings``: of ``tuned_fillers``. Raises ``CorpusError`` where fewer sentences are left to train on than
    ``minimum_sentences``.
    """
    numbers = [number for number, line in enumerate(masked) if line.strip()]
    order = np.random.default_rng(_HELD_OUT_SEED).permutation(len(numbers)).tolist()
    aside = [numbers[index] for index in order[: max(1, round(settings.held_out_share * len(numbers)))]]
    held_out = set(aside)
    told = {masked[number] for number in aside}
    others = [number for number in numbers if number not in held_out]
    # What is told twice would be held out in name alone.
    training = [number for number in others if masked[number] not in told]
    repeats = len(others) - len(training)
    unmarked = [number for number in training if not count_markers(masked[number])]
    chosen = unmarked if settings.text == "unmasked" else training
    if len(chosen) < settings.minimum_sentences:
        raise CorpusError(_too_few(len(chosen), len(training), repeats, settings))
    measured: dict[str, Any] = {
        "corpus_sentences": len(numbers),
        "held_out_sentences": len(held_out),
        "held_out_repeats": repeats,
        "training_sentences": len(chosen),
        "sentences_with_markers_left_out": len(training) - len(chosen),
    }
    if settings.text == "filled":
        filled, of_the_fill = fill()
        measured |= of_the_fill
        lines = [filled[number] for number in chosen]
    else:
        lines = [unescape(masked[number]) for number in chosen]
    tested = sorted(aside[:_MOST_HELD_OUT_TESTED])
    sentences = [read_masked_line(masked[number], number + 1, merge_markers=True) for number in tested]
    return TuningText(lines, sentences, measured)


def _too_few(found: int, of: int, repeats: int, settings: Tuning) -> str:
    least = f"fewer than minimum_sentences={settings.minimum_sentences!r}"
    if repeats:
        least += f" ({repeats} more are equal to sentences that are held out)"
    if settings.text == "filled":
        return f"there are {found} sentences to train on, {least}; take a larger corpus, or lower minimum_sentences"
    return (
        f"{found} of the {of} sentences to train on have no marker, {least}; set text: filled (--set text=filled), "
        "which fills the whole corpus first, or lower minimum_sentences"
    )
