"""An original checkpoint of OpenAI's (``tiny.en.pt``) as a model of transformers."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import ModelError

if TYPE_CHECKING:
    import torch
    from transformers import WhisperForConditionalGeneration

_SIZES = (
    "n_mels", "n_vocab", "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer", "n_text_ctx", "n_text_state",
    "n_text_head", "n_text_layer",
)  # fmt: skip
_MULTILINGUAL_SIZE = 51865
"""The size of the vocabulary from which on a model of OpenAI's knows more than English."""
_RENAMED = (
    (r"^(encoder|decoder)\.", r"model.\1."),
    (r"\.blocks\.", ".layers."),
    (r"\.mlp\.0\.", ".fc1."),
    (r"\.mlp\.2\.", ".fc2."),
    (r"\.mlp_ln\.", ".final_layer_norm."),
    (r"\.cross_attn_ln\.", ".encoder_attn_layer_norm."),
    (r"\.attn_ln\.", ".self_attn_layer_norm."),
    (r"\.cross_attn\.", ".encoder_attn."),
    (r"\.attn\.", ".self_attn."),
    (r"\.query\.", ".q_proj."),
    (r"\.key\.", ".k_proj."),
    (r"\.value\.", ".v_proj."),
    (r"_attn\.out\.", "_attn.out_proj."),
    (r"\.positional_embedding$", ".embed_positions.weight"),
    (r"\.token_embedding\.", ".embed_tokens."),
    (r"\.(ln_post|ln)\.", ".layer_norm."),
)
"""What is called how there, and here; applied in this order."""


def load_original(path: str | Path) -> "WhisperForConditionalGeneration":
    """The model in float32, in eval mode.

    Only tensors and numbers are read from the file, no code. Raises ``ModelError`` where it is no checkpoint of
    Whisper's, or its weights do not fit its sizes.
    """
    import torch

    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
        sizes = {name: int(checkpoint["dims"][name]) for name in _SIZES}
        weights = {renamed(name): tensor.float() for name, tensor in checkpoint["model_state_dict"].items()}
    except Exception as error:
        raise ModelError(
            f"model file {str(path)!r} is no checkpoint of Whisper's with 'dims' and 'model_state_dict' "
            f"({type(error).__name__}); fetch it again"
        ) from None
    return _built(sizes, weights, path)


def renamed(name: str) -> str:
    """What transformers calls a weight: ``decoder.blocks.0.attn.query.weight`` is
    ``model.decoder.layers.0.self_attn.q_proj.weight``."""
    for pattern, replacement in _RENAMED:
        name = re.sub(pattern, replacement, name)
    return name


def _built(
    sizes: dict[str, int], weights: "dict[str, torch.Tensor]", path: str | Path
) -> "WhisperForConditionalGeneration":
    from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration
    from transformers.models.whisper.configuration_whisper import NON_SPEECH_TOKENS, NON_SPEECH_TOKENS_MULTI
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    multilingual = sizes["n_vocab"] >= _MULTILINGUAL_SIZE
    end = end_of_text(sizes["n_vocab"])
    config = WhisperConfig(
        vocab_size=sizes["n_vocab"],
        num_mel_bins=sizes["n_mels"],
        d_model=sizes["n_text_state"],
        encoder_layers=sizes["n_audio_layer"],
        encoder_attention_heads=sizes["n_audio_head"],
        encoder_ffn_dim=4 * sizes["n_audio_state"],
        decoder_layers=sizes["n_text_layer"],
        decoder_attention_heads=sizes["n_text_head"],
        decoder_ffn_dim=4 * sizes["n_text_state"],
        max_source_positions=sizes["n_audio_ctx"],
        max_target_positions=sizes["n_text_ctx"],
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=end,
        decoder_start_token_id=end + 1,
    )
    model = WhisperForConditionalGeneration(config)
    try:
        missing, unexpected = model.load_state_dict(weights, strict=False)
    except RuntimeError:
        raise ModelError(f"model file {str(path)!r}: its weights do not have the sizes that it states") from None
    missing = [name for name in missing if name != "proj_out.weight"]  # the same as the embedding
    if missing or unexpected:
        raise ModelError(
            f"model file {str(path)!r} lacks {len(missing)} weights of a Whisper model and has {len(unexpected)} that "
            "are none; fetch it again"
        )
    model.tie_weights()
    marks = marks_of(sizes["n_vocab"])
    unspoken = NON_SPEECH_TOKENS_MULTI if multilingual else NON_SPEECH_TOKENS
    model.generation_config = GenerationConfig(
        eos_token_id=end,
        decoder_start_token_id=end + 1,
        is_multilingual=multilingual,
        no_timestamps_token_id=marks["<|notimestamps|>"],
        suppress_tokens=unspoken,
        begin_suppress_tokens=[220, end],  # a blank, and an empty transcript
        lang_to_id={name: marks[name] for name in marks if name.strip("<|>") in LANGUAGES} if multilingual else None,
        task_to_id={"transcribe": marks["<|transcribe|>"]} if multilingual else None,
    )
    return model.eval()


def end_of_text(vocabulary_size: int) -> int:
    """Id of the end of a text: the first mark behind the pieces, of which multilingual models have one more."""
    return 50257 if vocabulary_size >= _MULTILINGUAL_SIZE else 50256


def marks_of(vocabulary_size: int) -> dict[str, int]:
    """Ids of the marks, in the order of OpenAI's tokenizer: start, languages, tasks, and what follows them.

    The number of languages follows from the size of the vocabulary: 1,501 time stamps end it.
    """
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    end = end_of_text(vocabulary_size)
    fixed = ("<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>")
    languages = vocabulary_size - end - 2 - len(fixed) - 1501
    names = ["<|startoftranscript|>", *(f"<|{code}|>" for code in list(LANGUAGES)[:languages]), *fixed]
    return {name: end + 1 + place for place, name in enumerate(names)}
