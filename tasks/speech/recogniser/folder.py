"""A recogniser on disk: ``model.safetensors``, ``units.model`` (or one for each language, ``units.en.model``),
``statistics.json`` and ``settings.json``.

``settings.json`` holds the recogniser's description and the SHA-256 of the other files, so that a damaged or
mixed-up folder is detected when it is read. Nothing is pickled.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_as_bytes

from tasks.files.atomic_file import atomic_folder, atomic_writer
from tasks.language_model.model_folder import SETTINGS, WEIGHTS, check_replaceable, checked_content, read_settings
from tasks.settings.checks import as_plain, check_settings
from tasks.speech.recogniser.recogniser import FeatureStatistics, Recogniser, RecogniserDescription, make_model
from tasks.speech.recogniser.units import Units

_KIND, _FORMAT = "emformer_transducer", 1
_UNITS, _STATISTICS = "units.model", "statistics.json"


def save_recogniser(folder: str | Path, recogniser: Recogniser) -> str:
    """Write a recogniser folder and return the recogniser's hash; an earlier folder stays until the new is complete.

    Weights are stored as float16. The folder has mode 0700 and its files 0600. Raises ``ModelError`` if the folder
    holds something else.
    """
    check_replaceable(folder)
    weights = recogniser.model.state_dict()
    tensors = {name: value.detach().cpu().half().contiguous() for name, value in weights.items()}
    statistics = {name: value.tolist() for name, value in vars(recogniser.feature_statistics).items()}
    contents = {WEIGHTS: tensors_as_bytes(tensors), _STATISTICS: json.dumps(statistics).encode()}
    contents |= dict(zip(_unit_files(recogniser.units.languages), recogniser.units.models, strict=True))
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    document = {"format": _FORMAT, "kind": _KIND, "description": as_plain(recogniser.settings), "files": hashes}
    contents[SETTINGS] = (json.dumps(document, indent=2) + "\n").encode()
    with atomic_folder(folder, private=True) as fresh:
        for name, content in contents.items():
            with atomic_writer(fresh / name, private=True, binary=True) as stream:
                stream.write(content)
    return _hash_of(document)


def load_recogniser(folder: str | Path) -> Recogniser:
    """Read a recogniser folder; the network is in evaluation mode and float32.

    Raises ``ModelError`` if the folder is missing, incomplete, or of another kind or format, or if a file differs from
    the saved one.
    """
    folder = Path(folder)
    document = read_settings(folder, _KIND, _FORMAT, ["description", "files"], "recogniser", "train-recogniser")
    where = f"{folder / SETTINGS}: description"
    description = check_settings(RecogniserDescription, document["description"], where)
    unit_files = _unit_files(description.unit_languages)
    contents = {
        name: checked_content(folder / name, document["files"].get(name, ""), "recogniser")
        for name in (WEIGHTS, _STATISTICS, *unit_files)
    }
    units = Units(*(contents[name] for name in unit_files), languages=description.unit_languages)
    statistics = FeatureStatistics(**{name: torch.tensor(v) for name, v in json.loads(contents[_STATISTICS]).items()})
    model = make_model(description.architecture, description.features, len(units) + 1)
    model.load_state_dict({name: value.float() for name, value in read_tensors(contents[WEIGHTS]).items()})
    return Recogniser(model.eval(), units, statistics, description, _hash_of(document))


def _unit_files(languages: Sequence[str]) -> list[str]:
    """File names of the units: one, or one for each language with its own units."""
    return [f"units.{language}.model" for language in languages] or [_UNITS]


def _hash_of(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
