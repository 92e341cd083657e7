"""The search against transformers' own, against a teacher-forced pass, and where spellings compete."""

import pytest
import torch
from tiny_whisper import make_model
from transformers import GenerationConfig
from transformers.generation import GenerationMixin
from transformers.modeling_outputs import BaseModelOutput

from tasks.speech.whisper.beam_search import SearchSpace, beam_search

SIZE, END = 16, 9
SPACE = SearchSpace(prompt=(10, 11), end=END, forbidden=(3, *range(10, SIZE)), forbidden_first=(0, END))
WIDTH, LONGEST = 4, 8


@pytest.fixture(scope="module")
def model():
    return make_model(SIZE, END)


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


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_same_transcripts_as_transformers(model, encoded, length_penalty):
    prompts = torch.tensor([SPACE.prompt] * len(encoded))
    generated = GenerationMixin.generate(
        model,
        encoder_outputs=BaseModelOutput(encoded),
        decoder_input_ids=prompts,
        generation_config=GenerationConfig(
            num_beams=WIDTH,
            num_return_sequences=WIDTH,
            max_new_tokens=LONGEST,
            length_penalty=length_penalty,
            suppress_tokens=list(SPACE.forbidden),
            begin_suppress_tokens=list(SPACE.forbidden_first),
            return_dict_in_generate=True,
            output_scores=True,
            eos_token_id=END,
            pad_token_id=END,
        ),
    )
    expected = []
    for ids in generated.sequences[:, len(SPACE.prompt) :].tolist():
        expected.append(tuple(ids[: ids.index(END)] if END in ids else ids))
    # What transformers returns at the limit has no end; one that ended is shorter than the limit.
    found = beam_search(model, encoded, SPACE, WIDTH, LONGEST, length_penalty)
    compared = 0
    for window, hypotheses in enumerate(found):
        theirs = expected[window * WIDTH : (window + 1) * WIDTH]
        scores = generated.sequences_scores[window * WIDTH : (window + 1) * WIDTH].tolist()
        scale = (len(hypotheses[0].pieces) + 1) ** length_penalty
        ended = [(ids, score) for ids, score in zip(theirs, scores, strict=True) if len(ids) < LONGEST]
        ours = [(one.pieces, one.score / scale) for one in hypotheses if one.finished][: len(ended)]
        assert [ids for ids, _ in ours] == [ids for ids, _ in ended]
        assert [score for _, score in ours] == pytest.approx([score for _, score in ended], abs=1e-4)
        compared += len(ended)
    assert compared >= 6


def test_length_penalty_keeps_the_scale_of_the_best_and_nothing_forbidden_is_written(model, encoded):
    for window, hypotheses in zip(encoded, beam_search(model, encoded, SPACE, WIDTH, LONGEST), strict=True):
        assert not {piece for one in hypotheses for piece in one.pieces} & {*SPACE.forbidden, END}
        assert all(one.pieces[:1] != (0,) for one in hypotheses)
        finished = [one for one in hypotheses if one.finished]
        length = len(finished[0].pieces) + 1
        for one in finished:
            mean = teacher_forced(model, window, one.pieces) / (len(one.pieces) + 1)
            assert one.score == pytest.approx(mean * length, abs=1e-4)
        assert finished[0].score == pytest.approx(teacher_forced(model, window, finished[0].pieces), abs=1e-4)


def test_spellings_of_the_same_words_compete(model, encoded):
    """Piece 4 is a mark and no word: every sequence of words comes once, and more of them come."""

    def words_of(pieces):
        return tuple(piece for piece in pieces if piece != 4)

    plain = beam_search(model, encoded, SPACE, 2 * WIDTH, LONGEST, 0.0)
    merged = beam_search(model, encoded, SPACE, 2 * WIDTH, LONGEST, 0.0, words_of)
    for window, hypotheses in zip(encoded, merged, strict=True):
        for one in hypotheses:
            assert one.score == pytest.approx(teacher_forced(model, window, one.pieces), abs=1e-4)
    distinct = [len({words_of(one.pieces) for one in hypotheses}) for hypotheses in merged]
    assert distinct == [len(hypotheses) for hypotheses in merged]
    assert sum(distinct) > sum(len({words_of(one.pieces) for one in hypotheses}) for hypotheses in plain)


def test_a_wide_beam_finds_all_short_transcripts(model, encoded):
    """8 pieces may be written, 7 of them first: 7 transcripts of one piece, 7 x 8 of two and 7 x 8 x 8 of three."""
    hypotheses = beam_search(model, encoded[:1], SPACE, 600, 4, 0.0)[0]
    assert len([one for one in hypotheses if len(one.pieces) == 3]) > 0
    short = [one for one in hypotheses if len(one.pieces) <= 2]
    assert len(short) == 7 + 7 * 8
    scores = [teacher_forced(model, encoded[0], one.pieces) for one in short]
    assert [one.score for one in short] == pytest.approx(scores, abs=1e-4)
    assert scores == sorted(scores, reverse=True)


def test_the_limit_leaves_unfinished_ones(model, encoded):
    space = SearchSpace(SPACE.prompt, END, (*SPACE.forbidden, END), SPACE.forbidden_first)
    for hypotheses in beam_search(model, encoded, space, WIDTH, 3):
        assert [len(one.pieces) for one in hypotheses] == [3] * WIDTH
        assert not any(one.finished for one in hypotheses)


def test_windows_do_not_depend_on_their_neighbours(model, encoded):
    together = beam_search(model, encoded, SPACE, WIDTH, LONGEST)
    for window, hypotheses in enumerate(together):
        alone = beam_search(model, encoded[window : window + 1], SPACE, WIDTH, LONGEST)[0]
        assert [one.pieces for one in alone] == [one.pieces for one in hypotheses]
        assert [one.score for one in alone] == pytest.approx([one.score for one in hypotheses], abs=1e-4)
