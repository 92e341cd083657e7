"""A causal language model with the pieces of words: how probable it finds them."""

from typing import Any

import numpy as np
import torch

from tasks.language_model.causal_lm.word_pieces import PieceText, WordPieces
from tasks.language_model.transformer.batching import Batch, batches_by_length, make_batch
from tasks.language_model.transformer.windows import divide, overlap_of

_MOST_POSITIONS = 1024
"""Longer sentences are read in windows, also where a model has room for more."""
_BATCH_PIECES = {"cpu": 512, "cuda": 8192}


class CausalModel:
    """The model (of transformers or peft), its tokenizer, and where it comes from."""

    def __init__(self, model: Any, pieces: WordPieces, name: str) -> None:
        self.model = model
        self.pieces = pieces
        self.name = name
        positions = getattr(model.config, "max_position_embeddings", None) or _MOST_POSITIONS
        self.maximum_pieces: int = min(positions, _MOST_POSITIONS)

    def scores(self, batch: Batch) -> torch.Tensor:
        """Scores (N, V) float32 of every next piece at the positions of a batch."""
        # Padding stands on the right, where nothing that counts can see it, so no mask is needed.
        logits = self.model(input_ids=batch.tokens, use_cache=False).logits
        return logits.flatten(0, 1).index_select(0, batch.positions).float()

    @torch.inference_mode()
    def log_probabilities(self, text: PieceText, *, markers: bool = False, title: str = "scoring") -> np.ndarray:
        """Log-probability of each piece of a text behind those before it in its sentence, in nats (P,).

        With ``markers`` that of all markers together in its place. What is no target has 0. A sentence that is longer
        than the model's window is read in windows that overlap by half, each piece scored once.
        """
        from tqdm import tqdm

        windows = divide(text.text, self.maximum_pieces, overlap_of(self.maximum_pieces))
        device = self.model.device
        wanted = torch.tensor(list(self.pieces.markers.values()), device=device)
        found = np.zeros(len(text.text.tokens))
        self.model.eval()
        batches = batches_by_length(windows, _BATCH_PIECES.get(device.type, _BATCH_PIECES["cuda"]))
        for chosen in tqdm(batches, desc=title, unit="batch", disable=None, leave=False):
            batch = make_batch(text.text, text.is_target, windows, chosen)
            columns = batch.positions.numpy() % batch.tokens.shape[1]
            places = windows.first[chosen][batch.rows.numpy()] + columns + 1
            batch = batch.to(device)
            scores = self.scores(batch)  # (N, V)
            own = scores[:, wanted].logsumexp(1) if markers else scores.gather(1, batch.targets[:, None]).squeeze(1)
            found[places] = (own - scores.logsumexp(1)).double().cpu().numpy()
        return found

    def word_log_probabilities(self, text: PieceText, words: int) -> np.ndarray:
        """Sum over the pieces of each of ``words`` words, in nats (words,)."""
        return np.bincount(text.word, weights=self.log_probabilities(text), minlength=words)
