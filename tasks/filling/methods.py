"""Which filling method belongs to which settings."""

import numpy as np

from tasks.filling.choice import Choice
from tasks.filling.marker_randomness import MarkerRandomness
from tasks.filling.sample import DrawOffList
from tasks.filling.settings import Sample, Top1, TopK
from tasks.filling.top_1 import BestWord
from tasks.filling.top_k import OneOfTheBest


def choice_of(settings: Top1 | TopK | Sample, off_list: np.ndarray, randomness: MarkerRandomness) -> Choice:
    """The method of a ``filling`` section; ``off_list``: ``(W,)`` which candidate words are not kept words."""
    match settings:
        case Top1():
            return BestWord()
        case TopK():
            return OneOfTheBest(settings.k, off_list, randomness)
        case Sample():
            return DrawOffList(settings.temperature, off_list, randomness)
