"""A Hugging Face causal language model as a filler: loading, words of its vocabulary, prompts and encoded sentences.

A filler is a hub name, a folder, a GGUF file, or an adapter with its base. Every architecture works that caches keys
and values; a test on a few pieces checks this (``rows.check_rows``). All text is encoded as if a line end preceded it,
so a text has the same pieces at every position.

``CausalWords`` has the pieces that begin, continue or are words, so that one marker gets one whole word. A word has one
piece or several. It ends before a piece that begins with neither a letter nor a digit. ``candidate_words`` has the
rules for words. With a word list, a word of several pieces must be on the list, since pieces can combine to any string.

``CausalPrompt`` makes the prompts of the paper (3.2): an instruction, the sentence with [MASK] as input, and the
sentence as output. Training and filling encode the parts separately and concatenate them, so both have the same pieces.
"""

import inspect
import re
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tasks.causal_model import check_causal, load_causal_model, refuse_update_of_shared_weights
from tasks.corpora.masked_text import MASK
from tasks.corpora.words import fold
from tasks.errors import ModelError
from tasks.filling.causal_lm.rows import check_rows, window_of
from tasks.filling.fillers.filler_folder import CausalFillerRecord
from tasks.filling.masked_lm.candidate_words import (
    CandidateWords,
    candidate_words,
    continues_word,
    is_word,
    space_sign,
    special_entries,
)
from tasks.filling.masked_sentence import MaskedSentence
from tasks.model_source import locate_model, unreachable

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

    from tasks.causal_model import Network

_MOST_POSITIONS = 2048
"""Maximum context: longer sentences are read through a window, even if a model has more positions."""
_ENOUGH_PIECES = {"cpu": 128, "cuda": 4096}
_BYTES_OF_LARGE_MODEL = 1 << 19
_ANCHOR = "\n"


class CausalLanguageModel:
    """A model with its tokenizer, ready to write."""

    def __init__(self, model: "Network", tokenizer: "Tokenizer", name: str, *, instruction: str | None = None) -> None:
        """``instruction``: the instruction of the prompts that the model was tuned on. Raises ``ModelError`` if the
        model is not causal, or if its scores differ between a text in parts and the whole text."""
        self.model: Any = model.eval()
        self.tokenizer = tokenizer
        self.name = name
        self.instruction = instruction
        check_causal(model, name)
        self.end: int | None = tokenizer.eos_token_id
        start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else self.end
        self.start: list[int] = [] if start is None else [start]
        padding = tokenizer.pad_token_id
        self.padding: int = padding if padding is not None else (self.end if self.end is not None else 0)
        """Entry for padding. The attention mask hides it, so any entry is valid."""
        names = ("max_position_embeddings", "max_seq_len")
        positions = next(filter(None, (getattr(model.config, name, None) for name in names)), _MOST_POSITIONS)
        window = window_of(model.config)
        self.positions: int = min(positions, _MOST_POSITIONS, window // 2 if window else _MOST_POSITIONS)
        self.enough_pieces: int = _ENOUGH_PIECES.get(self.model.device.type, _ENOUGH_PIECES["cuda"])
        """Number of pieces in a pass that use the device fully. A batch of this size may end to avoid padding."""
        self.takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        self.anchor: list[int] = self._plain([_ANCHOR])[0]
        check_rows(self)

    @classmethod
    def load(cls, name: str) -> "CausalLanguageModel":
        """Load a filler by hub name, folder or ``package:NAME/FOLDER``.

        Raises ``ModelError`` if it cannot be found or loaded, lacks files, or is not causal.
        """
        model, tokenizer, record = load_filler(name)
        return cls(model, tokenizer, name, instruction=record.instruction).prepared()

    def prepared(self) -> "CausalLanguageModel":
        """This object; on a CPU its linear layers are packed for fast float32 products."""
        from tasks.packed_linear import pack_linear_layers

        if self.model.device.type == "cpu":
            pack_linear_layers(self.model)
        return self

    @property
    def bytes_per_piece(self) -> int:
        """Bytes of the keys and values of one piece. A model with an unknown shape counts as a large one."""
        config = self.model.config
        heads = getattr(config, "num_attention_heads", None)
        cached_heads = getattr(config, "num_key_value_heads", None) or heads
        layers, width = getattr(config, "num_hidden_layers", None), getattr(config, "hidden_size", None)
        if not (heads and layers and width):
            return _BYTES_OF_LARGE_MODEL
        head = getattr(config, "head_dim", None) or width // heads
        return int(2 * layers * cached_heads * head * self.model.dtype.itemsize)

    @property
    def pieces_in_gpu(self) -> int:
        """Number of pieces whose keys and values take a quarter of the GPU's memory; 0 on a CPU. The model needs memory
        too, and copied rows need a second quarter."""
        if self.model.device.type != "cuda":
            return 0
        memory = torch.cuda.get_device_properties(self.model.device).total_memory
        return int(memory // 4 // self.bytes_per_piece)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The pieces of each text, inside a line or at its start. Strings that look like special tokens are ordinary
        text."""
        nonempty = [index for index, text in enumerate(texts) if text]
        encoded: list[list[int]] = [[] for _ in texts]
        cut = len(self.anchor)
        whole = self._plain([_ANCHOR + texts[index] for index in nonempty])
        for index, pieces in zip(nonempty, whole, strict=True):
            if pieces[:cut] == self.anchor:
                encoded[index] = pieces[cut:]
            else:
                # The tokenizer merged the line end with the text after it.
                encoded[index] = self._plain([texts[index]])[0]
        return encoded

    def _plain(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        pieces: list[list[int]] = self.tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=True, return_attention_mask=False
        )["input_ids"]
        return pieces

    def decode(self, pieces: Sequence[int]) -> str:
        """The text of pieces, without any clean-up of spaces."""
        text = self.tokenizer.decode(list(pieces), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)


def load_filler(name: str) -> tuple[Any, Any, CausalFillerRecord]:
    """Model, tokenizer and record of a filler. An adapter is merged into its base.

    Raises ``ModelError`` as ``load_causal_model`` and ``CausalFillerRecord.read``, and if the adapter changes a weight
    that two layers share.
    """
    folder = locate_model(name)
    record = CausalFillerRecord.read(folder) if Path(folder).is_dir() else CausalFillerRecord()
    if record.base is None:
        return *load_causal_model(name, precision=record.precision), record
    try:
        model, tokenizer = load_causal_model(record.base, record.gguf_file, precision=record.precision)
    except ModelError as error:
        raise ModelError(f"filler {name!r} is an adapter, and its base cannot be loaded: {error}") from error
    from peft import PeftModel

    try:
        tuned = PeftModel.from_pretrained(model, folder)
    except Exception as error:
        raise unreachable(name, error) from error
    refuse_update_of_shared_weights(tuned, name)
    return tuned.merge_and_unload(), tokenizer, record


_CONTINUATION = "##"


@dataclass(frozen=True)
class CausalWords:
    """Words in a vocabulary of ``V`` pieces."""

    candidates: CandidateWords
    """Words of one piece."""
    begins: tuple[np.ndarray, np.ndarray]
    """``(V,)`` booleans each: whether a piece begins a word without a space before it, and with one."""
    whole: tuple[np.ndarray, np.ndarray]
    """``(V,)`` indices into ``candidates`` each, in the order of ``begins``; -1 if the piece alone is no word."""
    continues: np.ndarray
    """``(V,)`` booleans: whether a piece continues the word of the piece before."""
    tokenizer: "Tokenizer"
    known_words: Collection[str]
    language: str | None = None
    """Language of the words, for the list of never-masked words."""

    @classmethod
    def of(
        cls, tokenizer: "Tokenizer", size: int, *, name: str, known_words: Collection[str] | None = None
    ) -> "CausalWords":
        """Words of a tokenizer. ``size``: ``V``, which may exceed the tokenizer's entries. ``known_words``: folded;
        ``None`` or empty for no list."""
        candidates = candidate_words(tokenizer, name=name, known_words=known_words)
        sign = space_sign(tokenizer)
        excluded = special_entries(tokenizer)
        spaced, glued = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        for piece, entry in tokenizer.get_vocab().items():
            if entry in excluded or piece.startswith(_CONTINUATION):
                continue
            bare = piece.removeprefix(sign) if sign else piece
            # A space alone begins words whose first letter or digit is a separate piece.
            if bare[:1].isalnum() or (sign and piece == sign):
                (spaced if sign is None or bare != piece else glued)[entry] = True
        whole_spaced, whole_glued = np.full(size, -1), np.full(size, -1)
        whole_spaced[candidates.spaced] = np.arange(len(candidates))
        # ``glued`` repeats the spaced entry of a word that has no entry without a space.
        own = glued[candidates.glued] | (sign is None)
        whole_glued[candidates.glued[own]] = np.flatnonzero(own)
        for whole in (whole_spaced, whole_glued):
            # A model copies the marker's name from its prompt: that is no substitute.
            whole[[index >= 0 and MASK in candidates.words[index] for index in whole.tolist()]] = -1
        continues = np.zeros(size, dtype=bool)
        continues[continues_word(tokenizer)] = True
        return cls(
            candidates,
            (spaced if sign is None else glued, spaced),
            (whole_glued, whole_spaced),
            continues,
            tokenizer,
            known_words or (),
        )

    @cached_property
    def _beginnings(self) -> dict[int, str]:
        """The folded text of each piece that begins a word."""
        entries = np.flatnonzero(self.begins[0] | self.begins[1]).tolist()
        # The first byte of a letter in several pieces decodes to U+FFFD, which carries no information.
        return {entry: fold(self._spelled([entry])).rstrip("\ufffd") for entry in entries}

    def among(self, known_words: Collection[str], language: str | None = None) -> "CausalWords":
        """These words restricted to the folded ``known_words``, and the first pieces restricted in the same way."""
        ordered = sorted(known_words)
        begins = np.zeros(len(self.continues), dtype=bool)
        for entry, beginning in self._beginnings.items():
            begins[entry] = _is_beginning(beginning, ordered)
        is_known = np.array([fold(word) in known_words for word in self.candidates.words])
        at_start, after_space = (np.where((each >= 0) & is_known[each], each, -1) for each in self.whole)
        return replace(
            self,
            begins=(self.begins[0] & begins, self.begins[1] & begins),
            whole=(at_start, after_space),
            known_words=known_words,
            language=language,
        )

    def mean_factors(self, factors: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Log of the mean of ``exp(factor)`` over the folded words that begin with each piece: ``(V,)`` each, in the
        order of ``begins``. A piece that begins none has the mean of all words. Only ``known_words`` count, if any."""
        words = [word for word in factors if not self.known_words or word in self.known_words]
        if not words:
            return np.zeros(len(self.continues)), np.zeros(len(self.continues))
        values = np.array([factors[word] for word in words])
        found = []
        for before in ("", " "):
            pieces = self.tokenizer([before + word for word in words], add_special_tokens=False)["input_ids"]
            has_some = np.array([bool(word) for word in pieces])
            first = np.array([word[0] for word in pieces if word], dtype=np.int64)
            sums, counts = np.full(len(self.continues), -np.inf), np.bincount(first, minlength=len(self.continues))
            np.logaddexp.at(sums, first, values[has_some])
            whole = np.logaddexp.reduce(values) - np.log(len(values))
            found.append(np.where(counts > 0, sums - np.log(np.maximum(counts, 1)), whole))
        return found[0], found[1]

    @cached_property
    def _ordered(self) -> list[str]:
        return sorted(self.known_words)

    def may_become_word(self, pieces: Sequence[int]) -> bool:
        """Whether a known word begins with these pieces; always true without a word list."""
        beginning = fold(self._spelled(list(pieces))).rstrip("\ufffd") if self.known_words else ""
        return not self.known_words or _is_beginning(beginning, self._ordered)

    def _spelled(self, pieces: list[int]) -> str:
        names: Any = self.tokenizer.convert_ids_to_tokens(pieces)
        return self.tokenizer.convert_tokens_to_string(names).strip()

    def text(self, pieces: Sequence[int]) -> str | None:
        """The word that several pieces make, or ``None`` if they make none."""
        text = self._spelled(list(pieces))
        if not is_word(text) or MASK in text or (self.known_words and fold(text) not in self.known_words):
            return None
        return text


def _is_beginning(text: str, ordered: Sequence[str]) -> bool:
    at = bisect_left(ordered, text)
    return at < len(ordered) and ordered[at].startswith(text)


INSTRUCTION = "Predict the [MASK] tokens in the given sentence"
"""Instruction of the paper (3.2), verbatim."""
MARKER = f"[{MASK}]"
_MIDDLE = "\nOutput:\n"


class CausalPrompt:
    """Makes the prompts for one model."""

    def __init__(self, language_model: CausalLanguageModel, instruction: str | None) -> None:
        """``instruction``: ``None`` for a model that is not tuned on prompts; it then sees only the left context."""
        self._language_model = language_model
        self.prompts = instruction is not None
        head = language_model.encode([f"{instruction}\nInput:"])[0] if instruction is not None else []
        self.head: list[int] = [*language_model.start, *head, *language_model.anchor] or [language_model.padding]
        """First pieces of every prompt; never empty."""
        self._middle: list[int] = language_model.encode([_MIDDLE])[0] if self.prompts else []
        self.end: list[int] = [language_model.end] if self.prompts and language_model.end is not None else []
        """Pieces after the output."""

    def inputs(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """The pieces between the head and the output, for sentences of ``n + 1`` texts around ``n`` slots."""
        if not self.prompts:
            return [[] for _ in sentences]
        encoded = self._language_model.encode([MARKER.join(texts) for texts in sentences])
        return [pieces + self._middle for pieces in encoded]


_ANY_WORD = re.compile(r"\s*\S+")


@dataclass(frozen=True)
class EncodedSentence:
    """A sentence with ``n`` slots and the pieces of its ``n + 1`` known texts.

    The space before a slot belongs to the word of the slot, as in every vocabulary that has signs for spaces.
    """

    sentence: MaskedSentence
    known: list[list[int]]
    """Pieces of each text, without the space before a slot."""
    spaced: list[bool]
    """Whether there is a space before each slot."""
    following: list[list[int]]
    """Pieces of the first known words after each slot."""
    input: list[int]
    """Pieces between the prompt's head and the output."""

    @property
    def length(self) -> int:
        """Number of pieces of the input and all known texts."""
        return len(self.input) + sum(map(len, self.known))


def encode_sentences(
    language_model: CausalLanguageModel,
    sentences: Sequence[MaskedSentence],
    inputs: Sequence[list[int]],
    *,
    following_words: int,
) -> list[EncodedSentence]:
    """Encode sentences in one call; ``following_words``: number of known words after each slot."""
    texts: list[str] = []
    for sentence in sentences:
        bare = [_without_space(text) for text in sentence.texts[:-1]] + [sentence.texts[-1]]
        texts += bare
        texts += ["".join(_ANY_WORD.findall(text)[:following_words]) for text in bare[1:]]
    pieces = iter(language_model.encode(texts))
    encoded = []
    for sentence, given in zip(sentences, inputs, strict=True):
        slots = len(sentence.slots)
        known = [next(pieces) for _ in range(slots + 1)]
        following = [next(pieces) for _ in range(slots)]
        spaced = [text.endswith(" ") for text in sentence.texts[:-1]]
        encoded.append(EncodedSentence(sentence, known, spaced, following, given))
    return encoded


def _without_space(text: str) -> str:
    return text[:-1] if text.endswith(" ") else text
