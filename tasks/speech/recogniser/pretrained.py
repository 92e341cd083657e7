"""``torchaudio.pipelines.EMFORMER_RNNT_BASE_LIBRISPEECH`` as a recogniser like ours.

Its three files come from a folder where they were put by hand, from where torchaudio keeps its downloads, or, where
that is allowed, from the network. The weights are read with ``weights_only=True``: nothing in the file is run.
"""

import json
import pickle
from pathlib import Path

import torch

from tasks.errors import ModelError
from tasks.speech.recogniser.features import FeatureStatistics
from tasks.speech.recogniser.recogniser import Recogniser, RecogniserDescription, make_model
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
