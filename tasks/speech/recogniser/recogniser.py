"""A recogniser: its network, units and features, and its folder.

The folder has ``model.safetensors``, ``units.model`` (or one for each language, ``units.en.model``),
``statistics.json`` and ``settings.json``. The last one holds the recogniser's description and the SHA-256 of the other
files, so that a damaged or mixed-up folder is detected when it is read. Nothing is pickled.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from pydantic import Field
from safetensors.torch import load as read_tensors
from safetensors.torch import save as tensors_as_bytes
from torch import Tensor

from tasks.errors import SpeechError
from tasks.files.atomic_file import atomic_folder, atomic_writer
from tasks.language_model.model_folder import SETTINGS, WEIGHTS, check_replaceable, checked_content, read_settings
from tasks.settings.base import Settings
from tasks.settings.checks import as_plain, check_settings
from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture
from tasks.speech.recogniser.units import Units
from tasks.torch_setup import stand_in_for_torchaudio_extension

if TYPE_CHECKING:
    from torchaudio.models import RNNT


_GAIN = float(torch.iinfo(torch.int16).max) ** 2
"""Power of a full-scale wave of 16-bit numbers, the scale of the spectrogram in torchaudio's pipelines."""
_SMALLEST_DEVIATION = 1e-5


@dataclass(frozen=True)
class FeatureStatistics:
    """Mean and inverse standard deviation of each band over the training speech; float32 (bands,)."""

    mean: Tensor
    inverse_deviation: Tensor

    def normalise(self, features: Tensor) -> Tensor:
        """Features (T, bands) with mean 0 and deviation 1 over the training speech."""
        return (features - self.mean) * self.inverse_deviation

    @classmethod
    def of(cls, utterances: Iterable[Tensor]) -> "FeatureStatistics":
        """Statistics of the features (T, bands) of utterances, summed in float64.

        Raises ``SpeechError`` if there is no utterance, or if a band is constant.
        """
        frames, total, squares = 0, torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
        for features in utterances:
            values = features.double()
            frames += len(values)
            total = total + values.sum(0)
            squares = squares + values.square().sum(0)
        if frames < 2:
            raise SpeechError("there is no training speech; the features' mean and deviation need some")
        mean = total / frames
        deviation = (squares / frames - mean.square()).clamp(min=0).sqrt()
        if float(deviation.min()) < _SMALLEST_DEVIATION:
            raise SpeechError("a band of the training speech never changes; is all of it silence?")
        return cls(mean.float(), (1 / deviation).float())


def log_mel(samples: Tensor, settings: FeatureSettings) -> Tensor:
    """Log-mel features (T, bands) of a signal (samples,) in [-1, 1], one frame every ``hop_samples``; float32.

    At very low energy the logarithm is replaced by a line, so that silence has no large negative values. The signal is
    longer than half a window.
    """
    energies = _mel_spectrogram(settings)(samples).transpose(0, 1) * _GAIN  # (T, bands)
    logarithms = torch.where(energies > math.e, energies.clamp(min=math.e).log(), energies)
    # torchaudio divides by e whatever is small after the logarithm: energies up to e^e, not up to e. Published weights
    # were trained on features with that jump.
    return torch.where(logarithms > math.e, logarithms, logarithms / math.e)


@cache
def _mel_spectrogram(settings: FeatureSettings) -> Callable[[Tensor], Tensor]:
    stand_in_for_torchaudio_extension()
    from torchaudio.transforms import MelSpectrogram

    return MelSpectrogram(
        sample_rate=settings.sample_rate,
        n_fft=settings.window_samples,
        hop_length=settings.hop_samples,
        n_mels=settings.bands,
    )


def pad_features(utterances: Sequence[Tensor], architecture: RecogniserArchitecture) -> tuple[Tensor, Tensor]:
    """Normalised features (T, bands) of several utterances as a batch (B, T', bands), and their lengths (B,).

    ``T'`` is a whole number of segments, followed by the encoder's right context. Padding is 0, the mean.
    """
    lengths = torch.tensor([len(features) for features in utterances])
    segment = architecture.segment_frames
    longest = -(-int(lengths.max()) // segment) * segment + architecture.right_context_frames
    batch = torch.zeros(len(utterances), longest, utterances[0].shape[1])
    for row, features in zip(batch, utterances, strict=True):
        row[: len(features)] = features
    return batch, lengths


def make_model(architecture: RecogniserArchitecture, features: FeatureSettings, symbols: int, seed: int = 0) -> "RNNT":
    """A network with new weights, determined by ``seed``; ``symbols`` includes the blank, which is the last."""
    stand_in_for_torchaudio_extension()
    from torchaudio.models.rnnt import emformer_rnnt_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return emformer_rnnt_model(
            input_dim=features.bands,
            encoding_dim=architecture.encoding,
            num_symbols=symbols,
            segment_length=architecture.segment_frames,
            right_context_length=architecture.right_context_frames,
            time_reduction_input_dim=architecture.reduction_input,
            time_reduction_stride=architecture.reduction,
            transformer_num_heads=architecture.heads,
            transformer_ffn_dim=architecture.feed_forward,
            transformer_num_layers=architecture.layers,
            transformer_dropout=architecture.dropout,
            transformer_activation="gelu",
            transformer_left_context_length=architecture.left_context_frames,
            transformer_max_memory_size=architecture.memory,
            transformer_weight_init_scale_strategy="depthwise",
            transformer_tanh_on_mem=True,
            symbol_embedding_dim=architecture.predictor_width,
            num_lstm_layers=architecture.predictor_layers,
            lstm_layer_norm=architecture.predictor_norm,
            lstm_layer_norm_epsilon=1e-3,
            lstm_dropout=architecture.predictor_dropout,
        )


class RecogniserDescription(Settings):
    """Description of a recogniser: everything except its weights, units and statistics."""

    features: FeatureSettings
    architecture: RecogniserArchitecture
    origin: str
    """Short description of the weights' origin, such as ``trained on synthetic speech``."""
    synthetic: bool
    """Whether it was trained on synthesised speech."""
    unit_languages: list[str] = Field(default=[], exclude_if=lambda languages: not languages)
    """Languages of the blocks of units, in order; empty: units of one language, or shared by all languages."""


@dataclass(frozen=True)
class Recogniser:
    """A recogniser, from samples to encoded frames and from units to words."""

    model: "RNNT"
    """torchaudio's transducer, in evaluation mode."""
    units: Units
    feature_statistics: FeatureStatistics
    settings: RecogniserDescription
    hash: str = ""
    """SHA-256 of weights, units, statistics and settings; empty before it is saved."""

    def features(self, samples: Tensor) -> Tensor:
        """Normalised features (T, bands) of a signal (samples,) at the recogniser's sample rate."""
        return self.feature_statistics.normalise(log_mel(samples, self.settings.features))

    def encode(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Encoded frames (T', D) of several utterances, from normalised features."""
        return transcribe(self.model, features, self.settings.architecture)


@torch.no_grad()
def transcribe(model: "RNNT", features: Sequence[Tensor], architecture: RecogniserArchitecture) -> list[Tensor]:
    """Encoded frames (T', D) of whole utterances, from normalised features (T, bands); ``T' = T // reduction``.

    An utterance with fewer frames than ``reduction`` has no encoded frame.
    """
    batch, lengths = pad_features(features, architecture)
    # Lengths in whole segments: the amount of padding that torchaudio's encoder masks after a shorter utterance depends
    # on the longest utterance of the batch. For a single utterance, or in a stream, it masks none.
    segments = -(-lengths // architecture.segment_frames) * architecture.segment_frames
    device = next(model.parameters()).device
    encoded, _ = model.transcribe(batch.to(device), segments.to(device))
    frames = (lengths // architecture.reduction).tolist()
    return [row[:length].cpu() for row, length in zip(encoded, frames, strict=True)]


_KIND, _FORMAT = "emformer_transducer", 1
_UNITS, _STATISTICS = "units.model", "statistics.json"


def as_float16(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies to store. Raises ``SpeechError`` for a value that is not finite, such as one beyond float16's range."""
    stored = {name: value.detach().cpu().half().contiguous() for name, value in tensors.items()}
    for name, value in stored.items():
        if not bool(torch.isfinite(value).all()):
            raise SpeechError(f"{name!r} is not finite as float16; leave the recording out, or train more slowly")
    return stored


def save_recogniser(folder: str | Path, recogniser: Recogniser) -> str:
    """Write a recogniser folder and return the recogniser's hash; an earlier folder stays until the new is complete.

    Weights are stored as float16. The folder has mode 0700 and its files 0600. Raises ``ModelError`` if the folder
    holds something else.
    """
    check_replaceable(folder)
    weights = as_float16(recogniser.model.state_dict())
    statistics = {name: value.tolist() for name, value in vars(recogniser.feature_statistics).items()}
    contents = {WEIGHTS: tensors_as_bytes(weights), _STATISTICS: json.dumps(statistics).encode()}
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
