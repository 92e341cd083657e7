"""Texts that a causal LM has read, with their keys and values, so that many continuations of a text cost little.

Texts are padded on the left and continuations on the right, so the pieces of a row have no hole between them.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache

from tasks.causal_model import NO_NUMBERS
from tasks.errors import ModelError
from tasks.filling.masked_lm.marker_scores import scores_at

if TYPE_CHECKING:
    from tasks.filling.causal_lm.language_model import CausalLanguageModel

_SHORTER, _LONGER = [5, 12, 19, 26, 33, 40], [3, 14, 25, 36, 47, 58, 69, 80, 91, 102, 113]
"""Pieces of the two texts of the test."""
_SAME = 5e-3
_SAME_IN_16_BITS = 0.1
"""Allowed rounding difference of scores, as a share of their spread over the vocabulary (root mean square)."""
_NOTHING = 1e-5
"""Allowed difference in addition, for scores that are all equal."""


def check_reading(language_model: "CausalLanguageModel") -> None:
    """Raise ``ModelError`` if texts that are read in parts have other scores than whole ones, as with models that have
    a recurrent state (RWKV, Mamba)."""
    size = language_model.model.get_input_embeddings().weight.shape[0]
    shorter, longer = ([piece % size for piece in pieces] for pieces in (_SHORTER, _LONGER))
    try:
        expected = torch.cat([ReadTexts(language_model, [text]).scores for text in (longer, shorter)])
        read = ReadTexts(language_model, [shorter[:4], longer[:9]])
        found = read.continued([1, 0], [longer[9:], shorter[4:]], [1, 1])
    except (ModelError, torch.cuda.OutOfMemoryError):
        raise
    except Exception:
        # A cache without keys and values may raise any exception.
        found = None
    if found is None or not _alike(found, expected, language_model.model.dtype):
        kind = getattr(language_model.model.config, "model_type", type(language_model.model).__name__)
        raise ModelError(
            f"model {language_model.name!r} (model_type {kind!r}) cannot fill. It scores a text in parts differently "
            "from the whole text. Models with a recurrent state or a special cache do so. Take another one, such as "
            "llama, gpt2, qwen2 or opt"
        )


def _alike(found: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether scores ``(2, V)`` are equal except for rounding and a constant per row."""
    found, expected = (scores - scores.mean(dim=1, keepdim=True) for scores in (found, expected))
    limit = _SAME if dtype == torch.float32 else _SAME_IN_16_BITS
    difference, spread = ((scores.square().mean(dim=1).sqrt()) for scores in (found - expected, expected))
    return bool((difference <= limit * spread + _NOTHING).all())


class ReadTexts:
    """``B`` texts that a model has read."""

    def __init__(self, language_model: "CausalLanguageModel", texts: Sequence[Sequence[int]]) -> None:
        """``texts``: pieces, at least one each. Raises ``ModelError`` if the model's scores are not finite."""
        self._language_model, self._device = language_model, language_model.model.device
        longest, padding = max(map(len, texts)), language_model.padding
        pieces = torch.tensor([[*[padding] * (longest - len(text)), *text] for text in texts])  # (B, T)
        self._lengths = torch.tensor(list(map(len, texts)))
        self._mask = (torch.arange(longest) >= longest - self._lengths[:, None]).long()  # (B, T)
        self._cache: Any = DynamicCache()
        places = [(row, longest - 1) for row in range(len(texts))]
        positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)
        self.scores = self._scores(self._cache, pieces, self._mask, positions, places)
        """``(B, V)`` float32: the scores after each text."""

    def continued(self, rows: Sequence[int], pieces: Sequence[Sequence[int]], wanted: Sequence[int]) -> torch.Tensor:
        """Scores ``(sum(wanted), V)`` float32 after the last ``wanted`` pieces of each of ``N`` continuations.

        ``rows``: the text of each continuation; ``pieces``: at least one each. The texts do not change.
        """
        index, counts = torch.tensor(rows), torch.tensor(list(map(len, pieces)))
        longest, padding = int(counts.max()), self._language_model.padding
        cache, on_device = DynamicCache(), index.to(self._device)
        for number, layer in enumerate(self._cache.layers):
            cache.update(layer.keys[on_device], layer.values[on_device], number)
        steps = torch.arange(longest)
        # Nothing attends to the padding after a continuation, but its position must exist.
        positions = self._lengths[index][:, None] + torch.minimum(steps, counts[:, None] - 1)
        places = [
            (row, len(new) - count + i)
            for row, (new, count) in enumerate(zip(pieces, wanted, strict=True))
            for i in range(count)
        ]
        return self._scores(
            cache,
            torch.tensor([[*new, *[padding] * (longest - len(new))] for new in pieces]),
            torch.cat([self._mask[index], (steps < counts[:, None]).long()], dim=1),
            positions,
            places,
        )

    def _scores(
        self,
        cache: Any,  # noqa: ANN401 - a cache of transformers
        pieces: torch.Tensor,
        mask: torch.Tensor,
        positions: torch.Tensor,
        places: Sequence[tuple[int, int]],
    ) -> torch.Tensor:
        """The scores at the ``places`` (row and column) of ``pieces`` that follow what the cache has."""
        language_model, device = self._language_model, self._device
        rows, columns = torch.tensor(places).to(device).unbind(dim=1)
        options: dict[str, Any] = {"position_ids": positions.to(device)} if language_model.takes_positions else {}
        started = time.perf_counter()
        with torch.inference_mode():
            scores = scores_at(
                language_model.model,
                rows,
                columns,
                input_ids=pieces.to(device),
                attention_mask=mask.to(device),
                past_key_values=cache,
                use_cache=True,
                **options,
            ).float()
            # The sum is finite only if all scores are; reading the sum also waits for the device.
            sound = bool(torch.isfinite(scores.sum()))
        language_model.seconds += time.perf_counter() - started
        if not sound:
            raise ModelError(f"filler {language_model.name!r} {NO_NUMBERS}")
        return scores
