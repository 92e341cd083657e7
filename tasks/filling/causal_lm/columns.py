"""What the columns of the kept keys and values mean to an architecture, and whether rows with holes are read rightly.

To most architectures a hole (``rows``) is nothing: what is masked is not seen, and positions are given by row. Others
measure distances in columns: those with a sliding window, which a hole makes narrower, and those with a penalty for
distance by column (MPT). They are right where no hole is inside a row, so the holes are closed before they are read.
Architectures that keep a state instead of keys and values (RWKV, Mamba) cannot take pieces back, and are refused.
"""

from typing import TYPE_CHECKING, Any

import torch

from tasks.causal_model import NO_NUMBERS
from tasks.errors import ModelError

if TYPE_CHECKING:
    from tasks.filling.causal_lm.language_model import CausalLanguageModel

_WINDOWS = (
    "sliding_window",
    "sliding_window_size",
    "sliding_windows",
    "window_size",
    "attention_window_size",
    "attention_window",
    "local_attention",
    "attention_chunk_size",
    "keep_window_size",
)
"""What configurations call the number of columns that a layer sees; one that no layer uses costs time only."""
_KNOWN, _IN_VAIN, _LONGER, _LAST = 4, 2, 9, 2
"""Pieces of the test: the shorter row's, those that it takes back, the longer row's, and the last ones of each."""
_SAME = 5e-3
_SAME_IN_16_BITS = 0.1
"""Scores may differ by rounding, which takes so much of their spread over the vocabulary (root mean squares)"""
_NOTHING = 1e-5
"""and so much where all are equal."""
_FAILURES = (
    ModelError,
    RuntimeError,
    ValueError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    NotImplementedError,
)
"""A cache of another kind than keys and values fails in a way of its own."""


def columns_that_count(config: Any, *, takes_positions: bool) -> int | None:
    """From how many columns on rows are to be read without holes; ``None`` for an architecture that holes are nothing
    to.

    That is the narrowest attention window that the configuration names, and 0 for a model that is not told positions
    (``takes_positions``), which may take a column for one.
    """
    return window_of(config) if takes_positions else 0


def window_of(config: Any) -> int | None:
    """The narrowest attention window that a configuration names, in columns; ``None`` where it names none."""
    if hasattr(config, "get_text_config"):
        config = config.get_text_config(decoder=True)
    found: list[int] = []
    for name in _WINDOWS:
        if name == "sliding_window" and getattr(config, "use_sliding_window", True) is False:
            continue
        found += _widths(getattr(config, name, None))
    return min(found, default=None)


def _widths(value: Any) -> list[int]:
    if isinstance(value, list | tuple):
        return [width for part in value for width in _widths(part)]
    return [value] if isinstance(value, int) and value > 0 else []


def check_rows(language_model: "CausalLanguageModel") -> None:
    """Hold that rows with holes give the scores of whole sequences, closing the holes if need be.

    Two short rows are read beside each other in parts, with padding and with pieces that are taken back. Raises
    ``ModelError`` where the scores are not those of one pass over each row.
    """
    expected = _whole(language_model)
    usual = language_model.closed_from
    for closed_from in dict.fromkeys((usual, 0)):
        language_model.closed_from = closed_from
        try:
            found = _in_parts(language_model)
        except torch.cuda.OutOfMemoryError:
            raise
        except _FAILURES:
            continue
        if found is not None and _alike(found, expected, language_model.model.dtype):
            return
    language_model.closed_from = usual
    kind = getattr(language_model.model.config, "model_type", type(language_model.model).__name__)
    raise ModelError(
        f"model {language_model.name!r} (model_type {kind!r}) cannot fill: it does not read a text in parts as it "
        "reads the whole, as an architecture with a recurrent state or a cache of its own does not; take another one, "
        "such as llama, gpt2, qwen2 or opt"
    )


def _sequences(language_model: "CausalLanguageModel") -> tuple[list[int], list[int]]:
    size = language_model.model.get_input_embeddings().weight.shape[0]
    shorter = [(7 * index + 5) % size for index in range(_KNOWN + _LAST)]
    return shorter, [(11 * index + 3) % size for index in range(_LONGER + _LAST)]


def _whole(language_model: "CausalLanguageModel") -> torch.Tensor:
    """Scores ``(2, V)`` behind the two sequences, in one pass without padding, mask or cache."""
    shorter, longer = _sequences(language_model)
    # What stands behind the shorter one is not seen.
    rest = [shorter[-1]] * (len(longer) - len(shorter))
    pieces = torch.tensor([[*shorter, *rest], longer], device=language_model.model.device)  # (2, T)
    with torch.inference_mode():
        scores: torch.Tensor = language_model.model(input_ids=pieces, use_cache=False).logits  # (2, T, V)
    behind = torch.stack([scores[0, len(shorter) - 1], scores[1, -1]]).float()
    if not torch.isfinite(behind).all():
        raise ModelError(f"model {language_model.name!r} {NO_NUMBERS}")
    return behind


def _in_parts(language_model: "CausalLanguageModel") -> torch.Tensor | None:
    """The same by rows; ``None`` where the model does not keep what it reads as keys and values."""
    from tasks.filling.causal_lm.rows import CausalRows, ForwardClock

    shorter, longer = _sequences(language_model)
    rows = CausalRows(language_model, 2, ForwardClock())
    rows.read([longer[:_LONGER], [*shorter[:_KNOWN], *[shorter[0]] * _IN_VAIN]], [0, 0])
    if not rows.are_kept:
        return None
    rows = rows.chosen([1, 0])
    rows.take_back([_IN_VAIN, 0])
    return rows.read([shorter[_KNOWN:], longer[_LONGER:]], [1, 1])


def _alike(found: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether scores ``(2, V)`` are the same but for rounding; a constant that all scores of a row share is nothing."""
    if found.shape != expected.shape:
        return False
    expected = expected - expected.mean(dim=1, keepdim=True)
    difference = found - found.mean(dim=1, keepdim=True) - expected
    limit = _SAME if dtype == torch.float32 else _SAME_IN_16_BITS
    return bool((_spread(difference) <= limit * _spread(expected) + _NOTHING).all())


def _spread(scores: torch.Tensor) -> torch.Tensor:
    """Root mean squares ``(2,)`` of scores ``(2, V)``."""
    return scores.square().mean(dim=1).sqrt()
