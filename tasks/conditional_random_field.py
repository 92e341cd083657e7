"""Training of a linear-chain conditional random field (Lafferty, McCallum, Pereira 2001) by CRFsuite."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


def train(
    path: str | Path,
    sentences: Iterable[Sequence[Sequence[str]]],
    labels: Iterable[Sequence[str]],
    *,
    iterations: int,
    absolute: float,
    squared: float,
    least_count: int = 0,
) -> list[dict[str, Any]]:
    """Train by L-BFGS and write the model; return the log of each iteration.

    ``sentences`` has the features of each token. ``absolute`` and ``squared`` weigh the sums of absolute and of squared
    feature weights. Features with fewer than ``least_count`` occurrences are left out.
    """
    import pycrfsuite

    parameters = {
        "max_iterations": iterations,
        "c1": absolute,
        "c2": squared,
        "feature.minfreq": least_count,
        "feature.possible_transitions": True,
    }
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params=parameters, verbose=False)
    for features, of_sentence in zip(sentences, labels, strict=True):
        trainer.append(features, of_sentence)
    trainer.train(str(path))
    return list(trainer.logparser.iterations)
