"""Internal language models and language models over units: sums by hand, and inside the search."""

import numpy as np
import pytest
import torch
from tiny_recogniser import Pieces

from tasks.errors import ModelError, SpeechError
from tasks.speech.fusion.prefix_score import SpelledUnits, ZeroEncoder, sentence_log_probabilities, unit_bigram
from tasks.speech.fusion.shallow_fusion import FusionWeights, ShallowFusion
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.search.beam_search import beam_search

PIECES = ["<unk>", "\u2581a", "b", "\u2581c"]
BLANK = len(PIECES)
UNITS = Pieces(*PIECES)


class Transducer(torch.nn.Module):
    """Symbols' scores depend on the frame and on the last unit alone."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(6, BLANK + 1, generator=torch.Generator().manual_seed(4)))

    def predict(self, units, lengths, state):
        return torch.nn.functional.one_hot(units, 6).float(), lengths, [[units.float()]]

    def join(self, frames, frame_lengths, outputs, lengths):
        return ((frames + outputs)[:, 0] @ self.weight)[:, None, None], frame_lengths, lengths


@pytest.fixture
def transducer():
    return Transducer().eval()


def test_zero_encoder_is_predictor_and_joiner_without_blank(transducer):
    (found,) = sentence_log_probabilities(ZeroEncoder(), [(1, 2)], transducer, BLANK)
    rows = torch.log_softmax(transducer.weight[:, :BLANK], 1)  # the row of a unit is what stands behind it
    assert found == pytest.approx((rows[BLANK, 1] + rows[1, 2]).item(), abs=1e-5)


def test_bigram_by_hand():
    bigram = unit_bigram([[1, 2], [1, 3]], BLANK)
    # Behind 1 stand 2 and 3, once each: (1 - 0.5) / 2, and 0.5 x 2 / 2 of what units have alone, (1 + 1) / (4 + 4).
    (found,) = sentence_log_probabilities(bigram, [(1, 2)], Transducer(), BLANK)
    first = 1.5 / 2 + 0.5 * 1 / 2 * 3 / 8
    assert found == pytest.approx(np.log(first) + np.log(0.25 + 0.5 * 0.25), abs=1e-6)
    assert np.exp(bigram._table).sum(axis=1) == pytest.approx(np.ones(BLANK + 1), abs=1e-5)
    with pytest.raises(SpeechError, match="no word"):
        unit_bigram([[]], BLANK)


@pytest.mark.parametrize(
    "internal", [ZeroEncoder, lambda: unit_bigram([[1, 2], [1, 3, 3]], BLANK)], ids=["zero", "lodr"]
)
def test_search_adds_what_the_parts_say(transducer, internal):
    frames = [torch.randn(length, 6, generator=torch.Generator().manual_seed(length)) for length in (5, 3)]
    settings = SearchSettings(beam_width=4, nbest=4, length_normalisation="never", step_max_symbols=3)
    weights = FusionWeights(0.0, 0.7, 0.4)
    fusion = ShallowFusion(weights, SpelledUnits(UNITS), None, internal())
    found = [hypothesis for of_one in beam_search(transducer, BLANK, frames, settings, fusion) for hypothesis in of_one]
    of_units = sentence_log_probabilities(internal(), [h.units for h in found], transducer, BLANK)
    assert [h.internal for h in found] == pytest.approx(of_units.tolist(), abs=1e-4)
    for h in found:
        assert h.words == len(UNITS.decode(h.units).split())
        assert h.score == pytest.approx(h.transducer + 0.7 * h.words - 0.4 * h.internal, abs=1e-9)
    assert any(h.words for h in found)


def test_weight_of_zero_is_the_search_without_fusion(transducer):
    frames = [torch.randn(6, 6, generator=torch.Generator().manual_seed(1))]
    settings = SearchSettings(beam_width=4, nbest=4)
    fusion = ShallowFusion(FusionWeights(0.0, 0.0), SpelledUnits(UNITS), None)
    alone = beam_search(transducer, BLANK, frames, settings)
    fused = beam_search(transducer, BLANK, frames, settings, fusion)
    assert [(h.units, h.score) for h in alone[0]] == [(h.units, h.score) for h in fused[0]]


def test_subword_score_is_the_models_own_and_one_of_other_units_is_refused(transducer, tmp_path):
    from tasks.language_model.language_models import open_language_model
    from tasks.language_model.settings import ArchitectureSettings
    from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
    from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID
    from tasks.speech.fusion.subword_fusion import SubwordScore, unit_vocabulary

    vocabulary = unit_vocabulary(PIECES)
    model = TransformerLanguageModel(
        ArchitectureSettings(layers=1, heads=2, width=8, maximum_tokens=16), len(vocabulary)
    )
    model.initialise(1)
    for parameter in model.parameters():
        parameter.data.mul_(10)
    save_model(tmp_path / "units", model.eval(), vocabulary)
    score = SubwordScore(open_language_model(tmp_path / "units").next_words(), PIECES)
    (found,) = sentence_log_probabilities(score, [(1, 2, 3)], transducer, BLANK)
    ids = [START_ID, *(unit + len(SPECIAL_TOKENS) for unit in (1, 2, 3)), END_ID]
    with torch.no_grad():
        rows = torch.log_softmax(model.logits(torch.tensor([ids])), 2)[0]
    assert found == pytest.approx(sum(rows[place, ids[place + 1]].item() for place in range(4)), abs=1e-4)
    with pytest.raises(ModelError, match="over 4 units"):
        SubwordScore(open_language_model(tmp_path / "units").next_words(), [*PIECES, "d"])


def test_a_unit_across_words_is_refused():
    with pytest.raises(ModelError, match="across two words"):
        SpelledUnits(Pieces(*PIECES, "\u2581a\u2581b"))
