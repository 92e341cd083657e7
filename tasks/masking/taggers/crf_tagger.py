"""A conditional random field (Lafferty, McCallum, Pereira 2001) as tagger; ``palimpsest train-tagger`` makes one.

The probability of a word is one minus its marginal probability of the class outside. The model's folder holds
``model.crfsuite`` and ``clusters.tsv``; a line of the latter is a folded word and its cluster features.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.masking.settings import CrfTagger
from tasks.masking.taggers.crf_features import VERSION, CrfFeatures, tokens_of
from tasks.masking.taggers.tagger import TaggedWord, WordTagger
from tasks.masking.taggers.tagger_folder import read_tagger_folder, write_tagger_folder

MODEL_FILE, CLUSTERS_FILE = "model.crfsuite", "clusters.tsv"
OUTSIDE = "O"


def write_crf_folder(
    path: str | Path, model: Path, clusters: Mapping[str, tuple[str, ...]], entity_types: Sequence[str]
) -> None:
    """Write the folder of a trained model; ``ParameterError`` if the folder holds something else."""
    table = "".join(f"{word}\t{' '.join(features)}\n" for word, features in sorted(clusters.items()))
    files = {MODEL_FILE: model.read_bytes(), CLUSTERS_FILE: table.encode("utf-8")}
    write_tagger_folder(path, files, {"kind": "crf", "features": VERSION, "entity_types": list(entity_types)})


class CrfModel(WordTagger):
    """A loaded model."""

    def __init__(self, settings: CrfTagger) -> None:
        """Load the model; ``ModelError`` if it is missing or damaged, or has another version of the features."""
        import pycrfsuite

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
        self._features = CrfFeatures(clusters)
        self._model: Any = pycrfsuite.Tagger()
        self._model.open(str(folder / MODEL_FILE))
        known = set(self._model.labels())
        self._labels = [
            (entity_type, [label for label in (f"B-{entity_type}", f"I-{entity_type}") if label in known])
            for entity_type in self._types
        ]

    @property
    def entity_types(self) -> list[str]:
        """The types that the model was trained with."""
        return sorted(self._types)

    def tagged_words(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """The tagged words of each text."""
        return [list(self._words(text)) for text in texts]

    def _words(self, text: str) -> Iterator[TaggedWord]:
        tokens = tokens_of(text)
        if not any(is_word for _, _, is_word in tokens):
            return
        model = self._model
        model.set(self._features(text, tokens))
        for index, (start, end, is_word) in enumerate(tokens):
            if not is_word:
                continue
            probability = 1.0 - model.marginal(OUTSIDE, index)
            if probability >= self._minimum:
                _, entity_type = max(
                    (sum(model.marginal(label, index) for label in labels), name) for name, labels in self._labels
                )
                yield start, end, entity_type, min(probability, 1.0)
