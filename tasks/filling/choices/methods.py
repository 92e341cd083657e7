"""Which filling method belongs to which settings."""

import numpy as np

from tasks.filling.choices.choice import Choice
from tasks.filling.choices.sample import DrawOffList
from tasks.filling.choices.top_1 import BestWord
from tasks.filling.choices.top_k import OneOfTheBest
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.settings import Sample, Top1, TopK


def choice_of(settings: Top1 | TopK | Sample, off_list: np.ndarray, randomness: MarkerRandomness) -> Choice:
    """The method of a ``filling`` section; ``off_list``: ``(W,)`` which candidate words are not kept words."""
    match settings:
        case Top1():
            return BestWord()
        case TopK():
            return OneOfTheBest(settings.k, off_list, randomness)
        case Sample():
            return DrawOffList(settings.temperature, off_list, randomness)
