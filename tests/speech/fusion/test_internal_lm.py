"""Internal language models and language models over units: sums by hand, and inside the search."""

import pytest
import torch
from tiny_recogniser import Pieces

from tasks.errors import ModelError
from tasks.speech.fusion.fusion_weights import weighted
from tasks.speech.fusion.unit_scorers import SpelledUnits, UnitModel, WordCounts, ZeroEncoder, unit_vocabulary
from tasks.speech.rescoring.settings import SearchSettings
from tasks.speech.rescoring.tuning import BONUS, INTERNAL
from tasks.speech.search.beam_search import beam_search
from tasks.speech.search.scorer import sentence_scores

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
    (found,) = sentence_scores(ZeroEncoder(), [(1, 2)], transducer, BLANK)
    rows = torch.log_softmax(transducer.weight[:, :BLANK], 1)  # the row of a unit is what stands behind it
    assert found == pytest.approx(-(rows[BLANK, 1] + rows[1, 2]).item(), abs=1e-5)


def test_search_adds_what_the_parts_say(transducer):
    frames = [torch.randn(length, 6, generator=torch.Generator().manual_seed(length)) for length in (5, 3)]
    settings = SearchSettings(beam_width=4, nbest=4, step_max_symbols=3)
    scorers = {BONUS: WordCounts(SpelledUnits(UNITS)), INTERNAL: ZeroEncoder()}
    fusion = weighted(scorers, {BONUS: 0.7, INTERNAL: 0.4})
    found = [hypothesis for of_one in beam_search(transducer, BLANK, frames, settings, fusion) for hypothesis in of_one]
    of_units = sentence_scores(ZeroEncoder(), [h.units for h in found], transducer, BLANK)
    assert [h.parts[INTERNAL] for h in found] == pytest.approx(of_units.tolist(), abs=1e-4)
    for h in found:
        assert h.parts[BONUS] == len(UNITS.decode(h.units).split())
        total = h.transducer + 0.7 * h.parts[BONUS] + 0.4 * h.parts[INTERNAL]
        assert h.score == pytest.approx(total / (len(h.units) + 2), abs=1e-9)
    assert any(h.parts[BONUS] for h in found)


def test_score_of_units_is_the_models_own_and_one_of_other_units_is_refused(transducer, tmp_path):
    from tasks.language_model.opening import open_language_model
    from tasks.language_model.settings import ArchitectureSettings
    from tasks.language_model.transformer.model import TransformerLanguageModel, save_model
    from tasks.language_model.vocabulary import END_ID, SPECIAL_TOKENS, START_ID

    vocabulary = unit_vocabulary(PIECES)
    model = TransformerLanguageModel(
        ArchitectureSettings(layers=1, heads=2, width=8, maximum_tokens=16), len(vocabulary)
    )
    model.initialise(1)
    for parameter in model.parameters():
        parameter.data.mul_(10)
    save_model(tmp_path / "units", model.eval(), vocabulary)
    score = UnitModel(open_language_model(tmp_path / "units").next_words(), PIECES)
    (found,) = sentence_scores(score, [(1, 2, 3)], transducer, BLANK)
    ids = [START_ID, *(unit + len(SPECIAL_TOKENS) for unit in (1, 2, 3)), END_ID]
    with torch.no_grad():
        rows = torch.log_softmax(model.logits(torch.tensor([ids])), 2)[0]
    assert found == pytest.approx(sum(rows[place, ids[place + 1]].item() for place in range(4)), abs=1e-4)
    with pytest.raises(ModelError, match="over 4 tokens that are not the 5 units"):
        UnitModel(open_language_model(tmp_path / "units").next_words(), [*PIECES, "d"])
