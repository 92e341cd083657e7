"""Transcripts of Whisper with their scores, by transformers' beam search.

The log-probability of a transcript is the sum over its pieces and the end of the text, in nats. Forbidden pieces
(marks, non-speech, and those of the settings) retain their probability, so a score does not depend on them.

Whisper often stops after a sentence, and by plain sums the shortest transcripts win. So the search ranks transcripts by
the mean over their pieces, like the code of Whisper's authors. Each mean is multiplied by the length of the best
transcript. So scores of different utterances have the scale of log-probabilities: the score of the best transcript is
its sum. A ``length_penalty`` of 0 instead of 1 makes every score the plain sum.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from transformers import WhisperForConditionalGeneration


@dataclass(frozen=True, slots=True)
class PieceHypothesis:
    """One transcript of a window."""

    pieces: tuple[int, ...]
    score: float
    """In nats, corrected for the length."""
    finished: bool
    """Whether the end was reached within the allowed number of pieces."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Start of the search, and pieces that it must not choose."""

    prompt: tuple[int, ...]
    """Input of the decoder before the first piece."""
    end: int
    forbidden: tuple[int, ...]
    forbidden_first: tuple[int, ...]
    """Pieces that must not come first."""


@torch.inference_mode()
def beam_search(
    model: "WhisperForConditionalGeneration",
    encoded: torch.Tensor,
    space: SearchSpace,
    beam_width: int,
    maximum_pieces: int,
    length_penalty: float = 1.0,
) -> list[PieceHypothesis]:
    """Up to ``beam_width`` transcripts of a window, the best first; ``encoded`` (S, D): the encoder's output.

    ``length_penalty`` is the power of the length that ranks are divided by. If no transcript has ended after
    ``maximum_pieces``, the best unfinished ones are returned.
    """
    from transformers import GenerationConfig
    from transformers.generation import GenerationMixin
    from transformers.modeling_outputs import BaseModelOutput

    # Whisper's own ``generate`` looks for time stamps, cuts long recordings, and does not return scores of all beams.
    generated: Any = GenerationMixin.generate(
        model,  # type: ignore[arg-type]  # the type of a model of transformers is no model of its own mixin
        encoder_outputs=BaseModelOutput(encoded[None]),
        decoder_input_ids=torch.tensor([space.prompt], device=encoded.device),
        generation_config=GenerationConfig(
            num_beams=beam_width,
            num_return_sequences=beam_width,
            max_new_tokens=maximum_pieces,
            length_penalty=length_penalty,
            suppress_tokens=list(space.forbidden),
            begin_suppress_tokens=list(space.forbidden_first),
            return_dict_in_generate=True,
            output_scores=True,
            eos_token_id=space.end,
            pad_token_id=space.end,
        ),
    )
    found = []
    for ids, rank in zip(
        generated.sequences[:, len(space.prompt) :].tolist(), generated.sequences_scores.tolist(), strict=True
    ):
        finished = space.end in ids
        pieces = tuple(ids[: ids.index(space.end)] if finished else ids)
        found.append(PieceHypothesis(pieces, rank, finished))
    found = [one for one in found if one.finished] or found
    scale = (len(found[0].pieces) + found[0].finished) ** length_penalty
    return [PieceHypothesis(one.pieces, one.score * scale, one.finished) for one in found]
