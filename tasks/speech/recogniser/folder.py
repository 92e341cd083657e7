"""A recogniser on disk: ``model.safetensors``, ``units.model`` (or one for each language, ``units.en.model``),
``statistics.json`` and ``settings.json``.

``settings.json`` holds the recogniser's description and the SHA-256 of the other files, so that a damaged or
mixed-up folder is found out when it is read. Nothing is pickled.

``torchaudio.pipelines.EMFORMER_RNNT_BASE_LIBRISPEECH`` as a recogniser like ours.

Its three files come from a folder where they were put by hand, from where torchaudio keeps its downloads, or, where
that is allowed, from the network. The weights are read with ``weights_only=True``: nothing in the file is run.
"""

import hashlib
import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_as_bytes

from tasks.errors import ModelError
from tasks.files.atomic_file import atomic_folder, atomic_writer
from tasks.language_model.model_folder import SETTINGS, WEIGHTS, check_replaceable, checked_content, read_settings
from tasks.settings.checks import as_plain, check_settings
from tasks.speech.recogniser.recogniser import FeatureStatistics, Recogniser, RecogniserDescription, make_model
from tasks.speech.recogniser.settings import PAPER_ARCHITECTURE, EmformerBundle, FeatureSettings, RecogniserArchitecture
from tasks.speech.recogniser.units import Units
from tasks.torch_setup import stand_in_for_torchaudio_extension

NAME = "EMFORMER_RNNT_BASE_LIBRISPEECH"
FILES = {
    "weights": "models/emformer_rnnt_base_librispeech.pt",
    "statistics": "pipeline-assets/global_stats_rnnt_librispeech.json",
    "units": "pipeline-assets/spm_bpe_4096_librispeech.model",
}
"""The bundle's files as torchaudio names them."""
PAPER_FEATURES = FeatureSettings(bands=80)
_ADDRESS = "https://download.pytorch.org/torchaudio/"
_CACHE = Path("torchaudio")


def load_bundle(
    source: EmformerBundle,
    architecture: RecogniserArchitecture = PAPER_ARCHITECTURE,
    features: FeatureSettings = PAPER_FEATURES,
) -> Recogniser:
    """The bundle's recogniser, in evaluation mode.

    Raises ``ModelError`` where a file is missing or damaged, or where the files do not fit each other or the sizes of
    ``architecture`` (all missing files are named at once).
    """
    paths = locate_files(source)
    units = Units(paths["units"].read_bytes())
    statistics = _statistics(paths["statistics"], features.bands)
    model = make_model(architecture, features, len(units) + 1)
    try:
        model.load_state_dict(torch.load(paths["weights"], map_location="cpu", weights_only=True))
    except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{str(paths['weights'])!r} is damaged or not the weights of {NAME} ({type(error).__name__}); fetch it "
            f"again from {_ADDRESS}{FILES['weights']}"
        ) from None
    description = RecogniserDescription(
        features=features, architecture=architecture, origin=f"torchaudio.pipelines.{NAME}", synthetic=False
    )
    return Recogniser(model.eval(), units, statistics, description)


def locate_files(source: EmformerBundle) -> dict[str, Path]:
    """Where the three files are: ``weights``, ``statistics``, ``units``.

    A folder may hold them flat or as torchaudio's server does. Raises ``ModelError`` where one is missing and may
    not be fetched, or cannot be.
    """
    if source.folder is not None:
        root = Path(source.folder)
        if not root.is_dir():
            raise ModelError(f"folder {source.folder!r} with the files of {NAME} does not exist")
    else:
        root = Path(torch.hub.get_dir()) / _CACHE
    found, missing = {}, []
    for part, name in FILES.items():
        candidates = [root / name, root / Path(name).name]
        existing = next((path for path in candidates if path.is_file()), None)
        if existing is not None:
            found[part] = existing
        elif source.download and source.folder is None:
            found[part] = _download(name)
        else:
            missing.append(name)
    if missing:
        raise ModelError(
            f"{NAME}: {', '.join(Path(name).name for name in missing)} not found in {str(root)!r}; put them there from "
            f"{_ADDRESS} ({', '.join(missing)}), or set download: true and no folder"
        )
    return found


def _download(name: str) -> Path:
    stand_in_for_torchaudio_extension()
    from torchaudio.utils import _download_asset

    try:
        return Path(_download_asset(name, progress=False))
    except (OSError, RuntimeError) as error:
        raise ModelError(
            f"{NAME}: {_ADDRESS}{name} cannot be fetched ({type(error).__name__}); fetch it where there is a network "
            "and give its folder"
        ) from None


def _statistics(path: Path, bands: int) -> FeatureStatistics:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        statistics = FeatureStatistics(torch.tensor(document["mean"]), torch.tensor(document["invstddev"]))
    except (ValueError, KeyError, TypeError):
        raise ModelError(f"{str(path)!r} is not the feature statistics of {NAME}; fetch it again") from None
    if statistics.mean.shape != (bands,) or statistics.inverse_deviation.shape != (bands,):
        raise ModelError(f"{str(path)!r} has not {bands} bands; it is not the feature statistics of {NAME}")
    return statistics


KIND = "emformer_transducer"
FORMAT = 1
UNITS, STATISTICS = "units.model", "statistics.json"


def save_recogniser(
    folder: str | Path,
    recogniser: Recogniser,
    *,
    store: Literal["float32", "float16"] = "float32",
) -> str:
    """Write a recogniser folder and return the recogniser's hash; an earlier folder stays until it is complete.

    The folder has mode 0700 and its files 0600. Raises ``ModelError`` where the folder holds something else, or
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
    contents = {WEIGHTS: weights, STATISTICS: statistics}
    contents |= dict(zip(_unit_files(recogniser.units.languages), recogniser.units.models, strict=True))
    document = {
        "format": FORMAT,
        "kind": KIND,
        "description": as_plain(recogniser.settings),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    with atomic_folder(folder, private=True) as fresh:
        for name, content in contents.items():
            with atomic_writer(fresh / name, private=True, binary=True) as stream:
                stream.write(content)
        with atomic_writer(fresh / SETTINGS, private=True) as stream:
            stream.write(json.dumps(document, indent=2) + "\n")
    return _hash_of(document)


def load_recogniser(folder: str | Path) -> Recogniser:
    """Read a recogniser folder; the network is in evaluation mode and float32.

    Raises ``ModelError`` where the folder is missing or incomplete, is of another kind or format, or where a file is
    not the one that it was saved with.
    """
    folder = Path(folder)
    document = read_settings(folder, KIND, FORMAT, ["description", "files"], "recogniser", "train-recogniser")
    where = f"{folder / SETTINGS}: description"
    description = check_settings(RecogniserDescription, document["description"], where)
    unit_files = _unit_files(description.unit_languages)
    contents = {
        name: checked_content(folder / name, document["files"].get(name, ""), "recogniser")
        for name in (WEIGHTS, STATISTICS, *unit_files)
    }
    units = Units(*(contents[name] for name in unit_files), languages=description.unit_languages)
    parts = json.loads(contents[STATISTICS])
    statistics = FeatureStatistics(*(torch.tensor(parts[name]) for name in ("mean", "inverse_deviation")))
    model = make_model(description.architecture, description.features, len(units) + 1)
    model.load_state_dict({name: value.float() for name, value in read_tensors(contents[WEIGHTS]).items()})
    return Recogniser(model.eval(), units, statistics, description, _hash_of(document))


def _unit_files(languages: Sequence[str]) -> list[str]:
    """One for each language that has units of its own."""
    return [f"units.{language}.model" for language in languages] or [UNITS]


def _hash_of(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
