"""A recogniser on disk: ``model.safetensors``, ``units.model``, ``statistics.json`` and ``settings.json``.

``settings.json`` holds the recogniser's description and the SHA-256 of the other files, so that a damaged or
mixed-up folder is found out when it is read. Nothing is pickled.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_as_bytes

from tasks.errors import ModelError
from tasks.files.atomic_file import atomic_folder, atomic_writer
from tasks.settings.checks import as_plain, check_settings
from tasks.speech.recogniser.features import FeatureStatistics
from tasks.speech.recogniser.recogniser import Recogniser, RecogniserDescription, make_model
from tasks.speech.recogniser.units import Units

KIND = "emformer_transducer"
FORMAT = 1
SETTINGS, WEIGHTS, UNITS, STATISTICS = "settings.json", "model.safetensors", "units.model", "statistics.json"


def save_recogniser(
    folder: str | Path,
    recogniser: Recogniser,
    *,
    store: Literal["float32", "float16"] = "float32",
    private: bool = False,
) -> str:
    """Write a recogniser folder and return the recogniser's hash; an earlier folder stays until it is complete.

    A private folder has mode 0700 and its files 0600. Raises ``ModelError`` where the folder holds something else, or
    where a weight is too large for ``store``.
    """
    folder = Path(folder)
    check_replaceable(folder)
    kind = torch.float16 if store == "float16" else torch.float32
    tensors = {
        name: value.detach().cpu().to(kind).contiguous() for name, value in recogniser.model.state_dict().items()
    }
    for name, value in tensors.items():
        if not bool(torch.isfinite(value).all()):
            raise ModelError(f"weight {name!r} is not finite as {store}; store float32, or train anew")
    weights = tensors_as_bytes(tensors)
    statistics = json.dumps(
        {
            "mean": recogniser.feature_statistics.mean.tolist(),
            "inverse_deviation": recogniser.feature_statistics.inverse_deviation.tolist(),
        }
    ).encode()
    contents = {WEIGHTS: weights, UNITS: recogniser.units.model, STATISTICS: statistics}
    document = {
        "format": FORMAT,
        "kind": KIND,
        "description": as_plain(recogniser.settings),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    with atomic_folder(folder, private=private) as fresh:
        for name, content in contents.items():
            with atomic_writer(fresh / name, private=private, binary=True) as stream:
                stream.write(content)
        with atomic_writer(fresh / SETTINGS, private=private) as stream:
            stream.write(json.dumps(document, indent=2) + "\n")
    return _hash_of(document)


def load_recogniser(folder: str | Path) -> Recogniser:
    """Read a recogniser folder; the network is in evaluation mode and float32.

    Raises ``ModelError`` where the folder is missing or incomplete, is of another kind or format, or where a file is
    not the one that it was saved with.
    """
    folder = Path(folder)
    document = _read_settings(folder)
    contents = {name: _read_file(folder, name, document["files"]) for name in (WEIGHTS, UNITS, STATISTICS)}
    where = f"{folder / SETTINGS}: description"
    description = check_settings(RecogniserDescription, document["description"], where)
    units = Units(contents[UNITS])
    statistics = _statistics_of(folder, contents[STATISTICS], description.features.bands)
    model = make_model(description.architecture, description.features, len(units) + 1)
    try:
        tensors = {name: value.float() for name, value in read_tensors(contents[WEIGHTS]).items()}
        model.load_state_dict(tensors)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"recogniser {str(folder / WEIGHTS)!r} does not fit its settings ({reason}); make it again"
        ) from None
    return Recogniser(model.eval(), units, statistics, description, _hash_of(document))


def check_replaceable(folder: str | Path) -> None:
    """``ModelError`` where ``folder`` is a file or holds anything but an earlier recogniser."""
    folder = Path(folder)
    if folder.is_dir():
        others = sorted({file.name for file in folder.iterdir()} - {SETTINGS, WEIGHTS, UNITS, STATISTICS})
        if others:
            raise ModelError(
                f"output folder {str(folder)!r} holds {others[0]!r}, which is no part of a recogniser; give a new "
                "folder"
            )
    elif folder.exists():
        raise ModelError(f"output {str(folder)!r} is a file; give the path of a new folder")


def _hash_of(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _read_settings(folder: Path) -> dict[str, Any]:
    remedy = "'palimpsest train-recogniser' makes one"
    if not folder.is_dir():
        raise ModelError(f"recogniser folder {str(folder)!r} does not exist; {remedy}")
    try:
        document = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"folder {str(folder)!r} holds no {SETTINGS!r} and is no recogniser; {remedy}") from None
    except ValueError:
        raise ModelError(f"{str(folder / SETTINGS)!r} is not JSON; make the recogniser again") from None
    if not isinstance(document, dict) or document.get("kind") != KIND or document.get("format") != FORMAT:
        kind = document.get("kind") if isinstance(document, dict) else None
        raise ModelError(
            f"{str(folder / SETTINGS)!r} is of kind {kind!r}; a recogniser is of kind {KIND!r}, format {FORMAT}; "
            f"{remedy}"
        )
    files = document.get("files")
    if "description" not in document or not isinstance(files, dict) or {WEIGHTS, UNITS, STATISTICS} - files.keys():
        raise ModelError(f"{str(folder / SETTINGS)!r} lacks 'description' or 'files'; make the recogniser again")
    return document


def _read_file(folder: Path, name: str, hashes: dict[str, str]) -> bytes:
    try:
        content = (folder / name).read_bytes()
    except FileNotFoundError:
        raise ModelError(f"recogniser folder {str(folder)!r} holds no {name!r}; make it again") from None
    found = hashlib.sha256(content).hexdigest()
    if found != hashes[name]:
        raise ModelError(
            f"recogniser {str(folder / name)!r} is damaged or belongs to another one: its hash is {found[:12]}, it was "
            f"saved with {str(hashes[name])[:12]}; make the recogniser again or fetch it again"
        )
    return content


def _statistics_of(folder: Path, content: bytes, bands: int) -> FeatureStatistics:
    document = json.loads(content)
    mean, inverse = document["mean"], document["inverse_deviation"]
    if len(mean) != bands or len(inverse) != bands or not all(map(math.isfinite, [*mean, *inverse])):
        raise ModelError(f"{str(folder / STATISTICS)!r} does not fit the {bands} bands of its settings; make it again")
    return FeatureStatistics(torch.tensor(mean), torch.tensor(inverse))
