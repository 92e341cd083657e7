"""The recogniser's network: torchaudio's Emformer transducer."""

from typing import TYPE_CHECKING

import torch

from tasks.speech.recogniser.settings import FeatureSettings, RecogniserArchitecture
from tasks.torch_setup import stand_in_for_torchaudio_extension

if TYPE_CHECKING:
    from torchaudio.models import RNNT

_NORM_EPSILON = 1e-3


def make_model(architecture: RecogniserArchitecture, features: FeatureSettings, symbols: int, seed: int = 0) -> "RNNT":
    """A network with new weights, a function of ``seed``; ``symbols`` counts the blank, which is the last."""
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
            lstm_layer_norm_epsilon=_NORM_EPSILON,
            lstm_dropout=architecture.predictor_dropout,
        )


def parameter_count(model: torch.nn.Module) -> int:
    """Number of weights."""
    return sum(parameter.numel() for parameter in model.parameters())
