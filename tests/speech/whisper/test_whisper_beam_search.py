"""The search against Whisper's own ``generate``."""

import pytest
import torch
from tiny_whisper import make_model

from tasks.speech.whisper.beam_search import SearchSpace, beam_search

SIZE, END = 16, 9
SPACE = SearchSpace(prompt=(10, 11), end=END, forbidden=(3, *range(10, SIZE)), forbidden_first=(0, END))
WIDTH, LONGEST = 4, 12


@pytest.fixture(scope="module")
def model():
    model = make_model(SIZE, END)
    model.generation_config.suppress_tokens = list(SPACE.forbidden)
    model.generation_config.begin_suppress_tokens = list(SPACE.forbidden_first)
    return model


def test_the_best_transcript_is_the_one_of_whispers_own_generate(model):
    """A function of transformers that this search does not use. It ranks by the mean over the pieces, too."""
    for features in torch.randn(6, 1, 80, 200, generator=torch.Generator().manual_seed(1)):
        with torch.inference_mode():
            encoded = model.model.encoder(features).last_hidden_state[0]
        (theirs,) = model.generate(
            input_features=features,
            decoder_input_ids=torch.tensor([SPACE.prompt]),
            num_beams=WIDTH,
            max_new_tokens=LONGEST,
        ).tolist()
        assert list(beam_search(model, encoded, SPACE, WIDTH, LONGEST)[0].pieces) == theirs
