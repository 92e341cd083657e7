"""Open a language model of any kind from a folder, a package or the hub, to score or to train further; and save it."""

from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import ModelError, ParameterError
from tasks.language_model.model_folder import kind_of_model

if TYPE_CHECKING:
    from tasks.language_model.language_models import LanguageModel, Precision
    from tasks.language_model.learners import Learner


def open_language_model(model: str | Path, precision: "Precision" = "auto") -> "LanguageModel":
    """Open a model folder of any kind, or a causal model of Hugging Face by folder, package or hub name.

    It is on a GPU where there is one. Raises ``ModelError`` where the model cannot be found or read. Raises
    ``ParameterError`` for bfloat16 with a kind that computes only in float32.
    """
    kind = kind_of_model(model)
    if kind == "causal_lm":
        from tasks.language_model.causal_lm.folder import load_for_scoring

        return load_for_scoring(model, precision)
    if precision == "bfloat16":
        raise ParameterError(
            f"precision 'bfloat16' is for kind 'causal_lm', and {str(model)!r} is of kind {kind!r}; leave it out"
        )
    if kind == "ngram":
        from tasks.language_model.ngram.folder import load as load_ngram
        from tasks.language_model.ngram.scoring import NgramScorer

        return NgramScorer(*load_ngram(model))
    import torch

    from tasks.language_model.transformer.model import load_model
    from tasks.language_model.transformer.scoring import WordTransformer

    network, vocabulary = load_model(model)
    return WordTransformer(network.cuda() if torch.cuda.is_available() else network, vocabulary)


def open_learner(folder: str, option: str = "--model") -> "Learner":
    """Open a model of a folder, a package or the hub for further training.

    Raises ``ModelError`` where its kind cannot be trained further, or it also predicts languages.
    """
    kind = kind_of_model(folder)
    if kind == "causal_lm":
        from tasks.language_model.causal_lm.folder import load

        causal = load(folder)
        causal.network.requires_grad_(True)
        return causal
    if kind != "transformer":
        raise ModelError(f"{option} {folder!r} is of kind {kind!r}, which has no weights to train; give another kind")
    from tasks.language_model.transformer.model import load_model
    from tasks.language_model.transformer.scoring import WordTransformer

    network, vocabulary = load_model(folder)
    if network.languages is not None:
        raise ModelError(
            f"{option} {folder!r} stores the languages of its text (transformer.languages). Unlearning cannot change "
            "them; adapt without transformer.languages"
        )
    return WordTransformer(network, vocabulary)


def save_learner(learner: "Learner", folder: str) -> None:
    """Write a model folder. Of a causal model all weights are written, since a low-rank update does not cover the
    training of a learner."""
    from tasks.language_model.causal_lm.folder import save_adapted
    from tasks.language_model.causal_lm.model import CausalModel
    from tasks.language_model.transformer.model import save_model

    if isinstance(learner, CausalModel):
        save_adapted(folder, learner, full=True)
    else:
        save_model(folder, learner.network, learner.vocabulary)
