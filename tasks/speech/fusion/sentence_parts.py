"""What language models say of unit sequences that a search without them has found."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.speech.fusion.prefix_score import PrefixScore
from tasks.speech.search.predictor_states import PredictorStates
from tasks.speech.search.prefix_tree import ROOT, PrefixTree


def sentence_log_probabilities(
    score: PrefixScore, sequences: Sequence[tuple[int, ...]], model: Any, blank: int
) -> np.ndarray:
    """Log-probability of each sequence of units as a whole sentence (N,), as the search would have it."""
    tree = PrefixTree(blank)
    score.start(tree, PredictorStates(model, blank, tree), model)
    nodes = np.full(len(sequences), ROOT)
    for place in range(max(map(len, sequences), default=0)):
        longer = np.array([index for index, sequence in enumerate(sequences) if len(sequence) > place])
        units = np.array([sequences[index][place] for index in longer.tolist()])
        nodes[longer], before = tree.children(nodes[longer], units)
        if tree.size > before:
            score.extend(before)
        score.retain(nodes)
    return score.finish(nodes)
