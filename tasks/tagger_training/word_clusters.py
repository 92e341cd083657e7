"""Clusters of words by the word embeddings of a pretrained encoder, as features of a tagger.

Words that are used alike lie near each other, so what a tagger learns about one of them it knows of the others (Miller,
Guinness, Zamanian 2004; here k-means of normalised embeddings in place of Brown clusters). Only words that are one
piece of the encoder's vocabulary have an embedding.
"""

from collections.abc import Sequence

from tasks.errors import ModelError
from tasks.model_source import locate_model, unreachable

_SMALLEST_WORD = 2


def word_clusters(model: str, sizes: Sequence[int], seed: int) -> dict[str, tuple[str, ...]]:
    """Folded word to one feature per clustering, such as ``("k64=7", "k512=103")``.

    ``model``: folder, ``package:NAME/FOLDER`` or hub name. Raises ``ModelError`` where it cannot be loaded, has no
    word embeddings, or has fewer words than a clustering has clusters.
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
