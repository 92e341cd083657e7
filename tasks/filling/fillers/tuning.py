"""Text for fine-tuning a filler, and figures of its training for reports.

Training text is the sentences without any marker, or the whole corpus, filled by the base (paper 3.2). The held-out
sentences are the same for both, in every round and with every seed. The model sees them masked, with mask tokens at the
markers. So it guesses only words that were never masked, and no fill helps.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tasks.corpora.masked_text import count_markers, unescape
from tasks.errors import CorpusError
from tasks.filling.fillers.settings import Tuning
from tasks.filling.masked_sentence import MaskedSentence, read_masked_line

Item = TypeVar("Item")
BETAS = (0.9, 0.98)
"""Betas of AdamW."""


def endless(
    items: Sequence[Item], pool: int, divided: Callable[[list[Item]], list[list[Item]]], random: np.random.Generator
) -> Iterator[list[Item]]:
    """Endless batches in random order; every item occurs once per epoch. ``divided`` makes batches of similar length
    from ``pool`` random items."""
    while True:
        order = random.permutation(len(items))
        for start in range(0, len(order), pool):
            batches = divided([items[index] for index in order[start : start + pool]])
            for index in random.permutation(len(batches)):
                yield batches[index]


def before_and_after(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> dict[str, Any]:
    """Held-out figures of a base and of the filler tuned from it, for a report: ``base_held_out_loss`` and
    ``held_out_loss``, for example. Both losses are ``None`` if there was no text for the test."""
    if before is None or after is None:
        return {"base_held_out_loss": None, "held_out_loss": None}
    counts = {name for name in after if name.endswith("words")}
    named = {f"base_{_held_out(name)}": value for name, value in before.items() if name not in counts}
    return named | {_held_out(name): value for name, value in after.items()}


def _held_out(name: str) -> str:
    return name.replace("valid_", "held_out_", 1)


_HELD_OUT_SEED = 1
_MOST_HELD_OUT_TESTED = 2000
"""Maximum number of tested sentences, enough for an exact test; more may be held out."""


@dataclass(frozen=True)
class TuningText:
    """Training text and test sentences."""

    lines: list[str]
    """Training text, unescaped, one sentence each."""
    held_out: list[MaskedSentence]
    """Sentences to test on, with slots at the markers of the corpus."""
    measured: dict[str, Any]
    """Counts for the report."""


def tuning_text(
    masked: Sequence[str], settings: Tuning, fill: Callable[[], tuple[list[str], dict[str, Any]]]
) -> TuningText:
    """Divide a masked corpus. ``fill`` returns the filled lines and their figures; it is called only if they are used.

    ``settings``: an entry of ``tuned_fillers``. Raises ``CorpusError`` if fewer sentences than ``minimum_sentences``
    are left to train on.
    """
    numbers = [number for number, line in enumerate(masked) if line.strip()]
    order = np.random.default_rng(_HELD_OUT_SEED).permutation(len(numbers)).tolist()
    held_out_numbers = [numbers[index] for index in order[: max(1, round(settings.held_out_share * len(numbers)))]]
    held_out = set(held_out_numbers)
    held_out_lines = {masked[number] for number in held_out_numbers}
    others = [number for number in numbers if number not in held_out]
    # Duplicates of held-out lines would be trained on.
    training = [number for number in others if masked[number] not in held_out_lines]
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
    tested = sorted(held_out_numbers[:_MOST_HELD_OUT_TESTED])
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
