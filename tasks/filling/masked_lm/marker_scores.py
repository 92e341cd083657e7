"""Scores of a language model at chosen places alone, whatever its architecture, masked or causal.

Most of a small model's work would be the projection of every piece to the vocabulary. Here the hidden states are cut
down to the chosen places on their way: at the latest between the body and the head, and where the architecture allows
behind the last attention, since everything after it looks at one position at a time. Where neither can be had, the
scores of all places are computed and the chosen ones taken.

Going on with smaller batches where a GPU runs out of memory.

The batch that did not fit is halved until its parts do, and later batches of that size are divided before they are
tried. Results are those of the whole batch but for the rounding of sums, which on a GPU depends on a batch's size.

Whether a model scores a sentence the same whatever stands beside it, tried out on one short window.

Most architectures look past padding. In some (ConvBERT, FNet, Nyströmformer, YOSO) it is mixed into the sentence, by a
convolution or a Fourier transform, so a fill would depend on which other sentences are in the batch: they are refused.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from tasks.errors import ModelError, ResourceError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from tasks.causal_model import Network
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel, Window


_SAME = 1e-3
"""Scores of the two ways may differ by rounding only."""


def scores_at(
    model: "Network",
    rows: torch.Tensor,
    positions: torch.Tensor,
    *,
    cut: torch.nn.Module | None = None,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    **inputs: object,
) -> torch.Tensor:
    """Vocabulary scores ``(N, V)`` at the places ``(rows[n], positions[n])`` of ``(B, T)`` pieces, ``input_ids``.

    ``attention_mask`` is ``(B, T)``, 0 where there is padding, or ``None`` without padding; further ``inputs`` are as
    the model's ``forward`` takes them. The output ``(B, T, H)`` of the module ``cut`` (the body, if ``None``) is
    replaced by the ``(N, 1, H)`` of the places.
    """
    was_cut = False
    in_body = False

    def keep_places(_module: object, _arguments: object, output: Any) -> Any:  # noqa: ANN401 - as the module has it
        nonlocal was_cut
        was_cut = True
        hidden = output if isinstance(output, torch.Tensor) else output[0]
        chosen = hidden[rows, positions].unsqueeze(1)  # (N, 1, H)
        if isinstance(output, torch.Tensor):
            return chosen
        if isinstance(output, tuple):
            return (chosen, *output[1:])
        output.last_hidden_state = chosen
        return output

    def enter_body(_module: object, _arguments: object) -> None:
        nonlocal in_body
        in_body = True

    def keep_places_without_body(module: object, arguments: object, output: Any) -> Any:  # noqa: ANN401 - as the module has it
        return output if in_body else keep_places(module, arguments, output)

    body = model.base_model
    handles = []
    if cut is not None or body is not model:
        handles.append((cut or body).register_forward_hook(keep_places))
    if cut is None and (decoder := _decoder_inside(model)) is not None:
        handles.append(body.register_forward_pre_hook(enter_body))
        handles.append(decoder.register_forward_hook(keep_places_without_body))
    try:
        scores: torch.Tensor = model(input_ids=input_ids, attention_mask=attention_mask, **inputs).logits
    finally:
        for handle in handles:
            handle.remove()
    return scores.squeeze(1) if was_cut else scores[rows, positions]


def _decoder_inside(model: "Network") -> torch.nn.Module | None:
    """The decoder inside the body, which some models (OPT, BART) call without calling the body, or ``None``."""
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else None
    is_inside = isinstance(decoder, torch.nn.Module) and decoder is not model and decoder is not model.base_model
    return decoder if is_inside else None


def earliest_cut(model: "PreTrainedModel") -> torch.nn.Module:
    """The earliest module behind which only chosen places are needed: the last layer's attention, or the body.

    Whether the attention will do is tried out on a few pieces: where the layer adds or mixes anything later
    (ModernBERT) or all layers are one module (ALBERT), the scores differ or cannot be computed, and the body it is.
    """
    body: torch.nn.Module = model.base_model
    stacks = [module for module in body.modules() if isinstance(module, torch.nn.ModuleList) and len(module)]
    attention = getattr(stacks[-1][-1], "attention", None) if stacks else None
    if not isinstance(attention, torch.nn.Module):
        return body
    device = next(model.parameters()).device
    pieces = torch.arange(10, device=device).reshape(2, 5) % model.config.vocab_size
    rows, positions = torch.tensor([0, 1, 1], device=device), torch.tensor([2, 0, 4], device=device)
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            expected = scores_at(model, rows, positions, input_ids=pieces)
            found = scores_at(model, rows, positions, cut=attention, input_ids=pieces)
    except Exception:
        # An attention may give anything (SqueezeBERT's gives a dictionary); what is wrong with the model itself shows
        # when the body is the cut.
        return body
    finally:
        model.train(training)
    same = found.shape == expected.shape and torch.allclose(found, expected, atol=_SAME, rtol=_SAME)
    return attention if same else body


Item = TypeVar("Item")
Result = TypeVar("Result")


class BatchHalving:
    """Remembers what fits; one per model."""

    def __init__(self, name: str) -> None:
        """``name`` of the model, for the message where a batch of one does not fit."""
        self._name = name
        self._most: int | None = None
        self.counts: Counter[str] = Counter(halved_batches=0)
        """``halved_batches``: how often memory ran out and a batch was halved."""

    def run(
        self, items: Sequence[Item], work: Callable[[Sequence[Item]], Result], cells: Callable[[Sequence[Item]], int]
    ) -> list[Result]:
        """The results of ``work`` on all items together, or on parts of them, in order.

        ``cells`` says how large a batch is (pieces with padding, for example). Raises ``ResourceError`` where one item
        alone does not fit.
        """
        if len(items) == 1 or self._most is None or cells(items) <= self._most:
            try:
                return [work(items)]
            except torch.cuda.OutOfMemoryError:
                # Not handled in here: the error holds on to the memory of the frames it came through.
                pass
            torch.cuda.empty_cache()
            if len(items) == 1:
                raise ResourceError(
                    f"model {self._name!r}: the GPU has too little memory for a single sentence of {cells(items)} "
                    "pieces; free memory on it, or take a smaller model"
                )
            self.counts["halved_batches"] += 1
            self._most = max(1, cells(items) // 2)
        half = (len(items) + 1) // 2
        return [*self.run(items[:half], work, cells), *self.run(items[half:], work, cells)]


_PIECES = (5, 11)
"""Of the window and of its longer neighbour, special ones not counted."""
_SAME_SHARE = 1e-4
"""Scores that differ by no more than this share of their range differ by the rounding of sums."""


def check_scores(model: "MaskedLanguageModel") -> None:
    """``ModelError`` where a model cannot score a sentence at all, scores it otherwise each time, or mixes the padding
    beside it into it; two forward passes of a few pieces say so."""
    short, long = (_window(model, pieces) for pieces in _PIECES)
    del long.positions[1:]  # its own scores are not looked at
    try:
        alone = model.logits([short])  # (T, V)
        if len(short.pieces) == len(long.pieces) or _are_same(model.logits([short, long])[: len(alone)], alone):
            return
        again = model.logits([short])
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:
        # Architectures fail in as many ways as there are; no text of a user is in the message.
        raise ModelError(
            f"filler {model.name!r} ({type(model.model).__name__}) cannot score a sentence: {error}; mend its "
            "config.json, or take another masked language model"
        ) from error
    if not _are_same(again, alone):
        raise ModelError(
            f"filler {model.name!r} ({type(model.model).__name__}) draws at random and scores the same sentence "
            "otherwise each time, so no fill could be made again; take another masked language model"
        )
    raise ModelError(
        f"filler {model.name!r} ({type(model.model).__name__}) mixes padding into a sentence, so a fill would depend "
        "on the sentences beside it; take another one such as 'bert-base-uncased' or 'roberta-base'"
    )


def _window(model: "MaskedLanguageModel", most: int) -> "Window":
    """Different pieces, and all their places: attention may be so sure of one that it looks at nothing else there."""
    from tasks.filling.masked_lm.masked_language_model import Window

    frame = model.frame
    special = {*model.tokenizer.all_special_ids}
    ordinary = [entry for entry in range(model.vocabulary_size) if entry not in special]
    number = min(most, frame.room)
    # Far apart: the first entries of a vocabulary are often unused ones, which are all alike.
    pieces = [ordinary[len(ordinary) * place // number] for place in range(number)]
    return Window([*frame.prefix, *pieces, *frame.suffix], [len(frame.prefix) + place for place in range(number)])


def _are_same(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two ``(T, V)`` scores are; also where they are no numbers, which is said when a line is filled."""
    return not bool((found - expected).abs().max() > _SAME_SHARE * (expected.max() - expected.min()))
