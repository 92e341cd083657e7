"""Classifier of offensive text: logistic regression over its words, its letters and its sentence embedding.

TF-IDF of words, of pairs of words, and of two to five letters of a word covers insults of the training text and their
spellings. An encoder's embedding covers the meaning, also in unseen words. Trained on 2,500 rows of ParaDetox, the area
under the curve is .987 on other rows and .79 on comments of other platforms (Surge) by the terms alone, .968 and .90 by
MiniLM's embedding alone, .992 and .91 by both, so both are used. Normalised text costs .003 on ParaDetox and gains .015
on Surge: one annotator's punctuation does not generalise.

A classifier's folder has ``settings.json``, ``vocabulary.json`` and ``model.safetensors``; reading it runs no code. It
has words of the text that it was trained on.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.errors import ModelError
from tasks.files.atomic_file import PRIVATE_MODE, atomic_folder
from tasks.language_model.model_folder import SETTINGS, WEIGHTS, checked_content, hash_of_file, read_settings
from tasks.toxicity.sentence_embeddings import SentenceEncoder

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfVectorizer

KIND, FORMAT = "toxicity_classifier", 1
TERMS = "vocabulary.json"
LIMIT = 0.5
"""Probability above which a text counts as offensive."""
LEAST_AUC = 0.8
"""Smallest AUC on text of another origin: below it, a classifier proves nothing about a model."""


@dataclass(frozen=True)
class Proof:
    """Measurements of a classifier after its training."""

    held_out_auc: float
    """Area under the curve, on held-out texts of the same origin."""
    other_auc: dict[str, float]
    """Area under the curve on texts of another origin, by their file."""
    false_positives: float
    """Share of the held-out harmless texts that are classified as offensive."""

    def refuse_unproven(self, path: str) -> None:
        """Raise ``ModelError`` if the classifier was not proven on offensive texts of another origin."""
        lowest = min(self.other_auc.items(), key=lambda each: each[1], default=None)
        if lowest is not None and lowest[1] >= LEAST_AUC:
            return
        state = "was measured on no other text" if lowest is None else f"has an AUC of {lowest[1]:.2f} on {lowest[0]!r}"
        raise ModelError(
            f"classifier {path!r} {state}; {LEAST_AUC} is the least to measure a model by ('palimpsest train-toxicity "
            "--other' measures it; unproven_classifier=true takes it as it is)"
        )


@dataclass(frozen=True)
class Classifier:
    """The probability that a text is offensive."""

    readers: "Sequence[TfidfVectorizer]"
    encoder: SentenceEncoder
    weights: np.ndarray
    """Of the features of each reader and of the encoder, one after the other (F,)."""
    bias: float

    @classmethod
    def train(cls, texts: Sequence[str], is_offensive: Sequence[bool], strength: float, encoder: str) -> "Classifier":
        """Train on normalised texts; both classes have equal weight, for any numbers of texts.

        ``strength``: inverse of the weight of the squared norm; ``encoder``: its name. Raises ``ModelError`` if no term
        is frequent enough, or the encoder is missing.
        """
        from sklearn.linear_model import LogisticRegression

        readers, loaded = _readers(), SentenceEncoder(encoder)
        try:
            for reader in readers:
                reader.fit(texts)
        except ValueError:
            raise ModelError("the labelled texts have too few words in common to learn from; give more") from None
        model = LogisticRegression(C=strength, max_iter=1000, class_weight="balanced")
        model.fit(_features(readers, loaded, texts), is_offensive)
        return cls(readers, loaded, model.coef_[0], float(model.intercept_[0]))

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """The probability of each normalised text (N,) that it is offensive."""
        from scipy.special import expit

        if not len(texts):
            return np.zeros(0)
        return np.asarray(expit(_features(self.readers, self.encoder, texts) @ self.weights + self.bias))

    def save(self, path: str, proof: Proof) -> None:
        """Write the folder; an earlier one stays until the new one is complete."""
        from safetensors.numpy import save_file

        with atomic_folder(path, private=True) as fresh:
            terms = [reader.get_feature_names_out().tolist() for reader in self.readers]
            (fresh / TERMS).write_text(json.dumps(terms, ensure_ascii=False) + "\n", encoding="utf-8")
            rarity = np.concatenate([reader.idf_ for reader in self.readers])
            tensors = {"weights": self.weights, "rarity": rarity, "bias": np.array([self.bias])}
            save_file(tensors, fresh / WEIGHTS)
            hashes = {name: hash_of_file(fresh / name) for name in (TERMS, WEIGHTS)}
            document = {"format": FORMAT, "kind": KIND, **asdict(proof), "encoder": self.encoder.name, "hashes": hashes}
            document["files"] = [SETTINGS, TERMS, WEIGHTS]
            (fresh / SETTINGS).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
            for file in fresh.iterdir():
                file.chmod(PRIVATE_MODE)

    @classmethod
    def load(cls, path: str) -> "tuple[Classifier, Proof]":
        """Read a folder; ``ModelError`` if it is none, or is damaged."""
        from safetensors.numpy import load

        names = [field.name for field in fields(Proof)]
        wanted = [*names, "encoder", "hashes"]
        document = read_settings(Path(path), KIND, FORMAT, wanted, "classifier", "train-toxicity")
        terms, tensors = (
            checked_content(Path(path) / name, document["hashes"].get(name, ""), "classifier")
            for name in (TERMS, WEIGHTS)
        )
        read, readers = load(tensors), _readers(json.loads(terms))
        ends = np.cumsum([len(reader.vocabulary) for reader in readers])
        for reader, rarity in zip(readers, np.split(read["rarity"], ends[:-1]), strict=True):
            reader.idf_ = rarity
        proof = Proof(**{name: document[name] for name in names})
        return cls(readers, SentenceEncoder(document["encoder"]), read["weights"], float(read["bias"][0])), proof


def _features(readers: "Sequence[TfidfVectorizer]", encoder: SentenceEncoder, texts: Sequence[str]) -> "csr_matrix":
    """The features of each reader, and of the encoder, one after the other (N, F)."""
    from scipy.sparse import csr_matrix, hstack

    return hstack([*(reader.transform(texts) for reader in readers), csr_matrix(encoder.vectors(texts))]).tocsr()


def _readers(vocabularies: Sequence[Sequence[str] | None] = (None, None)) -> "list[TfidfVectorizer]":
    """The vectorizers of words and of letters; with ``vocabularies`` they are already fitted."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    kinds: list[dict[str, Any]] = [
        {"token_pattern": r"\S+", "ngram_range": (1, 2), "min_df": 2},
        {"analyzer": "char_wb", "ngram_range": (2, 5), "min_df": 3},
    ]
    return [
        TfidfVectorizer(lowercase=False, sublinear_tf=True, vocabulary=terms, **kind)
        for terms, kind in zip(vocabularies, kinds, strict=True)
    ]
