"""A classifier of words on a Transformer encoder as tagger; ``palimpsest train-tagger`` makes one.

A word's class is read from the encoder's hidden state of its first piece (Devlin et al. 2019, section 5.3). A
vocabulary in lower case hides case, and how common a word is in general English. So an embedding of both, the word's
kind, is added to each piece. Small encoders are trained without capitals; this shows them case.

The folder holds the changes of training to its base (``weights.safetensors``, float16): whole parameters, or for a
matrix an update of low rank (LoRA; Hu et al. 2022) as ``NAME.down`` ``(rank, inputs)`` and ``NAME.up``
``(outputs, rank)``. On a CPU the encoder's products are in 8-bit integers: twice as fast, and as good (token F2 differs
by at most .001 on the gold sets of docs/detectors.md).
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import nn

from tasks.corpora.words import fold
from tasks.errors import ModelError
from tasks.masking.settings import WordClassifierTagger
from tasks.masking.taggers.crf_features import case_of, tokens_of
from tasks.masking.taggers.tagger import WordTagger, positions_of
from tasks.model_source import locate_model, unreachable
from tasks.packed_linear import eight_bit_linear_layers

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers import PreTrainedTokenizerBase as Tokenizer

KIND, VERSION = "word_classifier", 1
"""``VERSION`` changes with the kinds of words: a model of another version cannot be used."""
WEIGHTS_FILE = "weights.safetensors"
DOWN, UP = ".down", ".up"
_CASES = ("lower", "upper", "initial", "title", "mixed title", "mixed", "none")
_RANKS = (100, 500, 2_000, 8_000, 25_000, 100_000)
"""Limits of a word's rank among the most frequent of general English; a word past the last one is rarer."""
_SPECIAL, _NO_WORD, _FIRST = 0, 1, 2
_OF_A_CASE = len(_RANKS) + 1
KINDS = _FIRST + len(_CASES) * _OF_A_CASE
_WITHOUT_LETTERS = _CASES.index("none")
_MOST_PIECES = 12
"""Pieces of a word that are read; later ones add no information."""
_REMEMBERED = 1 << 16
_PIECES_FOR_SPEED, _PIECES_FOR_SPEED_ON_CUDA = 768, 16_384


class EncodedText(NamedTuple):
    """Input of a classifier for a text of ``P`` pieces and ``T`` tokens (``tokens_of``)."""

    pieces: np.ndarray
    """``(P,)``"""
    kinds: np.ndarray
    """``(P,)``: the kind of the word that each piece is of."""
    firsts: np.ndarray
    """``(T,)``: the place of each token's first piece."""


class WordEncoder:
    """Turns texts into pieces of an encoder's vocabulary and kinds of words."""

    def __init__(self, tokenizer: "Tokenizer", name: str) -> None:
        """Raises ``ModelError`` if the tokenizer has no begin and end pieces: its model is no encoder."""
        import wordfreq

        begin, end = tokenizer.cls_token_id, tokenizer.sep_token_id
        if begin is None or end is None:
            raise ModelError(f"model {name!r} has no pieces for the begin and end of a text; take an encoder, as BERT")
        self.begin, self.end, self.mask = int(begin), int(end), tokenizer.mask_token_id
        self._tokenizer = tokenizer
        self._ranks = {word: rank for rank, word in enumerate(wordfreq.top_n_list("en", _RANKS[-1]))}
        self._of_word = lru_cache(maxsize=_REMEMBERED)(self._word)

    def __call__(self, text: str) -> EncodedText:
        """A text's pieces, in the order of its tokens."""
        pieces: list[int] = []
        kinds: list[int] = []
        firsts: list[int] = []
        for start, end, is_word in tokens_of(text):
            of_word, kind = self._of_word(text[start:end], is_word)
            firsts.append(len(pieces))
            pieces += of_word
            kinds += [kind] * len(of_word)
        return EncodedText(np.array(pieces, dtype=np.int64), np.array(kinds), np.array(firsts, dtype=np.int64))

    def _word(self, word: str, is_word: bool) -> tuple[list[int], int]:
        pieces = self._tokenizer.encode(word, add_special_tokens=False)[:_MOST_PIECES]
        kind = _NO_WORD
        if is_word:
            rank = self._ranks.get(fold(word), _RANKS[-1])
            kind = _FIRST + _CASES.index(case_of(word)) * _OF_A_CASE + sum(rank >= limit for limit in _RANKS)
        return pieces or [self._tokenizer.unk_token_id], kind


def with_case(kinds: torch.Tensor, case: str, lines: torch.Tensor) -> torch.Tensor:
    """Kinds of pieces ``(B, P)`` as if all words with letters of the ``lines`` ``(B,)`` were of one case."""
    of_word = kinds - _FIRST
    has_letters = (of_word >= 0) & (of_word < _WITHOUT_LETTERS * _OF_A_CASE)
    return torch.where(
        lines[:, None] & has_letters, _FIRST + _CASES.index(case) * _OF_A_CASE + of_word % _OF_A_CASE, kinds
    )


def _parts(text: EncodedText, most: int) -> Iterator[EncodedText]:
    """A text in parts of whole tokens, of at most ``most`` pieces each; none for a text without tokens."""
    begin, ends = 0, [*text.firsts[1:], len(text.pieces)]
    while begin < len(text.firsts):
        offset = text.firsts[begin]
        end = max(begin + 1, int(np.searchsorted(ends, offset + most, side="right")))
        pieces = slice(offset, ends[end - 1])
        yield EncodedText(text.pieces[pieces], text.kinds[pieces], text.firsts[begin:end] - offset)
        begin = end


class Batch(NamedTuple):
    """Texts of one batch, padded to ``P`` pieces, begin and end included."""

    pieces: torch.Tensor
    """``(B, P)``"""
    kinds: torch.Tensor
    """``(B, P)``"""
    attention: torch.Tensor | None
    """``(B, P)``; ``None`` where no text is padded."""
    firsts: torch.Tensor
    """``(N, 2)``: row and place of the first piece of each token of the batch, text by text."""


def batch_of(texts: Sequence[EncodedText], encoder: WordEncoder, device: torch.device) -> Batch:
    """Pad texts, none of them empty, into one batch."""
    lengths = [len(text.pieces) + 2 for text in texts]
    shape = (len(texts), max(lengths))
    pieces, kinds, attention = (np.zeros(shape, dtype=np.int64) for _ in range(3))
    for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
        pieces[row, :length] = (encoder.begin, *text.pieces, encoder.end)
        kinds[row, 1 : length - 1] = text.kinds
        attention[row, :length] = 1
    rows = np.repeat(np.arange(len(texts)), [len(text.firsts) for text in texts])
    firsts = np.stack([rows, np.concatenate([text.firsts for text in texts]) + 1], axis=1)
    padded = min(lengths) < max(lengths)
    return Batch(
        torch.from_numpy(pieces).to(device),
        torch.from_numpy(kinds).to(device),
        torch.from_numpy(attention).to(device) if padded else None,
        torch.from_numpy(firsts).to(device),
    )


class WordClassifierNetwork(nn.Module):
    """An encoder, an embedding of kinds of words, and a linear layer; outside is the first class."""

    def __init__(self, body: "PreTrainedModel", classes: int, most_pieces: int) -> None:
        super().__init__()
        self.body = body
        self.most_pieces = most_pieces
        """Pieces of a text, without its begin and end."""
        width = body.config.hidden_size
        self.kinds = nn.Embedding(KINDS, width)
        nn.init.zeros_(self.kinds.weight)
        self.head = nn.Linear(width, classes)

    def forward(self, batch: Batch) -> torch.Tensor:
        """Scores of the classes of each token, ``(N, C)``."""
        embedded = self.body.get_input_embeddings()(batch.pieces) + self.kinds(batch.kinds)  # (B, P, width)
        states = self.body(inputs_embeds=embedded, attention_mask=batch.attention).last_hidden_state
        return self.head(states[batch.firsts[:, 0], batch.firsts[:, 1]])


def load_base(name: str, classes: int) -> tuple[WordClassifierNetwork, WordEncoder]:
    """An untrained classifier on an encoder: folder, ``package:NAME/FOLDER`` or hub name.

    ``ModelError`` if it cannot be loaded or is no encoder.
    """
    import transformers
    from transformers import AutoModel, AutoTokenizer

    transformers.logging.disable_progress_bar()
    location = locate_model(name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(location)
        body = AutoModel.from_pretrained(location, dtype=torch.float32)
    except (OSError, ValueError, KeyError) as error:
        raise unreachable(name, error) from None
    if hasattr(body, "pooler"):
        body.pooler = None  # The pooler makes an unused vector of the whole text.
    most_pieces = positions_of(body.config, tokenizer) - 2
    return WordClassifierNetwork(body, classes, most_pieces), WordEncoder(tokenizer, name)


def apply_weights(network: WordClassifierNetwork, path: str) -> None:
    """Load a file's weights into a fresh classifier in place; ``ModelError`` if they are for another base."""
    from safetensors.torch import load_file

    weights = {name: weight.float() for name, weight in load_file(path).items()}
    parameters = dict(network.named_parameters())
    with torch.no_grad():
        for stored in weights:
            name = stored.removesuffix(UP)
            if stored.endswith(DOWN):
                continue
            change = weights[stored] @ weights[name + DOWN] if stored.endswith(UP) else weights[stored]
            if name not in parameters or parameters[name].shape != change.shape:
                raise ModelError(f"tagger {path!r} does not fit its base: {name!r}; put the right base in its place")
            if stored.endswith(UP):
                change += parameters[name]
            parameters[name].copy_(change)


class WordClassifier(WordTagger):
    """A loaded model."""

    kind = KIND
    longest = 500
    block = 512

    def __init__(self, settings: WordClassifierTagger, threads: int) -> None:
        """Load the model; ``ModelError`` if it or its base is missing or damaged, or of another ``VERSION``."""
        from tasks.torch_setup import set_up_torch

        set_up_torch(threads)
        super().__init__(settings, VERSION, (WEIGHTS_FILE,))
        self._network, self._encoder = load_base(self.description["base"], len(self.types) + 1)
        apply_weights(self._network, str(self.folder / WEIGHTS_FILE))
        self._network.eval()
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._network.to(self._device)
        if self._device.type == "cpu":
            eight_bit_linear_layers(self._network.body)

    def probabilities(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The probabilities of each text's tokens, ``(T, C)``: outside, and the entity types in their order.

        A text of more pieces than the encoder has positions is split into parts.
        """
        nothing = np.zeros((0, len(self.types) + 1), dtype=np.float32)
        parts = [list(_parts(self._encoder(text), self._network.most_pieces)) for text in texts]
        encoded = [part for of_text in parts for part in of_text]
        found = [nothing] * len(encoded)
        with torch.inference_mode():
            for chosen in self._batches([len(part.pieces) for part in encoded]):
                scores = self._network(batch_of([encoded[index] for index in chosen], self._encoder, self._device))
                rows = scores.float().softmax(dim=-1).cpu().numpy()
                ends = np.cumsum([len(encoded[index].firsts) for index in chosen])[:-1]
                for index, rows_of_part in zip(chosen, np.split(rows, ends), strict=True):
                    found[index] = rows_of_part
        begins = np.cumsum([0, *map(len, parts)])
        return [np.concatenate([nothing, *found[begin:end]]) for begin, end in pairwise(begins)]

    def _batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Texts of the same number of pieces: without padding, no text depends on the others of its batch."""
        most = _PIECES_FOR_SPEED if self._device.type == "cpu" else _PIECES_FOR_SPEED_ON_CUDA
        by_length: dict[int, list[int]] = {}
        for index, length in enumerate(lengths):
            by_length.setdefault(length, []).append(index)
        for length, indices in by_length.items():
            size = max(1, most // length)
            for begin in range(0, len(indices), size):
                yield indices[begin : begin + size]
