"""Scores at chosen places only, smaller batches for lack of memory, and a check of architectures."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from tasks.errors import ModelError, PassingError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tasks.causal_model import Network

_LIKE_BERT = ("bert", "deberta-v2", "electra", "mpnet", "roberta", "xlm-roberta")
_MIXING = ("convbert", "fnet", "nystromformer", "yoso")


def scores_at(
    model: "Network",
    rows: torch.Tensor,
    positions: torch.Tensor,
    *,
    cut: torch.nn.Module | None = None,
    **inputs: object,
) -> torch.Tensor:
    """Vocabulary scores ``(N, V)`` at the places ``(rows[n], positions[n])`` of ``(B, T)`` pieces.

    This saves the projection of every piece to the vocabulary, most of a small model's work.

    ``inputs``: arguments of the model's ``forward``. The output ``(B, T, H)`` of the module ``cut``, or else the input
    of the projection to the vocabulary, is replaced by the ``(N, 1, H)`` hidden states of the places.
    """

    def chosen(hidden: torch.Tensor) -> torch.Tensor:
        return hidden[rows, positions].unsqueeze(1)

    def after(_module: object, _arguments: object, output: Any) -> Any:  # noqa: ANN401 - as the module has it
        if isinstance(output, torch.Tensor):
            return chosen(output)
        if isinstance(output, tuple):
            return (chosen(output[0]), *output[1:])
        output.last_hidden_state = chosen(output.last_hidden_state)
        return output

    def before(_module: object, arguments: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return (chosen(arguments[0]), *arguments[1:])

    network: Any = model
    if cut is not None:
        handle = cut.register_forward_hook(after)
    else:
        handle = network.get_output_embeddings().register_forward_pre_hook(before)
    try:
        scores: torch.Tensor = network(**inputs).logits
    finally:
        handle.remove()
    return scores.squeeze(1)


def earliest_cut(model: "PreTrainedModel") -> torch.nn.Module:
    """The earliest module after which only the chosen places are needed: the last layer's attention in BERT and its
    kin, else the body."""
    body: Any = model.base_model
    found: torch.nn.Module = body.encoder.layer[-1].attention if model.config.model_type in _LIKE_BERT else body
    return found


Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchHalving:
    """Division of batches that do not fit into GPU memory; one object per model.

    It halves a batch until its parts fit. Results are equal, except for the rounding of sums, which on a GPU depends on
    the batch size.
    """

    def __init__(self, name: str) -> None:
        """``name``: name of the model, for the error message."""
        self._name = name
        self.counts: Counter[str] = Counter(halved_batches=0)
        """``halved_batches``: number of batches that ran out of memory and were halved."""

    def run(self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result]) -> list[Result]:
        """The results of ``work`` on all items together, or on parts of them, in order.

        Raises ``PassingError`` if one item does not fit.
        """
        try:
            return [work(items)]
        except torch.cuda.OutOfMemoryError:
            # Handled below: in this block the error still references the memory of its frames.
            pass
        torch.cuda.empty_cache()
        if len(items) == 1:
            raise PassingError(
                f"model {self._name!r}: the GPU has too little memory for a single sentence; free memory on it, or "
                "take a smaller model"
            )
        self.counts["halved_batches"] += 1
        half = (len(items) + 1) // 2
        return [*self.run(items[:half], work), *self.run(items[half:], work)]


def check_architecture(model: "PreTrainedModel", name: str) -> None:
    """Raise ``ModelError`` for an architecture that mixes padding into a sentence, by a convolution or a Fourier
    transform, so that a fill depends on the rest of its batch."""
    if model.config.model_type in _MIXING:
        raise ModelError(
            f"filler {name!r} ({type(model).__name__}) mixes padding into a sentence, so a fill would depend on the "
            "rest of its batch; take another one such as 'bert-base-uncased' or 'roberta-base'"
        )
