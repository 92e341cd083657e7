"""A conditional random field (Lafferty, McCallum, Pereira 2001) as tagger; ``palimpsest train-tagger`` makes one.

The probability of a word is one minus its marginal probability of the class outside. The model's folder holds
``model.crfsuite`` and ``clusters.tsv``; a line of the latter is a folded word and its cluster features.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tasks.masking.settings import CrfTagger
from tasks.masking.taggers.crf_features import VERSION, CrfFeatures, Token, tokens_of
from tasks.masking.taggers.crf_weights import CrfWeights
from tasks.masking.taggers.tagger import WordTagger
from tasks.masking.taggers.tagger_folder import write_tagger_folder

MODEL_FILE, CLUSTERS_FILE = "model.crfsuite", "clusters.tsv"
OUTSIDE = "O"
_MOST_GROUPS = 1 << 17
"""Groups of features whose weights are added once: those of 26,000 words."""


def write_crf_folder(
    path: str | Path, model: Path, clusters: Mapping[str, tuple[str, ...]], entity_types: Sequence[str]
) -> None:
    """Write the folder of a trained model; ``ParameterError`` if the folder holds something else."""
    table = "".join(f"{word}\t{' '.join(features)}\n" for word, features in sorted(clusters.items()))
    files = {MODEL_FILE: model.read_bytes(), CLUSTERS_FILE: table.encode("utf-8")}
    write_tagger_folder(path, files, {"kind": "crf", "features": VERSION, "entity_types": list(entity_types)})


class CrfModel(WordTagger):
    """A loaded model."""

    kind = "crf"

    def __init__(self, settings: CrfTagger, threads: int = 1) -> None:
        """Load the model; ``ModelError`` if it is missing or damaged, or has another version of the features."""
        super().__init__(settings, VERSION, (MODEL_FILE, CLUSTERS_FILE))
        clusters = {}
        for line in (self.folder / CLUSTERS_FILE).read_text(encoding="utf-8").splitlines():
            word, _, features = line.partition("\t")
            clusters[word] = tuple(features.split(" "))
        self._weights = CrfWeights(self.folder / MODEL_FILE)
        self._features = CrfFeatures(clusters, self._weights.add)
        labels = self._weights.labels
        classes = [(OUTSIDE,), *((f"B-{name}", f"I-{name}") for name in self.types)]
        self._classes = np.array(
            [[label in of_class for of_class in classes] for label in labels], dtype=float
        )  # (L, C)

    def probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The probabilities of each text's tokens (T, C): outside, and the entity types in the order of training."""
        tokens = [tokens_of(text) for text in texts]
        found = [np.zeros((0, self._classes.shape[1]))] * len(texts)
        chosen = [number for number, of_text in enumerate(tokens) if of_text]
        marginals = self._weights.marginals([self._scores(texts[number], tokens[number]) for number in chosen])
        for number, of_text in zip(chosen, marginals, strict=True):
            found[number] = of_text @ self._classes
        return found

    def _scores(self, text: str, tokens: Sequence[Token]) -> np.ndarray:
        if self._weights.groups > _MOST_GROUPS:
            self._weights.forget()
            self._features.forget()
        return self._weights.scores(self._features(text, tokens))
