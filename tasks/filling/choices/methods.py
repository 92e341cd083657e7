"""Which filling method belongs to which settings."""

from typing import TYPE_CHECKING

import numpy as np

from tasks.errors import ParameterError
from tasks.filling.choices.choice import Choice, HidingChoice
from tasks.filling.choices.sample import DrawOffList
from tasks.filling.choices.top_1 import BestWord
from tasks.filling.choices.top_k import OneOfTheBest
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.settings import LogLinear, Sample, Top1, TopK

if TYPE_CHECKING:
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
            return DrawLogLinear(learned.scores, learned.allowed, randomness)


def _learned(settings: LogLinear, prepared: "PreparedWeighing | None") -> "PreparedWeighing":
    if prepared is None:
        raise ParameterError(
            f"method {settings.kind!r} learns its weights before it fills, which 'palimpsest fill' alone does; use "
            "top_1, top_k or sample here"
        )
    return prepared
