"""Causal language models of Hugging Face's for speech: a model folder of that kind, or a model as it comes.

The latter is a folder, ``package:NAME/FOLDER``, a name on the hub, or a file in GGUF in one of the first two.
"""

from pathlib import Path

from tasks.causal_model import check_causal, computing_precision, gguf_file_in, load_causal_model
from tasks.language_model.causal_lm.folder import load
from tasks.language_model.causal_lm.model import CausalModel
from tasks.language_model.causal_lm.word_pieces import WordPieces
from tasks.language_model.language_models import kind_of_folder
from tasks.language_model.model_folder import SETTINGS
from tasks.model_source import locate_model


def is_causal(model: str) -> bool:
    """Whether this names a causal model; whatever is no model folder of ours is taken for one."""
    return not (Path(model) / SETTINGS).is_file() or kind_of_folder(model) == "causal_lm"


def load_causal(model: str, precision: str = "auto") -> CausalModel:
    """The model that ``is_causal`` said yes to; ``ModelError`` where it cannot be loaded."""
    if (Path(model) / SETTINGS).is_file():
        return load(model)[0]
    folder = Path(locate_model(model))
    gguf_file = gguf_file_in(folder) if folder.is_dir() else None
    loaded, tokenizer = load_causal_model(model, gguf_file, precision=computing_precision(precision))
    check_causal(loaded, model)
    return CausalModel(loaded.eval(), WordPieces(tokenizer, model), model)
