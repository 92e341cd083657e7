"""Tests of speech: transformers, which the tiny language models need, imports torchaudio; and their folder is found."""

from tasks.torch_setup import stand_in_for_torchaudio_extension

stand_in_for_torchaudio_extension()
