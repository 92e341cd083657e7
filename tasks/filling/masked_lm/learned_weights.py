"""Weights of ``log_linear`` that were learned, kept so that the next fill need not learn them again.

One file holds the three weights and the filler's mean log-probability of each word that it chose from. What comes with
the shipped filler (``weighing.json``) was learned from the generic text of ``params.yaml`` alone, held out from its
training, with a share of its words masked at random; a fill that has other words to choose from takes the averages of
those that it has, renormalised among them. What a fill learns itself is kept in ``learned_weights`` in the work folder,
readable by its owner alone: of generic text, by the word counts, whatever prior the fill has, so that nothing of a
private text is in it. There every fill that learns the same finds it, by one hash of all that it was learned from.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.errors import ModelError
from tasks.files.atomic_file import atomic_writer, make_folder

if TYPE_CHECKING:
    from tasks.filling.context import FillContext
    from tasks.filling.methods.log_linear import LogLinear

_SHIPPED = Path(__file__).with_name("weighing.json")


@dataclass(frozen=True)
class LearnedWeights:
    """What was learned from generic text."""

    weights: dict[str, float]
    """Of ``filler``, ``frequency`` and ``average``."""
    averages: dict[str, float]
    """Word to the log of the filler's mean probability of it, in nats, among all of these words."""
    measured: dict[str, Any]
    """What a report says of how they were learned."""

    def log_averages(self, words: Sequence[str]) -> np.ndarray:
        """``(A,)`` of other words, which share all probability among themselves; of unknown ones it is the median."""
        usual = float(np.median(list(self.averages.values())))
        found = np.array([self.averages.get(word, usual) for word in words], dtype=np.float64)
        return np.asarray(found - np.logaddexp.reduce(found))

    def write(self, path: Path) -> None:
        """Write the file, for the owner alone."""
        make_folder(path.parent, private=True)
        with atomic_writer(path, private=True) as stream:
            json.dump({"weights": self.weights, "averages": self.averages, "measured": self.measured}, stream)

    @classmethod
    def read(cls, path: Path) -> "LearnedWeights":
        """Read the file; ``ModelError`` where it is damaged."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            raise ModelError(f"{str(path)!r} is damaged; remove it, and the weights are learned again") from None


def shipped_weights() -> LearnedWeights:
    """Those of the filler that comes with palimpsest."""
    return LearnedWeights.read(_SHIPPED)


def place_of_weights(context: "FillContext", settings: "LogLinear", words: Sequence[str], counts: np.ndarray) -> Path:
    """Where the weights of a fill are kept; ``words`` and their ``(A,)`` counts: what it chooses from."""
    from tasks.filling.filled_shards import model_state, surroundings
    from tasks.records.stage_report import content_hash

    learned_by = ("order", "merge_markers", "weights", "tuning_places", "tuning_share", "tuning_seed")
    document = {
        "settings": {name: value for name, value in settings.model_dump(mode="json").items() if name in learned_by},
        "tuning_text": content_hash(str(context.files.tuning_text)),
        "kept_words": content_hash(context.files.kept_words) if context.files.kept_words else None,
        "words": hashlib.sha256("\n".join(words).encode()).hexdigest(),
        "counts": hashlib.sha256(counts.astype("<f8").tobytes()).hexdigest(),
        "filler": model_state(context.model.name),
        **surroundings(context),
    }
    key = hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
    return Path(context.work_folder) / "learned_weights" / f"{key}.json"
