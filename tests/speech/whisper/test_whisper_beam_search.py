"""The search against Whisper's own ``generate``."""

import pytest
import torch
from tiny_whisper import make_model
from transformers import GenerationConfig

from tasks.speech.whisper.recogniser import beam_search

SIZE, END = 16, 9
PROMPT, WIDTH, LONGEST = [10, 11], 4, 12
FORBIDDEN = {"suppress_tokens": [3, *range(10, SIZE)], "begin_suppress_tokens": [0, END]}
SEARCH = GenerationConfig(
    num_beams=WIDTH, length_penalty=1.0, max_new_tokens=LONGEST, eos_token_id=END, pad_token_id=END, **FORBIDDEN
)


@pytest.fixture(scope="module")
def model():
    model = make_model(SIZE, END)
    model.generation_config.update(**FORBIDDEN)
    return model


def test_the_best_transcript_is_the_one_of_whispers_own_generate(model):
    """A function of transformers that this search does not use. It ranks by the mean over the pieces, too."""
    for features in torch.randn(6, 1, 80, 200, generator=torch.Generator().manual_seed(1)):
        with torch.inference_mode():
            encoded = model.model.encoder(features).last_hidden_state[0]
        (theirs,) = model.generate(
            input_features=features,
            decoder_input_ids=torch.tensor([PROMPT]),
            num_beams=WIDTH,
            max_new_tokens=LONGEST,
        ).tolist()
        assert list(beam_search(model, encoded, PROMPT, SEARCH)[0].pieces) == theirs
