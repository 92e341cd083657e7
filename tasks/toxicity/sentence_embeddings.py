"""Sentence embeddings: the mean of an encoder's outputs, as MiniLM was trained for."""

from collections.abc import Sequence

import numpy as np

from tasks.errors import ModelError
from tasks.model_source import locate_model, unreachable

_AT_ONCE, _LONGEST = 64, 64
"""Sentences of a batch, and pieces after which a sentence is cut off."""


class SentenceEncoder:
    """An encoder by folder, ``package:NAME/FOLDER`` or hub name."""

    def __init__(self, name: str) -> None:
        """Raises ``ModelError`` if the encoder is missing."""
        import transformers
        from transformers import AutoModel, AutoTokenizer

        from tasks.packed_linear import pack_linear_layers

        # A masked LM's head is no part of it, and left out with a message.
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        self.name, source = name, locate_model(name)
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(source)
            self._model = AutoModel.from_pretrained(source).eval()
        except (OSError, ValueError, KeyError) as error:
            raise unreachable(name, error) from None
        if self._tokenizer.pad_token is None:
            raise ModelError(f"model {name!r} pads no sentences, so it is no encoder; name one such as MiniLM")
        pack_linear_layers(self._model)

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of length 1 each, (N, D) float32."""
        import torch
        from tqdm import tqdm

        order = np.argsort([len(text) for text in texts], kind="stable")
        found: np.ndarray = np.zeros((len(texts), self._model.config.hidden_size), dtype=np.float32)
        for begin in tqdm(range(0, len(texts), _AT_ONCE), desc="embedding", unit="batch", disable=None, leave=False):
            rows = order[begin : begin + _AT_ONCE]
            batch = [texts[row] for row in rows.tolist()]
            read = self._tokenizer(batch, padding=True, truncation=True, max_length=_LONGEST, return_tensors="pt")
            with torch.inference_mode():
                output = self._model(**read).last_hidden_state  # (B, T, D)
            seen = read["attention_mask"][..., None]
            means = (output * seen).sum(1) / seen.sum(1)
            found[rows] = torch.nn.functional.normalize(means, dim=1).numpy()
        return found
