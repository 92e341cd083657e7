"""Whether a model's scores of a sentence depend on the padding beside it, tried out on one short window.

Most architectures look past padding. In some (ConvBERT, FNet, Nyströmformer, YOSO) it is mixed into the sentence, by a
convolution or a Fourier transform, so a score would depend on which other sentences are in the batch.
"""

from typing import TYPE_CHECKING

from tasks.errors import ModelError
from tasks.filling.masked_lm.windows import Window

if TYPE_CHECKING:
    import torch

    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

_PIECES = (5, 11)
"""Of the window and of its longer neighbour, special ones not counted."""
_SAME = 1e-4
"""Scores that differ by no more than this share of their range differ by the rounding of sums."""


def mixes_padding(model: "MaskedLanguageModel") -> bool:
    """Whether sentences must be of one length to share a batch; two forward passes of a few pieces say so.

    Raises ``ModelError`` where the model cannot score a sentence at all, or scores it otherwise each time.
    """
    import torch

    short, long = (_window(model, pieces) for pieces in _PIECES)
    del long.positions[1:]  # its own scores are not looked at
    try:
        alone = model.logits([short])  # (T, V)
        if len(short.pieces) == len(long.pieces) or _same(model.logits([short, long])[: len(alone)], alone):
            return False
        again = model.logits([short])
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:
        # Architectures fail in as many ways as there are; no text of a user is in the message.
        raise ModelError(
            f"filler {model.name!r} ({type(model.model).__name__}) cannot score a sentence: {error}; mend its "
            "config.json, or take another masked language model"
        ) from error
    if not _same(again, alone):
        raise ModelError(
            f"filler {model.name!r} ({type(model.model).__name__}) draws at random and scores the same sentence "
            "otherwise each time, so no fill could be made again; take another masked language model"
        )
    return True


def _window(model: "MaskedLanguageModel", most: int) -> Window:
    """Different pieces, and all their places: attention may be so sure of one that it looks at nothing else there."""
    frame = model.frame
    special = {*model.tokenizer.all_special_ids}
    ordinary = [entry for entry in range(model.vocabulary_size) if entry not in special]
    number = min(most, frame.room)
    # Far apart: the first entries of a vocabulary are often unused ones, which are all alike.
    pieces = [ordinary[len(ordinary) * place // number] for place in range(number)]
    return Window([*frame.prefix, *pieces, *frame.suffix], [len(frame.prefix) + place for place in range(number)])


def _same(found: "torch.Tensor", expected: "torch.Tensor") -> bool:
    """Whether two ``(T, V)`` scores are; also where they are no numbers, which is said when a line is filled."""
    return not bool((found - expected).abs().max() > _SAME * (expected.max() - expected.min()))
