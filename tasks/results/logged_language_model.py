"""A language model's folder in MLflow's format: ``mlflow.pyfunc.load_model(...).predict([sentence, ...])``.

MLflow stores the name of this module and a copy of the folder, so nothing is pickled and no stored code is run.
Registered models name this module, so it must not move.
"""

import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

MODULE = "tasks.results.logged_language_model"


class LoggedLanguageModel:
    """Scores sentences by the model of a folder, of any kind."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def predict(self, model_input: "pandas.DataFrame", params: dict[str, Any] | None = None) -> "pandas.DataFrame":
        """One row for each sentence, in order, as a data frame.

        ``log_probability`` in nats over its normalised words and its end; ``targets``, how many these are;
        ``perplexity``, ``exp(-log_probability / targets)``. A sentence without a word has no targets and no numbers.
        ``model_input``: a table of one column, which MLflow makes of a list of strings.
        """
        import numpy as np
        import pandas

        from tasks.language_model.evaluation.reference_text import reference_text_of
        from tasks.language_model.opening import open_language_model

        sentences = [" ".join(str(sentence).split()) for sentence in model_input.iloc[:, 0]]
        sums, targets = np.full(len(sentences), math.nan), np.zeros(len(sentences), dtype=np.int64)
        if any(sentences):
            text = reference_text_of(sentences, "the sentences")
            scores, _ = open_language_model(self.folder).score_text(sentences)
            places = text.lines - 1
            sums[places] = np.bincount(text.sentence, weights=scores.log_probability, minlength=text.sentences)
            targets[places] = np.bincount(text.sentence, minlength=text.sentences)
        perplexity = np.exp(-sums / np.maximum(targets, 1))
        return pandas.DataFrame({"log_probability": sums, "targets": targets, "perplexity": perplexity})


def _load_pyfunc(path: str) -> LoggedLanguageModel:
    """Load MLflow's copy of the folder; MLflow calls this."""
    return LoggedLanguageModel(path)


def save(folder: str | Path, destination: str | Path) -> None:
    """Write an MLflow model with a copy of a model's folder, its signature and requirements."""
    from importlib.metadata import version

    from mlflow import pyfunc
    from mlflow.models import ModelSignature
    from mlflow.types.schema import ColSpec, Schema

    signature = ModelSignature(
        # One column without a name: a list of sentences is one too.
        Schema([ColSpec("string")]),
        Schema([ColSpec("double", "log_probability"), ColSpec("long", "targets"), ColSpec("double", "perplexity")]),
    )
    with warnings.catch_warnings():
        # MLflow asks for an example of the input; the signature has the same information.
        warnings.filterwarnings("ignore", message=".*input example was not provided", category=UserWarning)
        pyfunc.save_model(
            str(destination),
            loader_module=MODULE,
            data_path=str(folder),
            signature=signature,
            # Given here: otherwise MLflow loads the model in another process to find the requirements.
            pip_requirements=[f"{name}=={version(name)}" for name in ("palimpsest", "mlflow", "torch", "safetensors")],
        )
