"""Passages of background documents, ranked for a query by BM25 (Robertson and Zaragoza 2009, equation 3.15)."""

from collections.abc import Sequence

import numpy as np

from tasks.corpora.words import folded_words

_SATURATION, _LENGTH = 1.2, 0.75
"""k1 and b of BM25, at usual values."""
_LINES = 5
"""Lines of a passage."""


def read_passages(folder: str) -> list[str]:
    """Runs of at most five neighbouring lines of the documents in a folder, or in a file, of any readable form.

    Raises ``CorpusError`` if there is no text.
    """
    from tasks.corpora.sources.text_files import FilesCorpus

    source = FilesCorpus(kind="files", source=folder, documents="files").open()
    documents = [document.texts for part in source.parts for document in source.documents(part)]
    return [" ".join(texts[n : n + _LINES]) for texts in documents for n in range(0, len(texts), _LINES)]


class Passages:
    """An index of passages."""

    def __init__(self, passages: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self._counter = CountVectorizer(analyzer=folded_words, dtype=np.float64)
        self._counts = self._counter.fit_transform(passages)  # sparse (P, V)
        self._words = self._counter.get_feature_names_out()
        lengths, holding = np.diff(self._counts.indptr), self._counts.getnnz(axis=0)
        tokens = np.asarray(self._counts.sum(axis=1)).ravel()  # (P,)
        rarity = np.log1p((len(passages) - holding + 0.5) / (holding + 0.5))  # (V,)
        damping = _SATURATION * (1 - _LENGTH + _LENGTH * tokens / tokens.mean())  # (P,)
        self._weights = self._counts.copy()
        counts = self._counts.data
        self._weights.data = rarity[self._counts.indices] * counts / (counts + np.repeat(damping, lengths))

    def words_for(self, query: str, most: int) -> dict[str, float]:
        """The folded words of the ``most`` best passages, each with its count times the passage's score."""
        asked = self._counter.transform([query]).sign()
        scores = (self._weights @ asked.T).toarray().ravel()  # (P,)
        best = np.argsort(-scores, kind="stable")[:most]
        weights = scores[best] @ self._counts[best]  # (V,)
        return {str(self._words[word]): float(weights[word]) for word in np.flatnonzero(weights)}
