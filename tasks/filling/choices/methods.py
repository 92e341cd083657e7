"""Which filling method belongs to which settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.errors import ParameterError
from tasks.filling.choices.choice import Choice, HidingChoice
from tasks.filling.choices.sample import DrawOffList
from tasks.filling.choices.top_1 import BestWord
from tasks.filling.choices.top_k import OneOfTheBest
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.settings import Downstream, LogLinear, Sample, Top1, TopK

if TYPE_CHECKING:
    from tasks.filling.choices.downstream import ChooseDownstream
    from tasks.filling.log_linear.preparation import PreparedWeighing


def choice_of(
    settings: Top1 | TopK | Sample | LogLinear,
    off_list: np.ndarray,
    randomness: MarkerRandomness,
    prepared: "PreparedWeighing | None" = None,
) -> Choice:
    """The method of a ``filling`` section; ``off_list``: ``(W,)`` which candidate words are not kept words.

    ``prepared``: what ``log_linear`` learned; ``ParameterError`` where it was not prepared.
    """
    match settings:
        case Top1():
            return BestWord()
        case TopK():
            return OneOfTheBest(settings.k, off_list, randomness)
        case _:
            return hiding_choice_of(settings, off_list, randomness, prepared)


def hiding_choice_of(
    settings: Sample | LogLinear,
    off_list: np.ndarray,
    randomness: MarkerRandomness,
    prepared: "PreparedWeighing | None" = None,
) -> HidingChoice:
    """The same for the methods that can hide which word they keep clear of."""
    match settings:
        case Sample():
            return DrawOffList(settings.temperature, off_list, randomness)
        case LogLinear():
            from tasks.filling.choices.log_linear import DrawLogLinear

            learned = _learned(settings, prepared)
            return DrawLogLinear(learned.weighing.proposal, learned.allowed, randomness)


def downstream_choice(
    settings: Downstream,
    words: Sequence[str],
    frequencies: WordFrequencies,
    language_model: str | Path,
    randomness: MarkerRandomness,
    prepared: "PreparedWeighing | None",
) -> "ChooseDownstream":
    """The method ``downstream``; ``words``: the ``W`` that the filler can write, ``language_model``: its folder."""
    from tasks.filling.choices.downstream import ChooseDownstream
    from tasks.filling.log_linear.downstream_scores import DownstreamScores

    learned = _learned(settings, prepared)
    return ChooseDownstream(
        learned.weighing,
        words,
        learned.allowed,
        randomness,
        DownstreamScores(language_model, frequencies, settings.following_words),
        k=settings.k,
        choose=settings.choose,
    )


def _learned(settings: LogLinear | Downstream, prepared: "PreparedWeighing | None") -> "PreparedWeighing":
    if prepared is None:
        raise ParameterError(
            f"method {settings.kind!r} learns its weights before it fills, which 'palimpsest fill' alone does; use "
            "top_1, top_k or sample here"
        )
    return prepared
