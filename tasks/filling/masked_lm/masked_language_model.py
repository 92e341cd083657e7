"""A Hugging Face masked language model as a filler: encoding, windows, batches, and scores at the markers.

Every architecture with a masked-LM head works. The model sees a whole sentence if it fits into its positions. Of a
longer one it sees a window with the scored marker in the middle.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from tasks.batches import batches_that_fit
from tasks.causal_model import NO_NUMBERS
from tasks.errors import ModelError
from tasks.filling.masked_lm.candidate_words import SENTENCE_PIECE_SIGN, CandidateWords, space_sign
from tasks.filling.masked_lm.loading import headless, load_masked_model
from tasks.filling.masked_lm.marker_scores import BatchHalving, check_architecture, earliest_cut, scores_at

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers import PreTrainedTokenizerBase as Tokenizer

_MOST_PIECES = 8192
"""Maximum number of pieces per forward pass, padding included: long sentences get smaller batches."""
_MOST_SCORES = 1 << 24
"""Maximum number of vocabulary scores per forward pass (64 MiB); a single window may have more."""
_GPU_FACTOR = 8
"""Factor of both limits on a GPU."""
_ENOUGH_PIECES = 384
"""Number of pieces that use a CPU fully: a batch of this size may end to avoid padding. A GPU needs full batches."""
_MOST_PADDING = 1.08
"""Maximum padding factor of the shortest sentence in such a batch."""


class Asked(NamedTuple):
    """A slot of a sentence to score, and what the model sees of the sentence."""

    texts: Sequence[str]
    """The ``n + 1`` texts of the sentence around its ``n`` slots."""
    slot: int
    """Index of the slot, from 0."""
    pieces: list[int]
    """The pieces that the model sees, special ones included."""
    position: int
    """Position of the slot's mask token in ``pieces``."""


_LONGEST_WINDOW = 512


class MaskedLanguageModel:
    """A model with its tokenizer, ready to score fills."""

    def __init__(self, model: "PreTrainedModel", tokenizer: "Tokenizer", name: str) -> None:
        """Raises ``ModelError`` if the tokenizer has no mask token, or belongs to another model."""
        if tokenizer.mask_token is None or tokenizer.mask_token_id is None:
            raise ModelError(
                f"filler {name!r} has no mask token, so it is no masked language model; "
                "take one such as 'bert-base-uncased' or 'roberta-base'"
            )
        self.name = name
        self.model = model.eval()
        self._cut: torch.nn.Module = model.base_model
        self.tokenizer = tokenizer
        self.mask_entry: int = tokenizer.mask_token_id
        self._padding: int = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.mask_entry
        self.vocabulary_size: int = model.config.vocab_size
        self.halving = BatchHalving(name)
        """Recovery from lack of GPU memory, with its counts."""
        self.seconds = 0.0
        """Seconds of scoring so far."""
        unused = {*tokenizer.all_special_ids} - {self.mask_entry}
        if max({*tokenizer.get_vocab().values()} - unused) >= self.vocabulary_size:
            raise ModelError(
                f"filler {name!r}: its tokenizer has more entries than the {self.vocabulary_size} of its model; "
                "they do not belong together: fetch the whole model again"
            )
        sign = space_sign(tokenizer)
        self._strips_space = sign is not None
        self._unspaced = _unspaced_entries(tokenizer.get_vocab(), sign) if sign == SENTENCE_PIECE_SIGN else {}
        self.prefix, self.suffix = _special_frame(tokenizer)
        """Special pieces before and after every sentence."""
        self.longest = _positions(model, tokenizer)
        """Maximum number of pieces that the model sees, special ones included."""
        self.room = self.longest - len(self.prefix) - len(self.suffix)
        """Maximum number of pieces of a sentence."""
        if self.room < 1:
            raise ModelError(f"filler {name!r} has {self.longest} positions, too few for one marker; take another one")

    @classmethod
    def load(cls, name: str) -> "MaskedLanguageModel":
        """Load a filler by hub name, folder or ``package:NAME/FOLDER``, in float32.

        Raises ``ModelError`` if it cannot be found, is no masked LM, lacks its head or files, or has no mask token.
        """
        model, tokenizer, missing = load_masked_model(name)
        if missing:
            raise headless("model", name, missing)
        return cls(model, tokenizer, name).prepared()

    def prepared(self) -> "MaskedLanguageModel":
        """This object, on the GPU if there is one, else with linear layers packed for fast float32 products.

        Raises ``ModelError`` as ``check_architecture``.
        """
        from tasks.packed_linear import pack_linear_layers

        check_architecture(self.model, self.name)
        if torch.cuda.is_available():
            self.model.to("cuda")
        else:
            pack_linear_layers(self.model)
        self._cut = earliest_cut(self.model)
        return self

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """Pieces of each sentence, without special ones at the ends. A sentence is ``n + 1`` texts around ``n`` slots.

        Strings of a user's text that look like special tokens are ordinary text. The pieces equal a sentence with a
        word at the marker. So in vocabularies with space signs, the space before a marker is no separate piece: it
        belongs to the word. Text directly after a marker has no space sign, although SentencePiece tokenizers put one
        at the start of every text.
        """
        flat: list[str] = []
        for texts in sentences:
            # Words of a vocabulary with space signs begin with the space before a slot.
            flat += [*map(str.rstrip, texts[:-1]), texts[-1]] if self._strips_space else texts
        given = {"add_special_tokens": False, "return_attention_mask": False, "split_special_tokens": True}
        parts = iter(self.tokenizer(flat, **given)["input_ids"] if flat else [])
        encoded = []
        for texts in sentences:
            pieces = list(next(parts))
            for text in texts[1:]:
                following = list(next(parts))
                if text and not text[0].isspace() and following:
                    entry = self._unspaced.get(following[0], following[0])
                    following[:1] = [] if entry is None else [entry]
                pieces += [self.mask_entry, *following]
            encoded.append(pieces)
        return encoded

    def open_positions(self, pieces: Sequence[int]) -> list[int]:
        """The positions of the mask tokens in the pieces of a sentence."""
        return [position for position, piece in enumerate(pieces) if piece == self.mask_entry]

    def ask(self, texts: Sequence[str], slot: int, pieces: Sequence[int], position: int) -> Asked:
        """The slot of a sentence at this position of its pieces, in a window of a sentence that is too long."""
        start = min(max(0, position - self.room // 2), max(0, len(pieces) - self.room))
        seen = [*self.prefix, *pieces[start : start + self.room], *self.suffix]
        return Asked(texts, slot, seen, position - start + len(self.prefix))

    def scored(
        self, asked: Sequence[Asked], candidates: CandidateWords, most: int
    ) -> Iterator[tuple[list[int], np.ndarray]]:
        """Batches of ``N`` slots: their indices in ``asked``, and the ``(N, W)`` float32 scores of the candidates.
        Sentences of similar length share a batch, the shortest first.

        ``most``: maximum number of slots per forward pass. Raises ``ModelError`` if scores are not finite. If a GPU
        runs out of memory, batches become smaller. Raises ``PassingError`` if one sentence alone does not fit.
        """
        entries = [torch.from_numpy(of).to(self.model.device) for of in (candidates.spaced, candidates.glued)]
        on_gpu = self.model.device.type == "cuda"
        factor = _GPU_FACTOR if on_gpu else 1

        def work(batch: Sequence[tuple[int, Asked]]) -> torch.Tensor:
            """The scores of a part of a batch. Those of the whole vocabulary are freed here, to save a GPU's memory."""
            started = time.perf_counter()
            logits = self.logits([item for _, item in batch])  # (N, V)
            sound = bool(torch.isfinite(logits.sum()))  # finite only if all scores are
            self.seconds += time.perf_counter() - started
            if not sound and not bool(torch.isfinite(logits).all()):
                raise ModelError(f"filler {self.name!r} {NO_NUMBERS}")
            scores = logits.index_select(1, entries[0])
            if candidates.glued is not candidates.spaced:
                glued = [
                    row for row, (_, item) in enumerate(batch) if not candidates.follows_space(item.texts, item.slot)
                ]
                scores[glued] = logits[glued].index_select(1, entries[1])
            return scores.cpu()

        def fits(batch: list[tuple[int, Asked]], newest: tuple[int, Asked]) -> bool:
            length, slots = len(newest[1].pieces), len(batch) + 1  # the batch is padded to the newest
            wasteful = len(batch) * length >= _ENOUGH_PIECES and length > _MOST_PADDING * len(batch[0][1].pieces)
            return (
                slots <= most
                and slots * length <= _MOST_PIECES * factor
                and slots * self.vocabulary_size <= _MOST_SCORES * factor
                and (on_gpu or not wasteful)
            )

        by_length = sorted(enumerate(asked), key=lambda item: len(item[1].pieces))
        for batch in batches_that_fit(by_length, fits):
            scores = torch.cat(self.halving.run(batch, work))
            yield [index for index, _ in batch], scores.numpy()

    def logits(self, asked: Sequence[Asked]) -> torch.Tensor:
        """Float32 scores ``(N, V)`` of all vocabulary entries at ``N`` slots.

        They are not checked: a damaged model may give NaN. A GPU may have too little memory for them.
        """
        longest = max(len(each.pieces) for each in asked)
        pieces = torch.tensor(
            [each.pieces + [self._padding] * (longest - len(each.pieces)) for each in asked]
        )  # (N, T)
        lengths = torch.tensor([len(each.pieces) for each in asked])  # (N,)
        attention = (torch.arange(longest) < lengths[:, None]).long()  # (N, T)
        device = self.model.device
        with torch.inference_mode():
            logits = scores_at(
                self.model,
                torch.arange(len(asked), device=device),
                torch.tensor([each.position for each in asked], device=device),
                cut=self._cut,
                input_ids=pieces.to(device),
                attention_mask=attention.to(device) if int(lengths.min()) < longest else None,
            )
        return logits.float()


def _unspaced_entries(vocabulary: Mapping[str, int], sign: str) -> dict[int, int | None]:
    """From entries that begin with the sign to the entries without it, if they exist; ``None`` for the bare sign."""
    entries: dict[int, int | None] = {}
    for piece, entry in vocabulary.items():
        if piece == sign:
            entries[entry] = None
        elif piece.startswith(sign) and piece.removeprefix(sign) in vocabulary:
            entries[entry] = vocabulary[piece.removeprefix(sign)]
    return entries


def _special_frame(tokenizer: "Tokenizer") -> tuple[list[int], list[int]]:
    """The special pieces that the tokenizer puts before and after a sentence."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    framed = tokenizer("a")["input_ids"]
    for start in range(len(framed) - len(bare) + 1):
        if framed[start : start + len(bare)] == bare:
            return framed[:start], framed[start + len(bare) :]
    return [], []


def _positions(model: "PreTrainedModel", tokenizer: "Tokenizer") -> int:
    """Number of pieces that the model can read; at most 512, enough context for one word."""
    limits = [_LONGEST_WINDOW, tokenizer.model_max_length]
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions:
        embeddings = getattr(getattr(model.base_model, "embeddings", None), "position_embeddings", None)
        # RoBERTa models count positions from the padding entry.
        padding = getattr(embeddings, "padding_idx", None)
        limits.append(positions - (padding + 1 if padding is not None else 0))
    return min(limits)
