"""Beam search over Whisper's decoder, with scores that can be added to a language model's.

The log-probability of a transcript is the sum over its pieces and the end of the text, in nats. What may not be written
keeps its share of the probability, so it does not depend on what is forbidden: marks, what Whisper's authors call
non-speech, and what the settings forbid.

Whisper finds it probable to stop after a sentence, and by plain sums the shortest transcripts win. Like its authors'
own code, the search therefore ranks transcripts by the mean over their pieces. So that scores of different utterances
have one scale, and that of log-probabilities, each mean is multiplied by the length of the best transcript: the score
of the best, and of all that are as long, is the sum of log-probabilities itself. A ``length_penalty`` of 0 in place of
1 makes every score the plain sum.

Whisper writes case and punctuation, and most of the hypotheses of a plain beam differ in nothing else. So hypotheses
with the same words compete: one is dropped where another reached the same words with a better score.

The decoder goes one piece at a time, for several hypotheses of each window. transformers' own generation gives every
hypothesis a copy of the encoder's keys and values, and moves the copies at every step: 18 MB each for the smallest
model, 490 for the largest. Here all hypotheses of a window read the same.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import scaled_dot_product_attention

if TYPE_CHECKING:
    from transformers import WhisperForConditionalGeneration
    from transformers.models.whisper.modeling_whisper import WhisperAttention


class DecoderSteps:
    """What the decoder has read so far of B windows with K hypotheses each."""

    @torch.inference_mode()
    def __init__(self, model: "WhisperForConditionalGeneration", encoded: torch.Tensor) -> None:
        """``encoded``: (B, S, D), the encoder's output."""
        self._model = model
        self._decoder = model.model.decoder
        self._read = 0
        self._own: list[tuple[torch.Tensor, torch.Tensor] | None] = [None] * len(self._decoder.layers)
        self._spoken = []
        for layer in self._decoder.layers:
            attention = layer.encoder_attn
            keys, values = attention.k_proj(encoded), attention.v_proj(encoded)  # (B, S, D)
            self._spoken.append((_heads(keys, attention), _heads(values, attention)))  # (B, H, S, D / H)

    @torch.inference_mode()
    def step(self, pieces: torch.Tensor) -> torch.Tensor:
        """Read one more piece of each hypothesis, (B, K); log-probabilities of the next, (B, K, V) float32."""
        windows, width = pieces.shape
        hidden = self._decoder.embed_tokens(pieces) + self._decoder.embed_positions.weight[self._read]  # (B, K, D)
        for number, layer in enumerate(self._decoder.layers):
            normed = layer.self_attn_layer_norm(hidden)
            hidden = hidden + self._attend_to_pieces(number, layer.self_attn, normed)
            attention = layer.encoder_attn
            keys, values = self._spoken[number]
            queries = _heads(attention.q_proj(layer.encoder_attn_layer_norm(hidden)), attention)  # (B, H, K, D / H)
            found = scaled_dot_product_attention(queries, keys, values).transpose(1, 2).reshape(windows, width, -1)
            hidden = hidden + attention.out_proj(found)
            normed = layer.final_layer_norm(hidden)
            hidden = hidden + layer.fc2(layer.activation_fn(layer.fc1(normed)))
        self._read += 1
        return self._model.proj_out(self._decoder.layer_norm(hidden)).float().log_softmax(-1)

    def _attend_to_pieces(self, number: int, attention: "WhisperAttention", normed: torch.Tensor) -> torch.Tensor:
        windows, width, _ = normed.shape
        single = (windows, width, attention.num_heads, 1, attention.head_dim)
        queries, keys, values = (
            projection(normed).reshape(single) for projection in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        earlier = self._own[number]
        if earlier is not None:
            keys, values = torch.cat((earlier[0], keys), 3), torch.cat((earlier[1], values), 3)  # (B, K, H, T, D / H)
        self._own[number] = keys, values
        found = scaled_dot_product_attention(
            queries.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1)
        )  # (B K, H, 1, D / H)
        return attention.out_proj(found.reshape(windows, width, -1))

    def choose(self, hypotheses: torch.Tensor) -> None:
        """Go on from other hypotheses: ``hypotheses`` (B, K') says which of the K before each one continues."""
        rows = torch.arange(len(hypotheses), device=hypotheses.device)[:, None]
        self._own = [own and (own[0][rows, hypotheses], own[1][rows, hypotheses]) for own in self._own]

    def keep_windows(self, windows: torch.Tensor) -> None:
        """Go on with some windows only, by their indices (B',)."""
        self._own = [own and (own[0][windows], own[1][windows]) for own in self._own]
        self._spoken = [(keys[windows], values[windows]) for keys, values in self._spoken]


def _heads(values: torch.Tensor, attention: "WhisperAttention") -> torch.Tensor:
    """(B, S, D) as (B, H, S, D / H)."""
    return values.unflatten(2, (attention.num_heads, attention.head_dim)).transpose(1, 2)


WordsOf = Callable[[Sequence[int]], Hashable]
_CANDIDATES = 2
"""Candidates of a step for each place in the beam: as many may end as go on."""
_CANDIDATES_WITH_WORDS = 8
"""The same where spellings compete, and many are dropped."""


@dataclass(frozen=True, slots=True)
class PieceHypothesis:
    """One transcript of a window."""

    pieces: tuple[int, ...]
    score: float
    """In nats: in the search the sum of log-probabilities; in its result corrected for the length."""
    finished: bool = True
    """Whether the end was reached within the pieces that are allowed."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Where the search begins and what it may not choose."""

    prompt: tuple[int, ...]
    """What the decoder reads first."""
    end: int
    forbidden: tuple[int, ...]
    forbidden_first: tuple[int, ...]
    """What may not be the first piece."""


@dataclass
class _Window:
    """The search in one window."""

    beam_width: int
    length_penalty: float
    words_of: WordsOf | None
    beam: list[PieceHypothesis] = field(default_factory=lambda: [PieceHypothesis((), 0.0, finished=False)])
    words: list[Hashable] = field(default_factory=lambda: [None])
    """Of each hypothesis in the beam, where spellings compete."""
    ended: list[PieceHypothesis] = field(default_factory=list)
    reached: dict[Hashable, float] = field(default_factory=dict)
    """The best score with which words were reached, apart for those that ended and those with a mark behind."""

    def dominated(self, kind: str, words: Hashable, score: float) -> bool:
        """Whether the same words were reached with at least this score; if not, this one is noted."""
        if self.reached.get((kind, words), -torch.inf) >= score:
            return True
        self.reached[kind, words] = score
        return False

    def rank(self, hypothesis: PieceHypothesis) -> float:
        """What transcripts are compared by."""
        return hypothesis.score / self._length(hypothesis) ** self.length_penalty

    def end(self, hypothesis: PieceHypothesis) -> bool:
        """Note a hypothesis that ended; ``False`` where the same words ended better."""
        if self.words_of is not None:
            words = self.words_of(hypothesis.pieces)
            if self.dominated("ended", words, self.rank(hypothesis)):
                return False
            self.ended = [one for one in self.ended if self.words_of(one.pieces) != words]
        self.ended = sorted([*self.ended, hypothesis], key=self.rank, reverse=True)[: self.beam_width]
        return True

    def advance(self, candidates: Iterable[tuple[float, int, int]], end: int) -> list[int]:
        """Take the best of the candidates (score, place of the hypothesis that it continues, piece), the best first.

        Returns the places of the hypotheses that go on, as they were before.
        """
        beam: list[PieceHypothesis] = []
        places: list[int] = []
        words: list[Hashable] = []
        survivors = 0
        for score, place, piece in candidates:
            if score == -torch.inf or len(beam) == self.beam_width:
                break
            earlier = self.beam[place].pieces
            if piece == end:
                # A transcript counts where it is among the best of the step, whether they end or go on.
                if survivors < self.beam_width:
                    survivors += self.end(PieceHypothesis(earlier, score))
                continue
            hypothesis = PieceHypothesis((*earlier, piece), score, finished=False)
            if self.words_of is not None:
                found = self.words_of(hypothesis.pieces)
                # A comma leaves the words as they are and is worse than none: it competes with other marks alone.
                if self.dominated("marked" if found == self.words[place] else "going on", found, score):
                    continue
                words.append(found)
            survivors += 1
            beam.append(hypothesis)
            places.append(place)
        self.beam, self.words = beam, words
        return places

    def can_improve(self) -> bool:
        """Whether one that goes on could come among the best that have ended, if it ended as it stands."""
        if not self.beam:
            return False
        if len(self.ended) < self.beam_width:
            return True
        best = self.beam[0]
        return best.score / len(best.pieces) ** self.length_penalty > self.rank(self.ended[-1])

    def result(self) -> list[PieceHypothesis]:
        """What has ended, or else what goes on, the best first, with scores that are corrected for the length."""
        found = sorted(self.ended or self.beam, key=self.rank, reverse=True)
        scale = self._length(found[0]) ** self.length_penalty if found else 1.0
        return [replace(one, score=self.rank(one) * scale) for one in found]

    def _length(self, hypothesis: PieceHypothesis) -> int:
        return len(hypothesis.pieces) + hypothesis.finished


@torch.inference_mode()
def beam_search(
    model: "WhisperForConditionalGeneration",
    encoded: torch.Tensor,
    space: SearchSpace,
    beam_width: int,
    maximum_pieces: int,
    length_penalty: float = 1.0,
    words_of: WordsOf | None = None,
) -> list[list[PieceHypothesis]]:
    """Up to ``beam_width`` hypotheses of each window, the best first.

    ``encoded``: (B, S, D). ``length_penalty`` is the power of the length that ranks are divided by. ``words_of`` gives
    the words of pieces, and hypotheses with the same words compete; without it this is the ordinary beam search. The
    search of a window ends when the best that goes on would not come among the ``beam_width`` best that have ended.
    Where none has ended after ``maximum_pieces``, the best that go on are returned as unfinished.
    """
    steps = DecoderSteps(model, encoded)
    windows = [_Window(beam_width, length_penalty, words_of) for _ in encoded]
    active = windows
    for piece in space.prompt:
        following = steps.step(torch.full((len(encoded), 1), piece, device=encoded.device))  # (B, 1, V)
    following[:, :, list(space.forbidden_first)] = -torch.inf
    forbidden = torch.tensor(space.forbidden, device=encoded.device, dtype=torch.long)
    scores = torch.zeros(len(encoded), 1, device=encoded.device)  # (B, K)
    wanted = beam_width * (_CANDIDATES if words_of is None else _CANDIDATES_WITH_WORDS)
    for _ in range(maximum_pieces):
        following.index_fill_(2, forbidden, -torch.inf)
        totals = (scores[:, :, None] + following).flatten(1)  # (B, K V)
        best, where = totals.topk(min(wanted, totals.shape[1]))
        size = following.shape[2]
        rows = zip(best.tolist(), (where // size).tolist(), (where % size).tolist(), strict=True)
        places = [window.advance(zip(*row, strict=True), space.end) for window, row in zip(active, rows, strict=True)]
        kept = [number for number, window in enumerate(active) if window.can_improve()]
        if not kept:
            break
        if len(kept) < len(active):
            active, places = [active[number] for number in kept], [places[number] for number in kept]
            steps.keep_windows(torch.tensor(kept, device=encoded.device))
        width = max(map(len, places))
        # Where fewer go on, places without a chance fill the beam.
        steps.choose(_filled(places, width, 0, encoded.device))
        scores = _filled([[one.score for one in window.beam] for window in active], width, -torch.inf, encoded.device)
        pieces = [[one.pieces[-1] for one in window.beam] for window in active]
        following = steps.step(_filled(pieces, width, space.end, encoded.device))
    return [window.result() for window in windows]


def _filled(rows: Sequence[Sequence[Any]], width: int, value: float, device: torch.device) -> torch.Tensor:
    return torch.tensor([[*row, *[value] * (width - len(row))] for row in rows], device=device)
