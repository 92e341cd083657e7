"""``CausalModel``: a causal language model of Hugging Face, whose log-probabilities are summed over words.

The targets are the same for every kind of model: normalised words and sentence ends. So perplexity per word and bits
per character are comparable. A word's probability covers all its pieces, with its leading space. No word is unknown.
"""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tasks.errors import ModelError
from tasks.language_model.causal_lm.joined import JoinedModels
from tasks.language_model.causal_lm.pieces import WordPieces
from tasks.language_model.encoded_text import EncodedText, overlap_of
from tasks.language_model.language_models import Drawing, Precision, Words, encode_sentences
from tasks.language_model.learners import Learner, MarkedText
from tasks.language_model.prefix_trees import TreeBatch, score_groups
from tasks.language_model.sampling import sample_pieces
from tasks.language_model.transformer.batching import Batch, batches_by_length, divide, make_batch, target_places

if TYPE_CHECKING:
    from tasks.causal_model import Network
    from tasks.language_model.causal_lm.folder import CausalRecord

_MOST_POSITIONS = 1024
"""Upper limit of the window; longer sentences are read in several windows."""
_BATCH_PIECES = {"cpu": 512, "cuda": 8192}
_CHUNK = 64
"""Number of positions whose scores over the whole vocabulary are converted to float32 at once."""
_SAME = 1e-3
"""Tolerance, in nats a piece, between tree scores and single-sequence scores: the rounding error."""
_PROBE: list[Words] = [("the", "end", "of"), ("the", "end", "and"), ("the", "and"), ("of",)]


class CausalModel(Learner):
    """A network (of transformers or peft), its tokenizer, its name, and the record of its folder."""

    longest: int

    def __init__(
        self, network: "Network | JoinedModels", pieces: WordPieces, name: str, record: "CausalRecord | None" = None
    ) -> None:
        self.network: Any = network.eval()
        self.pieces, self.name, self.record = pieces, name, record
        self.vocabulary, self.vocabulary_hash, self.vocabulary_size = pieces.vocabulary, pieces.hash, pieces.size
        positions = getattr(network.config, "max_position_embeddings", None) or _MOST_POSITIONS
        self.longest = min(positions, _MOST_POSITIONS)

    def with_network(self, network: "Network | JoinedModels") -> "CausalModel":
        """The same with another network."""
        return CausalModel(network, self.pieces, self.name, self.record)

    def packed(self, precision: Precision = "auto") -> "CausalModel":
        """Lay the layers out for scoring, in place; returns itself."""
        from tasks.packed_linear import pack_linear_layers

        if precision != "auto":
            self.network.to(getattr(torch, precision))
        pack_linear_layers(self.network)
        return self

    @property
    def batch_pieces(self) -> int:
        """Number of pieces in one batch without training."""
        return _BATCH_PIECES.get(self.network.device.type, _BATCH_PIECES["cuda"])

    def next_scores(self, batch: Batch) -> Tensor:
        """The scores (N, V) float32 of every next piece at the positions of a batch on the network's device."""
        # Padding is on the right, where no target can attend to it, so no mask is needed.
        logits = self.network(input_ids=batch.tokens, use_cache=False).logits
        return logits.flatten(0, 1).index_select(0, batch.positions).float()

    def marked(self, text: EncodedText) -> MarkedText:
        """See ``Learner``."""
        return self.pieces.of_text(text)

    @torch.inference_mode()
    def log_probabilities(self, marked: MarkedText, *, markers: bool = False, title: str = "scoring") -> np.ndarray:
        """See ``Learner``. With ``markers``, the log-probability of all markers together at each target.

        A sentence longer than the model's window is read in windows that overlap by half, each piece scored once. In a
        later window the start token replaces the first piece.
        """
        from tqdm import tqdm

        windows = divide(marked.text, self.longest, overlap_of(self.longest))
        device = self.network.device
        wanted = torch.tensor(list(self.pieces.markers.values()), device=device)
        found = np.zeros(len(marked.text.tokens))
        self.network.eval()
        batches = batches_by_length(windows, self.batch_pieces)
        for chosen in tqdm(batches, desc=title, unit="batch", disable=None, leave=False):
            batch = make_batch(marked.text, marked.is_target, windows, chosen)
            places = target_places(batch, windows.first[chosen])
            if self.pieces.begin:
                batch.tokens[torch.from_numpy(windows.context[chosen] > 0), 0] = self.pieces.begin[0]
            batch = batch.to(device)
            scores = self.next_scores(batch)  # (N, V)
            own = scores[:, wanted].logsumexp(1) if markers else scores.gather(1, batch.targets[:, None]).squeeze(1)
            found[places] = (own - scores.logsumexp(1)).double().cpu().numpy()
        return found

    def scores_of_ids(self, text: EncodedText) -> tuple[np.ndarray, np.ndarray | None]:
        """See ``LanguageModel``: sums over the pieces of each word."""
        marked = self.marked(text)
        words, of_markers = self._sums_of_words(marked, text), None
        if self.pieces.markers:
            first = self.log_probabilities(marked, markers=True, title="scoring markers")[marked.is_first]
            of_markers = np.minimum(first, -1e-12)
        return words, of_markers

    def _sums_of_words(self, marked: MarkedText, text: EncodedText) -> np.ndarray:
        word = np.cumsum(marked.is_first) - 1
        return np.bincount(word, weights=self.log_probabilities(marked), minlength=len(text.tokens))

    def score_sentences(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        """See ``LanguageModel``. A sentence longer than the model's window is scored in windows."""
        return self._as_trees(groups) if self.shares_prefixes else self._one_by_one(groups)

    @cached_property
    def shares_prefixes(self) -> bool:
        """Whether the model can read a prefix tree; without positions or masks it scores each sentence separately."""
        try:
            (shared,) = self._as_trees([_PROBE])
        except (TypeError, ValueError, RuntimeError, NotImplementedError):
            return False  # the model takes no positions, or no mask of this shape
        (alone,) = self._one_by_one([_PROBE])
        tolerance = _SAME if self.network.dtype == torch.float32 else 100 * _SAME
        return bool(np.allclose(shared, alone, rtol=tolerance, atol=10 * tolerance))

    def _as_trees(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        pieces, start = self.pieces, self.pieces.start
        words = sorted({word for group in groups for hypothesis in group for word in hypothesis})
        table = dict(zip(words, pieces.of_words(words), strict=True))
        # Different word sequences can have the same pieces.
        sequences = [
            [(*start, *(piece for word in one for piece in table[word]), *pieces.end) for one in group]
            for group in groups
        ]

        def scores_alone(long: list[tuple[int, int]]) -> np.ndarray:
            return self._one_by_one([[groups[number][place] for number, place in long]])[0]

        # The pieces before a sentence given the first are no targets.
        given = score_groups([[tuple(start)]], self._scores_of, len(start))[0][0] if len(start) > 1 else 0.0
        return score_groups(
            sequences,
            self._scores_of,
            self.batch_pieces,
            longest=self.longest,
            scores_alone=scores_alone,
            given=float(given),
        )

    @torch.inference_mode()
    def _scores_of(self, batch: TreeBatch) -> np.ndarray:
        model = self.network
        tokens, depth, visible, places, targets = (
            torch.from_numpy(values).to(model.device)
            for values in (batch.tokens, batch.depth, batch.visible[:, None], batch.edge_place, batch.edge_token)
        )
        # A float mask, added to the attention scores (B, 1, T, T): not every attention takes a boolean mask.
        hidden = torch.zeros(visible.shape, dtype=model.dtype, device=model.device)
        hidden.masked_fill_(~visible, torch.finfo(model.dtype).min)
        logits = model(input_ids=tokens, attention_mask=hidden, position_ids=depth, use_cache=False).logits.flatten(
            0, 1
        )
        normalisers = torch.cat([chunk.float().logsumexp(1) for chunk in logits.split(_CHUNK)])  # (B x T,)
        return (logits[places, targets].float() - normalisers[places]).double().cpu().numpy()

    def _one_by_one(self, groups: Sequence[Sequence[Words]]) -> list[np.ndarray]:
        flat = [hypothesis for group in groups for hypothesis in group]
        text = encode_sentences(flat, self.vocabulary)
        words = self._sums_of_words(self.marked(text), text)
        sums = np.add.reduceat(words, text.offsets[:-1]) if flat else np.zeros(0)
        return np.split(sums, np.cumsum([len(group) for group in groups])[:-1])

    def next_words(self) -> NoReturn:
        """Raise ``ModelError``: a model with subword tokens has no distribution over next words."""
        raise ModelError(
            f"model {self.name!r} is a causal language model, and gives no probability to beginnings of words; fuse "
            "without it, and let it choose among the lists by 'palimpsest rescore'"
        )

    def sample(self, drawing: Drawing) -> list[Words]:
        """See ``LanguageModel``."""
        return sample_pieces(self, drawing)

    def copy(self) -> "CausalModel":
        """See ``Learner``."""
        return self.with_network(copy.deepcopy(self.network))

    def states(self, batch: Batch) -> Tensor:
        """See ``Learner``."""
        hidden = self.network(input_ids=batch.tokens, use_cache=False, output_hidden_states=True).hidden_states
        return hidden[-1].flatten(0, 1).index_select(0, batch.positions)

    def scores_of(self, states: Tensor) -> Tensor:
        """See ``Learner``."""
        found: Tensor = self.network.get_output_embeddings()(states)
        return found.float()

    def scores(self, batch: Batch) -> Tensor:
        """See ``Learner``. The model's own logits may be scaled or bounded, unlike ``scores_of``."""
        from tasks.causal_model import lower_on_processor

        lower = torch.is_grad_enabled() and lower_on_processor(self.network)
        with torch.autocast("cpu", torch.bfloat16, enabled=lower):
            return self.next_scores(batch.to(self.network.device))

    def _losses(self, batch: Batch) -> Tensor:
        return functional.cross_entropy(self.scores(batch), batch.targets.to(self.network.device), reduction="none")

    def log_probability(self, batch: Batch) -> Tensor:
        """See ``Learner``."""
        with torch.no_grad():
            return -self._losses(batch)

    def loss(self, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """See ``Learner``."""
        losses = self._losses(batch)  # (N,)
        return losses.sum() if weights is None else (weights.to(losses) * losses).sum()

    def scorer(self) -> "CausalModel":
        """See ``Learner``. It scores with a copy, since scoring changes the layout of weights."""
        return self.copy().packed()

    def steered(self, down: Tensor, up: Tensor) -> "CausalModel":
        """See ``Learner``. (h + h down up) W is h (W + up' down' W), so only the output matrix changes."""
        found = self.copy()
        old = found.network.get_output_embeddings()
        own = nn.Linear(old.in_features, old.out_features, bias=old.bias is not None, dtype=old.weight.dtype)
        with torch.no_grad():
            own.weight.copy_(old.weight + (old.weight @ up.t().to(old.weight)) @ down.t().to(old.weight))
            if old.bias is not None:
                own.bias.copy_(old.bias)
        found.network.set_output_embeddings(own.to(old.weight.device))
        found.network.config.tie_word_embeddings = False
        return found

    def joined(self, others: Sequence[tuple["CausalModel", float]], weight: float) -> "CausalModel":
        """See ``Learner``."""
        parts = [(self.network, weight, 0.0), *((other.network, share, 0.0) for other, share in others)]
        return self.with_network(JoinedModels(parts))

    @contextmanager
    def learning(self) -> Iterator[None]:
        """See ``Learner``."""
        from tasks.causal_model import plain_attention

        with plain_attention(self.network):
            yield
