"""Scores of a language model at chosen places alone, whatever its architecture, masked or causal.

Most of a small model's work would be the projection of every piece to the vocabulary. Here the hidden states are cut
down to the chosen places on their way: at the latest between the body and the head, and where the architecture allows
behind the last attention, since everything after it looks at one position at a time. Where neither can be had, the
scores of all places are computed and the chosen ones taken.
"""

from typing import Any

import torch

_SAME = 1e-3
"""Scores of the two ways may differ by rounding only."""


def scores_at(
    model: Any,
    pieces: torch.Tensor,
    attention: torch.Tensor | None,
    rows: torch.Tensor,
    positions: torch.Tensor,
    *,
    cut: torch.nn.Module | None = None,
) -> torch.Tensor:
    """Vocabulary scores ``(N, V)`` at the places ``(rows[n], positions[n])`` of ``(B, T)`` pieces.

    ``attention`` is ``(B, T)``, 0 where there is padding, or ``None`` without padding. The output ``(B, T, H)`` of the
    module ``cut`` (the body, if ``None``) is replaced by the ``(N, 1, H)`` of the places.
    """
    return chosen_scores(model, rows, positions, cut=cut, input_ids=pieces, attention_mask=attention)


def chosen_scores(
    model: Any, rows: torch.Tensor, positions: torch.Tensor, *, cut: torch.nn.Module | None = None, **inputs: Any
) -> torch.Tensor:
    """As ``scores_at``, with ``inputs`` as the model's ``forward`` takes them."""
    was_cut = False
    in_body = False

    def keep_places(_module: Any, _arguments: Any, output: Any) -> Any:
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

    def enter_body(_module: Any, _arguments: Any) -> None:
        nonlocal in_body
        in_body = True

    def keep_places_without_body(module: Any, arguments: Any, output: Any) -> Any:
        return output if in_body else keep_places(module, arguments, output)

    body = model.base_model
    handles = []
    if cut is not None or body is not model:
        handles.append((cut or body).register_forward_hook(keep_places))
    if cut is None and (decoder := _decoder_inside(model)) is not None:
        handles.append(body.register_forward_pre_hook(enter_body))
        handles.append(decoder.register_forward_hook(keep_places_without_body))
    try:
        scores: torch.Tensor = model(**inputs).logits
    finally:
        for handle in handles:
            handle.remove()
    return scores.squeeze(1) if was_cut else scores[rows, positions]


def _decoder_inside(model: Any) -> torch.nn.Module | None:
    """The decoder inside the body, which some models (OPT, BART) call without calling the body, or ``None``."""
    decoder = model.get_decoder() if hasattr(model, "get_decoder") else None
    is_inside = isinstance(decoder, torch.nn.Module) and decoder is not model and decoder is not model.base_model
    return decoder if is_inside else None


def earliest_cut(model: Any) -> torch.nn.Module:
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
            expected = scores_at(model, pieces, None, rows, positions)
            found = scores_at(model, pieces, None, rows, positions, cut=attention)
    except Exception:
        # An attention may give anything (SqueezeBERT's gives a dictionary); what is wrong with the model itself shows
        # when the body is the cut.
        return body
    finally:
        model.train(training)
    same = found.shape == expected.shape and torch.allclose(found, expected, atol=_SAME, rtol=_SAME)
    return attention if same else body
