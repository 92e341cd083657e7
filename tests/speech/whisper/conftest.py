"""Tests of Whisper: transformers' code of it imports torchaudio."""

from tasks.torch_setup import stand_in_for_torchaudio_extension

stand_in_for_torchaudio_extension()
