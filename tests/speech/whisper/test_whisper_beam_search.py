"""The search against Whisper's own ``generate``, and its scores against a teacher-forced pass."""

import pytest
import torch
from tiny_whisper import make_model
from transformers.modeling_outputs import BaseModelOutput

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


@pytest.fixture(scope="module")
def encoded(model):
    features = torch.randn(3, 80, 200, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        return model.model.encoder(features).last_hidden_state


def teacher_forced(model, encoded, pieces):
    """Sum of log-probabilities of pieces and end, from one pass of transformers' model."""
    ids = torch.tensor([[*SPACE.prompt, *pieces]])
    with torch.inference_mode():
        logits = model(encoder_outputs=BaseModelOutput(encoded[None]), decoder_input_ids=ids).logits[0]
    following = logits[len(SPACE.prompt) - 1 :].log_softmax(-1)
    targets = torch.tensor([*pieces, END])
    return float(following.gather(1, targets[:, None]).sum())


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


def test_length_penalty_keeps_the_scale_of_the_best_and_nothing_forbidden_is_written(model, encoded):
    for window in encoded:
        hypotheses = beam_search(model, window, SPACE, WIDTH, LONGEST)
        assert not {piece for one in hypotheses for piece in one.pieces} & {*SPACE.forbidden, END}
        assert all(one.pieces[:1] != (0,) for one in hypotheses)
        finished = [one for one in hypotheses if one.finished]
        length = len(finished[0].pieces) + 1
        for one in finished:
            mean = teacher_forced(model, window, one.pieces) / (len(one.pieces) + 1)
            assert one.score == pytest.approx(mean * length, abs=1e-4)
        assert finished[0].score == pytest.approx(teacher_forced(model, window, finished[0].pieces), abs=1e-4)
