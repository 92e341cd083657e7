"""Estimation for ``log_linear``: a filler's mean probabilities, matched frequencies, and files of averages.

**Mean probabilities.** The filler's prior of a word is its mean probability over masked places of generic text.

**Matched frequencies.** With counted words (``prior: counted``), the fills must have the counted frequencies f(g) of
single words or of groups. Consider all distributions p(w | x) whose mean over the places has these frequencies. The one
nearest to the filler's q(w | x), by the sum of KL(p || q) over the places, is q(w | x) m(g), normalised at each place
(Csiszar 1975, "I-divergence geometry", section 3). Iterative proportional fitting finds the m (Deming and Stephan
1940). Without it, likely words are written too often: in 4,000 lines, 14 to 27 % of all fills had to change group.

**Files.** One file stores the filler's mean log-probability of each candidate, for later fills. The file of the shipped
filler (``weighing.json``) is of the generic text of ``params.yaml`` alone, with a random share of masked words. This
text was held out from its training. A fill with other candidates renormalises the averages of its words. The averages
of other fillers are in ``averages`` in the work folder, readable only by its owner. They come from generic text and the
technique's list, so they contain nothing of a private text. The file name is a hash of all inputs, so an equal fill
finds the file.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.files.atomic_file import atomic_writer, make_folder

if TYPE_CHECKING:
    from tasks.filling.methods.log_linear import LogLinear
    from tasks.filling.opened_filler import OpenedFiller
    from tasks.filling.prepared_fill import Corpus

_ROWS = 256
_MATCHING_STEPS = 50
_CLOSE_ENOUGH = 0.005
_LARGEST_FACTOR = 20.0
"""Maximum change of a multiplier in one step, so that the multiplier of a word unlikely at all places cannot jump."""


def mean_probabilities(log_scores: np.ndarray) -> np.ndarray:
    """``(W,)`` float64: mean probabilities over ``N`` places, from log-probabilities ``(N, W)`` up to a constant in
    each row."""
    return _mean(_rows(log_scores), log_scores.shape[1], len(log_scores))


def match_frequencies(
    log_scores: np.ndarray, groups: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, dict[str, float | int]]:
    """``(W,)`` float64 logs of multipliers m for probabilities proportional to exp(score) * m, and report figures.

    The mean of the probabilities over places, summed over the words of each group, is then ``wanted``.
    ``log_scores``: ``(N, W)`` float32, at least one place; ``groups``: ``(W,)`` from 0; ``wanted``: ``(G,)`` float64,
    all above 0, sum 1. Ends when the total variation distance is at most 0.005, or after 50 steps. The
    figures have this distance without and with the multipliers: the share of all fills that would change group.
    """

    def found(log_multipliers: np.ndarray) -> np.ndarray:
        mean = _mean((rows + log_multipliers for rows in _rows(log_scores)), len(groups), len(log_scores))
        return np.bincount(groups, weights=mean, minlength=len(wanted))

    log_multipliers = np.zeros(len(groups))
    largest = np.log(_LARGEST_FACTOR)
    distances: list[float] = []
    while True:
        shares = found(log_multipliers)
        distances.append(float(np.abs(shares - wanted).sum() / 2))
        if distances[-1] <= _CLOSE_ENOUGH or len(distances) > _MATCHING_STEPS:
            break
        change = np.log(wanted) - np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        log_multipliers += np.clip(change, -largest, largest)[groups]
    return log_multipliers, {
        "groups": len(wanted),
        "distance_before": distances[0],
        "distance": distances[-1],
        "steps": len(distances) - 1,
    }


def _rows(log_scores: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(log_scores), _ROWS):
        yield log_scores[first : first + _ROWS].astype(np.float64)


def _mean(parts: Iterable[np.ndarray], width: int, number: int) -> np.ndarray:
    total = np.zeros(width)
    for part in parts:
        chances = np.exp(part - part.max(axis=1, keepdims=True))
        total += (chances / chances.sum(axis=1, keepdims=True)).sum(axis=0)
    return total / number


_SHIPPED = Path(__file__).with_name("weighing.json")


@dataclass(frozen=True)
class FillerAverages:
    """A filler's mean probabilities over masked places of generic text."""

    averages: dict[str, float]
    """From word to the log of the mean probability, in nats, normalised over these words."""
    measured: dict[str, Any]
    """Figures of the places for a report."""

    def of(self, words: Sequence[str]) -> np.ndarray:
        """``(A,)`` averages of other words, normalised over them. Unknown words have the median."""
        usual = float(np.median(list(self.averages.values())))
        found = np.array([self.averages.get(word, usual) for word in words], dtype=np.float64)
        return np.asarray(found - np.logaddexp.reduce(found))

    def write(self, path: Path) -> None:
        """Write the file, readable only by its owner."""
        make_folder(path.parent, private=True)
        with atomic_writer(path, private=True) as stream:
            json.dump(asdict(self), stream)

    @classmethod
    def read(cls, path: Path) -> "FillerAverages":
        """Read the file."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def shipped_averages() -> FillerAverages:
    """Averages of the filler that ships with palimpsest."""
    return FillerAverages.read(_SHIPPED)


def place_of_averages(opened: "OpenedFiller", corpus: "Corpus", settings: "LogLinear", words: Sequence[str]) -> Path:
    """The file for the averages of a fill with the candidates ``words``."""
    from tasks.records.stage_report import content_hash
    from tasks.surroundings import model_state, surroundings

    document = {
        "settings": [settings.tuning_places, settings.tuning_share, settings.tuning_seed],
        "tuning_text": content_hash(str(corpus.files.tuning_text)),
        "allowed_words": content_hash(corpus.files.allowed_words) if corpus.files.allowed_words else None,
        "words": hashlib.sha256("\n".join(words).encode()).hexdigest(),
        "filler": model_state(opened.name),
        **surroundings(opened.threads, uses_model=bool(corpus.files.filler)),
    }
    key = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return Path(corpus.work_folder) / "averages" / f"{key}.json"
