"""A Whisper of one layer with random weights, and a tokenizer whose pieces are the 256 bytes."""

from pathlib import Path

import torch
from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration, WhisperTokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

END, NO_TIMESTAMPS, SIZE = 256, 261, 270
WINDOW_SECONDS = 2


def save_folder(folder: Path) -> str:
    """A folder as ``from_pretrained`` wants it. The weights are drawn with a wide spread, so that no two texts tie."""
    torch.manual_seed(7)
    config = WhisperConfig(
        vocab_size=SIZE, num_mel_bins=80, d_model=8, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=32,
        decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=32, max_source_positions=50 * WINDOW_SECONDS,
        max_target_positions=24, init_std=0.5, bos_token_id=END, eos_token_id=END, pad_token_id=END,
        decoder_start_token_id=END + 1,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        # The end is the padding too, and begins as zeros: it would never be chosen.
        model.model.decoder.embed_tokens.weight[END].normal_(std=1.0)
    model.generation_config = GenerationConfig(
        eos_token_id=END, pad_token_id=END, decoder_start_token_id=END + 1, is_multilingual=False,
        no_timestamps_token_id=NO_TIMESTAMPS, begin_suppress_tokens=[32, END],
    )  # fmt: skip
    model.save_pretrained(folder)
    vocabulary = {bytes_to_unicode()[byte]: byte for byte in range(256)}
    vocabulary["<|endoftext|>"] = END
    WhisperTokenizer(vocab=vocabulary, merges=[]).save_pretrained(folder)
    return str(folder)
