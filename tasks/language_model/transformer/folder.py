"""A Transformer on disk: a folder with ``model.safetensors``, ``vocabulary.txt`` and ``settings.json``.

``settings.json`` holds the kind of model, its architecture, and the SHA-256 of weights and vocabulary, so that a
damaged or mixed-up folder is found out when it is read. Nothing is pickled.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, get_args

from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_as_bytes

from tasks.errors import ModelError
from tasks.files.atomic_file import atomic_folder, atomic_writer
from tasks.language_model.model_folder import SETTINGS, VOCABULARY, WEIGHTS, check_replaceable
from tasks.language_model.settings import ArchitectureSettings, Kind
from tasks.language_model.transformer.model import TransformerLanguageModel
from tasks.language_model.vocabulary import Vocabulary, read_vocabulary
from tasks.settings.checks import as_plain, check_settings

KIND = "transformer"
FORMAT = 1


def save_model(
    folder: str | Path, model: TransformerLanguageModel, vocabulary: Vocabulary, *, private: bool = False
) -> None:
    """Write a model folder; an earlier one stays as it was until the new one is complete.

    A private folder has mode 0700 and its files 0600. Raises ``ModelError`` where the folder holds something else.
    """
    folder = Path(folder)
    check_replaceable(folder)
    with atomic_folder(folder, private=private) as fresh:
        weights = tensors_as_bytes({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
        document = {
            "format": FORMAT,
            "kind": KIND,
            "architecture": as_plain(model.architecture),
            "vocabulary": vocabulary.hash,
            "weights": hashlib.sha256(weights).hexdigest(),
        }
        with atomic_writer(fresh / WEIGHTS, private=private, binary=True) as stream:
            stream.write(weights)
        with atomic_writer(fresh / VOCABULARY, private=private) as stream:
            stream.write("\n".join(vocabulary.tokens) + "\n")
        with atomic_writer(fresh / SETTINGS, private=private) as stream:
            stream.write(json.dumps(document, indent=2) + "\n")


def load_model(folder: str | Path) -> tuple[TransformerLanguageModel, Vocabulary]:
    """Read a model folder; the model is in evaluation mode.

    Raises ``ModelError`` where the folder is missing or incomplete, is of another kind or format, or where weights or
    vocabulary are not those that it was saved with (both hashes are named).
    """
    folder = Path(folder)
    document = _read_settings(folder)
    vocabulary = read_vocabulary(folder / VOCABULARY)
    _check_hash(folder, VOCABULARY, vocabulary.hash, document["vocabulary"])
    try:
        weights = (folder / WEIGHTS).read_bytes()
    except FileNotFoundError:
        raise ModelError(f"model folder {str(folder)!r} holds no {WEIGHTS!r}; make it again") from None
    _check_hash(folder, WEIGHTS, hashlib.sha256(weights).hexdigest(), document["weights"])
    architecture = check_settings(ArchitectureSettings, document["architecture"], f"{folder / SETTINGS}: architecture")
    model = TransformerLanguageModel(architecture, len(vocabulary))
    try:
        model.load_state_dict(read_tensors(weights))
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"model {str(folder / WEIGHTS)!r} does not fit its settings ({reason}); make it again"
        ) from None
    return model.eval(), vocabulary


def _read_settings(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelError(f"model folder {str(folder)!r} does not exist; 'palimpsest pretrain' or 'adapt' makes one")
    try:
        document = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"model folder {str(folder)!r} holds no {SETTINGS!r}; give a folder that 'palimpsest pretrain' or 'adapt' "
            "made"
        ) from None
    except ValueError:
        raise ModelError(f"{str(folder / SETTINGS)!r} is not JSON; make the model again") from None
    needed = {"format", "kind", "architecture", "vocabulary", "weights"}
    if isinstance(document, dict) and (kind := document.get("kind")) != KIND:
        if kind in get_args(Kind):
            raise ModelError(f"model folder {str(folder)!r} is of kind {kind!r}; here only {KIND!r} will do")
        raise ModelError(
            f"{str(folder / SETTINGS)!r} is of kind {kind!r}, which is no language model's; give a folder that "
            "'palimpsest pretrain' or 'adapt' made"
        )
    if not isinstance(document, dict) or not needed <= document.keys():
        raise ModelError(f"{str(folder / SETTINGS)!r} lacks one of {', '.join(sorted(needed))}; make the model again")
    if document["format"] != FORMAT:
        raise ModelError(
            f"{str(folder / SETTINGS)!r} is of kind {document['kind']!r} and format {document['format']!r}; this "
            f"version reads kind {KIND!r}, format {FORMAT}"
        )
    return document


def _check_hash(folder: Path, name: str, found: str, expected: str) -> None:
    if found != expected:
        raise ModelError(
            f"model {str(folder / name)!r} is damaged or belongs to another model: its hash is {found[:12]}, the model "
            f"was saved with {str(expected)[:12]}; make the model again or fetch it again"
        )
