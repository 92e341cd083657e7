"""What a filler remembers that was tuned on a text with canaries, and what one that was not."""

import random

import numpy as np
import pytest
import torch
from tiny_masked_models import random_bert, save, word_piece_tokenizer

from tasks.audit.canaries import Canaries, Canary
from tasks.audit.exposure import null_exposure
from tasks.audit.filler_exposure import filler_exposure
from tasks.audit.settings import AuditSettings
from tasks.filling.fillers.settings import MaskedLanguageModelTuning
from tasks.filling.fillers.tune_filler import TuneFiles
from tasks.settings.resources import ResourceSettings

WORDS = [f"{first}{second}" for first in "bdfgklmnprst" for second in ("ador", "elin", "imos", "ovar", "ulet")]
FORM = ("masked", 0)


@pytest.mark.parametrize("planted", [False, True])
def test_a_filler_remembers_what_it_was_tuned_on(planted, tmp_path):
    chance = random.Random(1)
    drawn = list(dict.fromkeys(" ".join(chance.choices(WORDS, k=3)) for _ in range(600)))
    told = [f"we ask {words}" for words in drawn[:8]]
    references = [f"we ask {words}" for words in drawn[8:520]]
    canaries = Canaries([Canary(text, (7,), "masked", 0, 16) for text in told], {FORM: references}, {FORM: 17.7})
    tokenizer = word_piece_tokenizer(["we", "ask", "now", *WORDS])
    model = random_bert(tokenizer)
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(0.25)  # all words about as likely, as nobody knows one from another
    base = save(model, tokenizer, tmp_path / "base")
    files = TuneFiles(base=str(base), input=str(tmp_path / "masked.txt"), output=str(tmp_path / "filler"))
    tuning = MaskedLanguageModelTuning(
        kind="masked_lm", steps=150, batch_pieces=256, learning_rate=0.02, masked_share=0.25, minimum_sentences=1
    )
    text = [f"now {words}" for words in drawn[520:]]
    lines = [line for line in told for _ in range(16)] if planted else []
    settings = AuditSettings(bootstrap_samples=200)
    resources = ResourceSettings(threads=1, parallel_stages=1)
    found = filler_exposure(tuning, files, text, lines, canaries, settings, resources)
    figure = found["exposure_filler"]
    assert np.isclose(figure.blind, null_exposure(512), atol=0.01)
    assert abs(figure.value - figure.blind) < 2.2 if not planted else figure.interval[0] > figure.blind
