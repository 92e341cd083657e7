"""Training of a conditional random field on labelled text."""

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError, ModelError
from tasks.labelled_text.labelled_lines import LabelledLine
from tasks.masking.taggers.crf_features import CrfFeatures
from tasks.masking.taggers.crf_folder import write_crf_folder
from tasks.masking.taggers.crf_tagger import OUTSIDE
from tasks.tagger_training.labelled_tokens import tokens_and_labels
from tasks.tagger_training.settings import CrfTraining
from tasks.tagger_training.word_clusters import word_clusters


def train_crf(
    lines: Iterable[LabelledLine], class_of: Callable[[str], str | None], settings: CrfTraining, output: str | Path
) -> dict[str, Any]:
    """Train on labelled lines and write the model's folder; returns what was measured.

    ``CorpusError`` where no token is labelled, ``ModelError`` where the weights become NaN or infinite.
    """
    import sklearn_crfsuite

    clusters: Mapping[str, tuple[str, ...]] = (
        word_clusters(settings.embeddings, settings.clusters, settings.seed) if settings.embeddings else {}
    )
    features = CrfFeatures(clusters)
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
        model = sklearn_crfsuite.CRF(
            algorithm="lbfgs",
            c1=settings.l1,
            c2=settings.l2,
            max_iterations=settings.iterations,
            min_freq=settings.minimum_feature_count,
            all_possible_transitions=True,
            model_filename=str(file),
        )
        model.fit(sentences, labels)
        iterations = model.training_log_.iterations
        last = iterations[-1] if iterations else {}
        loss = float(last.get("loss", "nan"))
        if not loss == loss or loss in (float("inf"), float("-inf")):
            raise ModelError("the training of the CRF has no finite loss; raise l1 or l2, or look at the labelled text")
        size = file.stat().st_size
        write_crf_folder(output, file, clusters, {"entity_types": entity_types})
    return {
        "lines": len(labels),
        "tokens": sum(map(len, labels)),
        "labelled_tokens": sum(label != OUTSIDE for line_labels in labels for label in line_labels),
        "entity_types": entity_types,
        "iterations": len(iterations),
        "loss": loss,
        "active_features": int(last.get("active_features", 0)),
        "model_bytes": size,
        "clustered_words": len(clusters),
    }
