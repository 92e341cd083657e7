"""A conditional random field (Lafferty, McCallum, Pereira 2001) as tagger; ``palimpsest train-tagger`` makes one.

The probability of a word is one minus its marginal probability of the class outside. The model's folder holds
``model.crfsuite`` and ``clusters.tsv``; a line of the latter is a folded word and its cluster features.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tasks.masking.settings import CrfTagger
from tasks.masking.taggers.crf_features import VERSION, CrfFeatures, Token, tokens_of
from tasks.masking.taggers.crf_weights import CrfWeights
from tasks.masking.taggers.tagger import TaggedWord, WordTagger
from tasks.masking.taggers.tagger_folder import read_tagger_folder, write_tagger_folder

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

    def __init__(self, settings: CrfTagger, threads: int = 1) -> None:
        """Load the model; ``ModelError`` if it is missing or damaged, or has another version of the features."""
        folder, description = read_tagger_folder(settings.model, "crf", VERSION, (MODEL_FILE, CLUSTERS_FILE))
        shipped = settings.model == CrfTagger(kind="crf").model
        self.name = "crf:shipped" if shipped else f"crf:{settings.model}"
        self.languages = ("en",) if shipped else ()
        self._minimum = settings.minimum_probability
        self._types: list[str] = description["entity_types"]
        clusters = {}
        for line in (folder / CLUSTERS_FILE).read_text(encoding="utf-8").splitlines():
            word, _, features = line.partition("\t")
            clusters[word] = tuple(features.split(" "))
        self._weights = CrfWeights(folder / MODEL_FILE)
        self._features = CrfFeatures(clusters, self._weights.add)
        labels = self._weights.labels
        self._outside = labels.index(OUTSIDE)
        self._columns = {
            name: [labels.index(label) for label in (f"B-{name}", f"I-{name}") if label in labels]
            for name in self._types
        }

    @property
    def entity_types(self) -> list[str]:
        """The types that the model was trained with."""
        return sorted(self._types)

    def tagged_words(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """The tagged words of each text."""
        tokens = [tokens_of(text) for text in texts]
        chosen = [number for number, of_text in enumerate(tokens) if any(is_word for _, _, is_word in of_text)]
        marginals = self._weights.marginals([self._scores(texts[number], tokens[number]) for number in chosen])
        found: list[list[TaggedWord]] = [[] for _ in texts]
        for number, of_text in zip(chosen, marginals, strict=True):
            found[number] = list(self._words(tokens[number], of_text))
        return found

    def probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The probabilities of each text's tokens (T, C): outside, and the entity types in the order of training."""
        columns = [[self._outside], *(self._columns[name] for name in self._types)]
        tokens = [tokens_of(text) for text in texts]
        found = [np.zeros((0, len(columns)))] * len(texts)
        chosen = [number for number, of_text in enumerate(tokens) if of_text]
        marginals = self._weights.marginals([self._scores(texts[number], tokens[number]) for number in chosen])
        for number, of_text in zip(chosen, marginals, strict=True):
            found[number] = np.stack([of_text[:, at].sum(axis=1) for at in columns], axis=1)
        return found

    def _scores(self, text: str, tokens: list[Token]) -> np.ndarray:
        if self._weights.groups > _MOST_GROUPS:
            self._weights.forget()
            self._features.forget()
        return self._weights.scores(self._features(text, tokens))

    def _words(self, tokens: Sequence[Token], marginals: np.ndarray) -> Iterator[TaggedWord]:
        probabilities = 1.0 - marginals[:, self._outside]
        for index in np.flatnonzero(probabilities >= self._minimum).tolist():
            start, end, is_word = tokens[index]
            if is_word:
                of_label = marginals[index].tolist()
                _, entity_type = max(
                    (sum(of_label[at] for at in at_labels), name) for name, at_labels in self._columns.items()
                )
                yield start, end, entity_type, min(float(probabilities[index]), 1.0)
