"""The kinds of language model, and how one is named: a folder, which says its kind, or a causal model by its name."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tasks.language_model.model_folder import SETTINGS
from tasks.language_model.settings import Kind
from tasks.model_source import PACKAGE_PREFIX

if TYPE_CHECKING:
    from tasks.language_model.evaluation.protocol import MarkerRule, Protocol
    from tasks.language_model.evaluation.target_scores import TargetScores

_OF_HUGGING_FACE = ("config.json", "*.gguf")
"""A folder with one of these, and without ``settings.json``, is a causal model as it comes."""


def kind_of_model(model: str | Path) -> Kind:
    """The kind of a model folder, a folder of Hugging Face's, a hub name or ``package:NAME/FOLDER``.

    That of the Transformer where a folder does not say, or does not exist, since its reader says what is wrong.
    """
    name, folder = str(model), Path(model)
    if folder.is_dir():
        if not (folder / SETTINGS).is_file() and any(any(folder.glob(pattern)) for pattern in _OF_HUGGING_FACE):
            return "causal_lm"
        return kind_of_folder(folder)
    is_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    return "transformer" if is_path and not name.startswith(PACKAGE_PREFIX) else "causal_lm"


def kind_of_folder(folder: str | Path) -> Kind:
    """The kind of a model folder; that of the Transformer where the folder does not say, since its reader says why."""
    try:
        kind = json.loads((Path(folder) / SETTINGS).read_text(encoding="utf-8"))["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        return "transformer"
    return kind if kind in get_args(Kind) else "transformer"


def score_text(model: str | Path, text: str | Path, markers: "MarkerRule") -> "tuple[TargetScores, Protocol]":
    """Score a plain text file by a model of whatever kind; ``markers`` is the evaluation's rule.

    Raises ``ModelError`` where the model cannot be read, and ``CorpusError`` where the text has no word.
    """
    match kind_of_model(model):
        case "ngram":
            from tasks.language_model.ngram.scoring import score_text as score_ngram

            return score_ngram(model, text, markers)
        case "causal_lm":
            from tasks.language_model.causal_lm.scoring import score_text as score_causal_lm

            return score_causal_lm(model, text, markers)
    from tasks.language_model.transformer.scoring import score_text as score_transformer

    return score_transformer(model, text, markers)
