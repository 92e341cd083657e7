"""Training of a conditional random field on labelled text, with clusters of word embeddings as features.

Tokens have ``B-``, ``I-`` and ``O`` labels (Ramshaw and Marcus 1995). The clusters are of the word embeddings of a
pretrained encoder. Words with similar use have similar embeddings, so a tagger generalises from one to the others
(Miller, Guinness, Zamanian 2004; here k-means of normalised embeddings instead of Brown clusters). Only words that are
one piece of the encoder's vocabulary have an embedding.
"""

import math
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.conditional_random_field import train
from tasks.errors import CorpusError, ModelError
from tasks.labelled_text.labelled_lines import LabelledLine
from tasks.masking.taggers.crf_features import Token, feature_lists, tokens_of
from tasks.masking.taggers.crf_tagger import OUTSIDE, write_crf_folder
from tasks.model_source import locate_model, unreachable
from tasks.tagger_training.settings import CrfTraining

_SMALLEST_WORD = 2
_L1, _L2 = 0.05, 0.05
"""Weights of the sums of absolute and of squared feature weights; the first makes the model small."""
_LEAST_FEATURE_COUNT = 2
"""Fewest occurrences of a feature; rarer ones are left out."""


def word_clusters(model: str, sizes: Sequence[int], seed: int) -> dict[str, tuple[str, ...]]:
    """One feature per clustering for each folded word, such as ``("k64=7", "k512=103")``.

    ``model``: folder, ``package:NAME/FOLDER`` or hub name. Raises ``ModelError`` if it cannot be loaded, has no word
    embeddings, or has fewer words than a clustering has clusters.
    """
    from tasks.corpora.words import fold
    from tasks.torch_setup import set_up_torch

    set_up_torch(1)
    import numpy as np
    import transformers
    from sklearn.cluster import MiniBatchKMeans
    from transformers import AutoModel, AutoTokenizer

    transformers.logging.disable_progress_bar()
    location = locate_model(model)
    try:
        tokenizer = AutoTokenizer.from_pretrained(location)
        embeddings = AutoModel.from_pretrained(location).get_input_embeddings()
    except (OSError, ValueError, KeyError) as error:
        raise unreachable(model, error) from None
    if embeddings is None:
        raise ModelError(f"model {model!r} has no word embeddings to cluster; name an encoder, or set embeddings: null")
    words: dict[str, int] = {}
    for piece, index in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]):
        word = fold(piece.removeprefix("Ġ").removeprefix("▁"))
        if len(word) >= _SMALLEST_WORD and word.isalpha():
            words.setdefault(word, index)
    if len(words) < max(sizes, default=0):
        raise ModelError(
            f"model {model!r} has embeddings of {len(words)} words, too few for {max(sizes)} clusters; "
            "lower 'clusters', or set embeddings: null"
        )
    vectors = embeddings.weight.detach().float().numpy()[list(words.values())]  # (words, width)
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    columns = []
    for size in sizes:
        clustering = MiniBatchKMeans(size, random_state=seed, n_init=1, batch_size=4096).fit(vectors)
        columns.append([f"k{size}={cluster}" for cluster in clustering.labels_])
    return {word: tuple(column[row] for column in columns) for row, word in enumerate(words)} if columns else {}


def tokens_and_labels(line: LabelledLine, class_of: Callable[[str], str | None]) -> tuple[Sequence[Token], list[str]]:
    """The tokens of a line and their labels; ``class_of``: class of a label, ``None`` for outside.

    A token belongs to the span that touches it; of overlapping spans, to the longest.
    """
    tokens = tokens_of(line.text)
    labels = [OUTSIDE] * len(tokens)
    for span in sorted(line.spans, key=lambda span: (span.start - span.end, span.start)):
        name = class_of(span.label)
        if name is None:
            continue
        begin = "B"
        for index, (start, end, _) in enumerate(tokens):
            if span.start < end and start < span.end and labels[index] == OUTSIDE:
                labels[index] = f"{begin}-{name}"
                begin = "I"
    return tokens, labels


def train_crf(
    lines: Iterable[LabelledLine], class_of: Callable[[str], str | None], settings: CrfTraining, output: str | Path
) -> dict[str, Any]:
    """Train on labelled lines, write the model's folder, and return the measurements.

    ``CorpusError`` if no token is labelled, ``ModelError`` if the weights become NaN or infinite.
    """
    clusters: Mapping[str, tuple[str, ...]] = (
        word_clusters(settings.embeddings, settings.clusters, settings.seed) if settings.embeddings else {}
    )
    features = feature_lists(clusters)
    sentences: list[list[list[str]]] = []
    labels: list[list[str]] = []
    for line in lines:
        tokens, line_labels = tokens_and_labels(line, class_of)
        if tokens:
            sentences.append(features(line.text, tokens))
            labels.append(line_labels)
    entity_types = sorted({label[2:] for line_labels in labels for label in line_labels if label != OUTSIDE})
    if not entity_types:
        raise CorpusError("the labelled text has no labelled word; a tagger needs some to learn from")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model"
        iterations = train(
            file,
            sentences,
            labels,
            iterations=settings.iterations,
            absolute=_L1,
            squared=_L2,
            least_count=_LEAST_FEATURE_COUNT,
        )
        loss = float(iterations[-1].get("loss", "nan")) if iterations else math.nan
        if not math.isfinite(loss):
            raise ModelError("the training of the CRF has no finite loss; look at the labelled text")
        write_crf_folder(output, file, clusters, entity_types)
    return {
        "lines": len(labels),
        "tokens": sum(map(len, labels)),
        "labelled_tokens": sum(label != OUTSIDE for line_labels in labels for label in line_labels),
        "entity_types": entity_types,
        "loss": loss,
    }
