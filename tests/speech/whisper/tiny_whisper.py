"""A Whisper of one layer with random weights, and a tokenizer whose pieces are the 256 bytes."""

from pathlib import Path

import numpy as np
import soundfile
import torch
from transformers import GenerationConfig, WhisperConfig, WhisperForConditionalGeneration, WhisperTokenizer
from transformers.convert_slow_tokenizer import bytes_to_unicode

from tasks.speech.audio.manifest import Utterance, write_manifest

RATE = 16_000
END, START, ENGLISH, GERMAN, TRANSCRIBE, NO_TIMESTAMPS = range(256, 262)
SIZE = 270
WINDOW_SECONDS = 2


def make_model(size: int = SIZE, end: int = END) -> WhisperForConditionalGeneration:
    """Weights are drawn with a wide spread, so that no two transcripts are equally probable."""
    torch.manual_seed(7)
    config = WhisperConfig(
        vocab_size=size, num_mel_bins=80, d_model=8, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=32,
        decoder_layers=1, decoder_attention_heads=2, decoder_ffn_dim=32, max_source_positions=50 * WINDOW_SECONDS,
        max_target_positions=24, init_std=0.5, bos_token_id=end, eos_token_id=end, pad_token_id=end,
        decoder_start_token_id=end + 1,
    )  # fmt: skip
    model = WhisperForConditionalGeneration(config).eval()
    with torch.no_grad():
        # The end is the padding too, and begins as zeros: it would never be chosen.
        model.model.decoder.embed_tokens.weight[end].normal_(std=1.0)
    model.generation_config = GenerationConfig(
        eos_token_id=end, pad_token_id=end, decoder_start_token_id=end + 1, is_multilingual=False,
        no_timestamps_token_id=NO_TIMESTAMPS, begin_suppress_tokens=[32, end],
    )  # fmt: skip
    return model


def save_folder(folder: Path) -> str:
    """A folder as ``from_pretrained`` wants it."""
    model = make_model()
    model.save_pretrained(folder)
    vocabulary = {bytes_to_unicode()[byte]: byte for byte in range(256)}
    vocabulary["<|endoftext|>"] = END
    WhisperTokenizer(vocab=vocabulary, merges=[]).save_pretrained(folder)
    return str(folder)


def write_noise(folder: Path, seconds: dict[str, float]) -> str:
    """A manifest of noise of given lengths, with a second of silence in the middle of what is long."""
    folder.mkdir(parents=True, exist_ok=True)
    utterances = []
    for number, (name, length) in enumerate(seconds.items()):
        samples = 0.1 * np.random.default_rng(number).standard_normal(int(length * RATE))
        soundfile.write(folder / f"{name}.wav", samples.astype(np.float32), RATE)
        utterances.append(Utterance(name, folder / f"{name}.wav", "a word or two", synthetic=True))
    write_manifest(folder / "manifest.jsonl", utterances)
    return str(folder / "manifest.jsonl")
