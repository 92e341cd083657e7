"""Scores of a language model at chosen places only, smaller batches for lack of memory, and a check of scores."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from tasks.errors import ModelError, PassingError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tasks.causal_model import Network
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, Window

_SAME = 1e-3
"""Rounding difference that is allowed between the scores of two computations."""


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
    """The earliest module after which only the chosen places are needed: the last layer's attention, or the body.

    A test on a few pieces decides. If the layer later adds or mixes positions (ModernBERT), or if all layers are one
    module (ALBERT), the scores differ or cannot be computed. Then the cut is after the body.
    """
    body: torch.nn.Module = model.base_model
    stacks = [module for module in body.modules() if isinstance(module, torch.nn.ModuleList) and len(module)]
    attention = getattr(stacks[-1][-1], "attention", None) if stacks else None
    if not isinstance(attention, torch.nn.Module):
        return body
    device = next(model.parameters()).device
    pieces = torch.arange(10, device=device).reshape(2, 5) % model.config.vocab_size
    rows, positions = torch.tensor([[0, 1, 1], [2, 0, 4]], device=device)
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            expected, found = (
                scores_at(model, rows, positions, cut=cut, input_ids=pieces) for cut in (body, attention)
            )
            return attention if torch.allclose(found, expected, atol=_SAME, rtol=_SAME) else body
    except Exception:
        # An attention may return anything (a dictionary in SqueezeBERT), and scores of another shape. Errors of the
        # model itself appear again with the cut after the body.
        return body
    finally:
        model.train(training)


Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchHalving:
    """Division of batches that do not fit into GPU memory; one object per model.

    It halves a batch until its parts fit, and divides later batches of this size at once. Results are equal, except for
    the rounding of sums, which on a GPU depends on the batch size.
    """

    def __init__(self, name: str) -> None:
        """``name``: name of the model, for the error message."""
        self._name = name
        self._most: int | None = None
        self.counts: Counter[str] = Counter(halved_batches=0)
        """``halved_batches``: number of batches that ran out of memory and were halved."""

    def run(
        self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result], cells: Callable[[Sequence[Item]], int]
    ) -> list[Result]:
        """The results of ``work`` on all items together, or on parts of them, in order.

        ``cells``: size of a batch (such as pieces with padding). Raises ``PassingError`` if one item does not fit.
        """
        if len(items) == 1 or self._most is None or cells(items) <= self._most:
            try:
                return [work(items)]
            except torch.cuda.OutOfMemoryError:
                # Handled below: in this block the error still references the memory of its frames.
                pass
            torch.cuda.empty_cache()
            if len(items) == 1:
                raise PassingError(
                    f"model {self._name!r}: the GPU has too little memory for a single sentence of {cells(items)} "
                    "pieces; free memory on it, or take a smaller model"
                )
            self.counts["halved_batches"] += 1
            self._most = max(1, cells(items) // 2)
        half = (len(items) + 1) // 2
        return [*self.run(items[:half], work, cells), *self.run(items[half:], work, cells)]


_PIECES = (5, 11)
"""Number of pieces of the window and of its longer neighbour, without special ones."""
_SAME_SHARE = 1e-4
"""Rounding difference that is allowed, as a share of the range of the scores."""


def check_scores(model: "MaskedLanguageModel") -> None:
    """Check by three forward passes of a few pieces that a model's scores are reproducible.

    Some architectures (ConvBERT, FNet, Nyströmformer, YOSO) mix padding into the sentence, by a convolution or a
    Fourier transform. Raises ``ModelError`` for these, and if the model cannot score a sentence or is random."""
    special = {*model.tokenizer.all_special_ids}
    ordinary = [entry for entry in range(model.vocabulary_size) if entry not in special]
    windows: list[Window] = []
    for number in (min(most, model.frame.room) for most in _PIECES):
        # Distant entries: the first entries of a vocabulary are often unused ones, which are all alike.
        pieces = [ordinary[len(ordinary) * place // number] for place in range(number)]
        # Scored at all places: at one place, attention may ignore all other pieces.
        windows += model.frame.windows(pieces, list(range(number)))
    short, long = windows
    del long.positions[1:]  # only the short window's scores are compared
    named = f"filler {model.name!r} ({type(model.model).__name__})"
    try:
        alone, again, both = (model.logits(each) for each in ([short], [short], [short, long]))  # (T, V) first
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:
        # Each architecture fails in its own way; the message has no text of a user.
        raise ModelError(
            f"{named} cannot score a sentence: {error}; fix its config.json, or take another masked language model"
        ) from error
    # NaN passes: it is an error when a line is filled.
    limit = _SAME_SHARE * (alone.max() - alone.min())
    if (again - alone).abs().max() > limit:
        raise ModelError(
            f"{named} draws at random and scores the same sentence differently each time, so no fill is reproducible; "
            "take another masked language model"
        )
    if (both[: len(alone)] - alone).abs().max() > limit:
        raise ModelError(
            f"{named} mixes padding into a sentence, so a fill would depend on the rest of its batch; take another one "
            "such as 'bert-base-uncased' or 'roberta-base'"
        )
