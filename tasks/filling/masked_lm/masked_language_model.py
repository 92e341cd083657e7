"""A Hugging Face masked language model as a filler: loading, encoding, windows, batches, and scores at the markers.

Every architecture with a masked-LM head works. The model sees a whole sentence if it fits into its positions. Of a
longer one it sees a window around the scored markers. Every marker then has context of at least an eighth of the window
on either side, if the sentence has as much.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from tasks.errors import ModelError
from tasks.filling.fillers.filler_folder import apply_update, base_of_update
from tasks.filling.masked_lm.candidate_words import SENTENCE_PIECE_SIGN, space_sign
from tasks.filling.masked_lm.marker_scores import BatchHalving, check_scores, earliest_cut, scores_at
from tasks.model_source import check_model_folder, locate_model, unreachable

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers import PreTrainedTokenizerBase as Tokenizer

_SHARED = 0.75
"""Maximum distance of the markers that share a window, as a share of the window."""
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


@dataclass(frozen=True, slots=True)
class Window:
    """The pieces that the model sees, special ones included, and the positions of the scored markers."""

    pieces: list[int]
    positions: list[int]


@dataclass(frozen=True)
class Frame:
    """The special pieces before and after a text, and the room for the text."""

    prefix: list[int]
    suffix: list[int]
    room: int
    """Maximum number of pieces of the text."""

    @property
    def longest(self) -> int:
        """Number of pieces of the longest sentence that the model sees whole, special ones included."""
        return len(self.prefix) + self.room + len(self.suffix)

    def fits(self, pieces: Sequence[int]) -> bool:
        """Whether the model sees a sentence whole."""
        return len(pieces) <= self.room

    def windows(self, pieces: Sequence[int], positions: Sequence[int]) -> list[Window]:
        """Windows with every marker of ``positions`` (ascending) once, in order; one window if the sentence fits."""
        if self.fits(pieces):
            return [self._window(pieces, positions, 0)]
        windows = []
        first = 0
        for index in range(1, len(positions) + 1):
            if index == len(positions) or positions[index] - positions[first] > self.room * _SHARED:
                amid = (positions[first] + positions[index - 1] + 1) // 2
                start = min(max(0, amid - self.room // 2), len(pieces) - self.room)
                windows.append(self._window(pieces, positions[first:index], start))
                first = index
        return windows

    def _window(self, pieces: Sequence[int], positions: Sequence[int], start: int) -> Window:
        inside = pieces[start : start + self.room]
        shift = len(self.prefix) - start
        return Window([*self.prefix, *inside, *self.suffix], [position + shift for position in positions])


Owner = TypeVar("Owner")


def padded_pieces(batch: Sequence[tuple[Owner, Window]]) -> int:
    """Number of pieces of a batch, padding included."""
    return len(batch) * max(len(window.pieces) for _, window in batch)


def window_batches(
    items: Sequence[tuple[Owner, Window]],
    *,
    most_windows: int,
    vocabulary_size: int,
    on_gpu: bool = False,
) -> Iterator[list[tuple[Owner, Window]]]:
    """The windows with their owners, in batches of similar length, the shortest first."""
    factor = _GPU_FACTOR if on_gpu else 1
    batch: list[tuple[Owner, Window]] = []
    places = 0
    for item in sorted(items, key=lambda item: len(item[1].pieces)):
        length = len(item[1].pieces)  # the newest is the longest, so the batch is padded to its length
        full = (
            len(batch) == most_windows
            or (len(batch) + 1) * length > _MOST_PIECES * factor
            or (places + len(item[1].positions)) * vocabulary_size > _MOST_SCORES * factor
        )
        wasteful = len(batch) * length >= _ENOUGH_PIECES and length > _MOST_PADDING * len(batch[0][1].pieces)
        if batch and (full or (wasteful and not on_gpu)):
            yield batch
            batch, places = [], 0
        batch.append(item)
        places += len(item[1].positions)
    if batch:
        yield batch


_LONGEST_WINDOW = 512


class MaskedLanguageModel:
    """A model with its tokenizer, ready to score fills."""

    def __init__(self, model: "PreTrainedModel", tokenizer: "Tokenizer", name: str) -> None:
        """Raises ``ModelError`` if the tokenizer has no mask token, splits it, or belongs to another model."""
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
        pieces = tokenizer(f"a {tokenizer.mask_token} a", add_special_tokens=False)["input_ids"]
        if pieces.count(self.mask_entry) != 1:
            raise self._splits_the_mask()
        unused = {*tokenizer.all_special_ids} - {self.mask_entry}
        if max({*tokenizer.get_vocab().values()} - unused) >= self.vocabulary_size:
            raise ModelError(
                f"filler {name!r}: its tokenizer has more entries than the {self.vocabulary_size} of its model; "
                "they do not belong together: fetch the whole model again"
            )
        sign = space_sign(tokenizer)
        self._strips_space = sign is not None
        self._unspaced = _unspaced_entries(tokenizer.get_vocab(), sign) if sign == SENTENCE_PIECE_SIGN else {}
        prefix, suffix = _special_frame(tokenizer)
        positions = _positions(model, tokenizer)
        self.frame = Frame(prefix, suffix, positions - len(prefix) - len(suffix))
        """Special pieces and room of every sentence."""
        if self.frame.room < 1:
            raise ModelError(f"filler {name!r} has {positions} positions, too few for one marker; take another one")
        added = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
        # Longer first: one special string may contain another.
        self._special_strings = sorted({*tokenizer.all_special_tokens, *added}, key=len, reverse=True)

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

        Raises ``ModelError`` as ``check_scores``.
        """
        from tasks.packed_linear import pack_linear_layers

        if torch.cuda.is_available():
            self.model.to("cuda")
        else:
            pack_linear_layers(self.model)
        self._cut = earliest_cut(self.model)
        check_scores(self)
        return self

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """Pieces of each sentence, without special ones at the ends. A sentence is ``n + 1`` texts around ``n`` slots.

        A space breaks up strings of a user's text that look like special tokens. This changes the model's input, not
        the text. The other pieces equal a sentence with a word at the marker. So in vocabularies with space signs, the
        space before a marker is no separate piece: it belongs to the word. Text directly after a marker has no space
        sign, although SentencePiece tokenizers put one after every mask token. Raises ``ModelError`` if the tokenizer
        splits its mask token.
        """
        if not sentences:
            return []
        views = [self._view(texts) for texts in sentences]
        encoded: list[list[int]] = self.tokenizer(views, add_special_tokens=False, return_attention_mask=False)[
            "input_ids"
        ]
        for index, texts in enumerate(sentences):
            if encoded[index].count(self.mask_entry) != len(texts) - 1:
                encoded[index] = self._text_by_text(texts)
        if self._unspaced:
            return [self._without_added_signs(pieces, texts) for pieces, texts in zip(encoded, sentences, strict=True)]
        return encoded

    def logits(self, windows: Sequence[Window]) -> torch.Tensor:
        """Float32 scores ``(N, V)`` of all vocabulary entries at the ``N`` positions of ``B`` windows, in their order.

        They are not checked: a damaged model may give NaN. A GPU may have too little memory for them. So call this in
        ``halving.run``, and free the scores of one part before the next.
        """
        longest = max(len(window.pieces) for window in windows)
        pieces = torch.tensor([w.pieces + [self._padding] * (longest - len(w.pieces)) for w in windows])  # (B, T)
        lengths = torch.tensor([len(window.pieces) for window in windows])  # (B,)
        attention = (torch.arange(longest) < lengths[:, None]).long()  # (B, T)
        rows = torch.tensor([row for row, window in enumerate(windows) for _ in window.positions])  # (N,)
        positions = torch.tensor([position for window in windows for position in window.positions])  # (N,)
        device = self.model.device
        with torch.inference_mode():
            logits = scores_at(
                self.model,
                rows.to(device),
                positions.to(device),
                cut=self._cut,
                input_ids=pieces.to(device),
                attention_mask=attention.to(device) if int(lengths.min()) < longest else None,
            )
        return logits.float()

    def _view(self, texts: Sequence[str]) -> str:
        """A sentence in the form for the tokenizer, with mask tokens in the slots."""
        before = map(self._defused, texts[:-1])
        if self._strips_space:
            before = map(str.rstrip, before)
        return str(self.tokenizer.mask_token).join([*before, self._defused(texts[-1])])

    def _text_by_text(self, texts: Sequence[str]) -> list[int]:
        """Pieces of a sentence in which the tokenizer finds more mask tokens than slots.

        Tokenizers that look for it after their normaliser find it in ``[mask]`` and ``[MÁSK]`` too.
        """
        before = [text.rstrip() if self._strips_space else text for text in texts[:-1]]
        parts = self.tokenizer(
            [*before, texts[-1]], add_special_tokens=False, return_attention_mask=False, split_special_tokens=True
        )["input_ids"]
        pieces = list(parts[0])
        for part in parts[1:]:
            pieces += [self.mask_entry, *part]
        if pieces.count(self.mask_entry) != len(texts) - 1:
            raise self._splits_the_mask()
        return pieces

    def _without_added_signs(self, pieces: Sequence[int], texts: Sequence[str]) -> list[int]:
        """The pieces without the space sign after each mask token that text follows directly."""
        entries: list[int] = []
        following = iter(texts[1:])
        glued = False
        for piece in pieces:
            entry = self._unspaced.get(piece, piece) if glued else piece
            glued = False
            if piece == self.mask_entry:
                text = next(following)
                glued = bool(text) and not text[0].isspace()
            if entry is not None:
                entries.append(entry)
        return entries

    def _splits_the_mask(self) -> ModelError:
        return ModelError(
            f"filler {self.name!r}: its tokenizer splits the mask token {self.tokenizer.mask_token!r} into pieces; "
            'fetch the tokenizer that belongs to the model, or set "split_special_tokens": false in its '
            "tokenizer_config.json"
        )

    def _defused(self, text: str) -> str:
        for special in self._special_strings:
            if special in text:
                text = text.replace(special, f"{special[0]} {special[1:]}")
        return text


def load_masked_model(name: str) -> tuple[Any, Any, list[str]]:
    """Model, tokenizer and the names of the missing weights (the head's, if the source has only a body).

    Raises ``ModelError`` as ``MaskedLanguageModel.load``.
    """
    source = locate_model(name)
    base = base_of_update(source)
    if base is not None:
        model, tokenizer, fresh = load_masked_model(base)
        apply_update(model, fresh, source)
        return model, tokenizer, []
    check_model_folder(source, name)
    import transformers
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    # Palimpsest's errors and reports have the content of its messages (fresh weights, long sentences).
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(source)
        model, information = AutoModelForMaskedLM.from_pretrained(source, output_loading_info=True, dtype=torch.float32)
    except Exception as error:
        # Damaged files raise different exceptions for each format; the reason is in the message.
        if isinstance(error, ValueError) and "Unrecognized configuration class" in str(error):
            raise ModelError(
                f"model {name!r} is no masked language model, but of another kind (such as a causal one); "
                "take a masked one such as 'bert-base-uncased' or 'roberta-base'"
            ) from None
        raise unreachable(name, error) from error
    if getattr(model.config, "is_decoder", False) and not model.config.is_encoder_decoder:
        raise ModelError(
            f"model {name!r} is set up as a decoder (is_decoder in config.json): it sees only the text before a marker;"
            " take a masked language model, or set is_decoder to false"
        )
    if getattr(model.config, "default_language", "") is None:
        raise ModelError(
            f"model {name!r} ({type(model).__name__}) has adapters for several languages, and none is chosen: set "
            f'"default_language" in its config.json to one of {", ".join(model.config.languages)}'
        )
    return model, tokenizer, sorted(information["missing_keys"])


def headless(what: str, name: str, missing: Sequence[str]) -> ModelError:
    """The error for a model that lacks its masked-LM head."""
    return ModelError(
        f"{what} {name!r} has no masked-LM head ({len(missing)} weights are missing, such as {missing[0]!r}); "
        "train one with 'palimpsest train-filler' (train_head) and give its output folder"
    )


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
