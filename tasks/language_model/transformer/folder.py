"""A Transformer on disk: a folder with ``model.safetensors``, ``vocabulary.txt`` and ``settings.json``.

``settings.json`` holds the kind of model, its architecture, and the SHA-256 of weights and vocabulary, so that a
damaged or mixed-up folder is found out when it is read. Nothing is pickled.
"""

import hashlib
import json
from pathlib import Path

from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_as_bytes

from tasks.files.atomic_file import atomic_folder, atomic_writer
from tasks.language_model.model_folder import (
    SETTINGS,
    VOCABULARY,
    WEIGHTS,
    check_replaceable,
    checked_content,
    read_settings,
)
from tasks.language_model.settings import ArchitectureSettings
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import Vocabulary, checked_vocabulary
from tasks.settings.checks import as_plain, check_settings

KIND = "transformer"
FORMAT = 1


def save_model(folder: str | Path, model: TransformerLanguageModel, vocabulary: Vocabulary) -> None:
    """Write a model folder; an earlier one stays as it was until the new one is complete.

    The folder has mode 0700 and its files 0600. Raises ``ModelError`` where the folder holds something else.
    """
    folder = Path(folder)
    check_replaceable(folder)
    with atomic_folder(folder, private=True) as fresh:
        weights = tensors_as_bytes({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
        document = {
            "format": FORMAT,
            "kind": KIND,
            "architecture": as_plain(model.architecture),
            "vocabulary": vocabulary.hash,
            "weights": hashlib.sha256(weights).hexdigest(),
        }
        with atomic_writer(fresh / WEIGHTS, private=True, binary=True) as stream:
            stream.write(weights)
        with atomic_writer(fresh / VOCABULARY, private=True) as stream:
            stream.write("\n".join(vocabulary.tokens) + "\n")
        with atomic_writer(fresh / SETTINGS, private=True) as stream:
            stream.write(json.dumps(document, indent=2) + "\n")


def load_model(folder: str | Path) -> tuple[TransformerLanguageModel, Vocabulary]:
    """Read a model folder; the model is in evaluation mode.

    Raises ``ModelError`` where the folder is missing or incomplete, is of another kind or format, or where weights or
    vocabulary are not those that it was saved with (both hashes are named).
    """
    folder = Path(folder)
    document = read_settings(folder, KIND, FORMAT, ["architecture", "vocabulary", "weights"])
    vocabulary = checked_vocabulary(folder, document["vocabulary"])
    weights = checked_content(folder / WEIGHTS, document["weights"])
    architecture = check_settings(ArchitectureSettings, document["architecture"], f"{folder / SETTINGS}: architecture")
    model = TransformerLanguageModel(architecture, len(vocabulary))
    model.load_state_dict(read_tensors(weights))
    return model.eval(), vocabulary
