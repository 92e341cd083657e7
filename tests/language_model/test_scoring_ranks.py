"""Processes that score a text together get what one alone gets."""

import numpy as np
import torch
from torch import distributed, multiprocessing

from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.transformer import scoring
from tasks.language_model.transformer.model import TransformerLanguageModel


def _score(rank: int, address: str, output: str, model: TransformerLanguageModel, text: EncodedText) -> None:
    torch.set_num_threads(1)
    scoring.BATCH_TOKENS = 16
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    try:
        scores = scoring.score_targets(model, text)
        np.save(f"{output}{rank}.npy", np.stack([scores.log_probability, scores.marker_log_probability]))
    finally:
        distributed.destroy_process_group()


def test_two_processes_score_as_one(tmp_path, encoded, small_model, monkeypatch):
    monkeypatch.setattr(scoring, "BATCH_TOKENS", 16)
    model = small_model(seed=5)
    text = encoded(["a b c", "d unheard", "a b c d a b c d a b c d", "c", "d a", "b b b b b b"])
    alone = scoring.score_targets(model, text)
    output = str(tmp_path / "rank")
    multiprocessing.spawn(_score, (f"file://{tmp_path / 'meeting'}", output, model, text), nprocs=2)
    for rank in (0, 1):
        found = np.load(f"{output}{rank}.npy")
        assert np.array_equal(found[0], alone.log_probability)
        assert np.array_equal(found[1], alone.marker_log_probability)
    assert (alone.log_probability < 0).all()
