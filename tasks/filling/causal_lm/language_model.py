"""A causal language model of Hugging Face's as a filler: loading it from wherever it is, and its pieces.

By hub name, folder, a file in GGUF, or an adapter with its base. Any architecture works that keeps the keys and values
of what it has read; whether one does is tried on a few pieces (``rows``), and the others are refused. All text is
encoded as if it stood behind a line end, so that a piece of text has the same pieces wherever it stands.

Which pieces of a causal LM's vocabulary begin, carry on or are words, so that one marker gets one whole word.

A word is one piece or several. It ends where the model would go on with anything but letters and digits. The rules
of what is a word are those of ``candidate_words``; with a word list, a word of several pieces must be on it, since
pieces can be put together to anything.

The prompts of the paper (3.2): an instruction, the sentence with [MASK] as input, and the sentence as output.

The parts are encoded one by one and put together, in training as in filling, so both have the same pieces.

A masked sentence as a causal LM's pieces: what is known before, between and behind its slots.
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
"""Longer sentences are seen through a window, also where a model has room for more."""
_ENOUGH_PIECES = {"cpu": 128, "cuda": 4096}
_BYTES_OF_LARGE_MODEL = 1 << 19
_ANCHOR = "\n"


class CausalLanguageModel:
    """A model with its tokenizer, ready to write."""

    def __init__(self, model: "Network", tokenizer: "Tokenizer", name: str, *, instruction: str | None = None) -> None:
        """``instruction``: that of the prompts the model was tuned on. Raises ``ModelError`` where the model is not
        causal, or does not read a text in parts as it reads the whole."""
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
        """Stands where nothing is; never seen by the model, so any entry will do."""
        names = ("max_position_embeddings", "max_seq_len")
        positions = next(filter(None, (getattr(model.config, name, None) for name in names)), _MOST_POSITIONS)
        self.positions: int = min(positions, _MOST_POSITIONS)
        self.enough_pieces: int = _ENOUGH_PIECES.get(self.model.device.type, _ENOUGH_PIECES["cuda"])
        """So many pieces at a time keep the device busy; a batch may end there rather than pad."""
        self.takes_positions = "position_ids" in inspect.signature(model.forward).parameters
        self.anchor: list[int] = self._plain([_ANCHOR])[0]
        # A model that is not told positions may take a column for one.
        self.closed_from: int | None = window_of(model.config) if self.takes_positions else 0
        """Rows of so many columns or more are read without holes; ``None`` where holes never matter."""
        check_rows(self)

    @classmethod
    def load(cls, name: str) -> "CausalLanguageModel":
        """Load a filler by hub name, folder or ``package:NAME/FOLDER``.

        Raises ``ModelError`` where it cannot be found or loaded, lacks files, or is not causal.
        """
        model, tokenizer, record = load_filler(name)
        return cls(model, tokenizer, name, instruction=record.instruction).prepared()

    def prepared(self) -> "CausalLanguageModel":
        """Itself, with the processor's fastest float32 products where there is no GPU."""
        from tasks.packed_linear import pack_linear_layers

        if self.model.device.type == "cpu":
            pack_linear_layers(self.model)
        return self

    @property
    def bytes_per_piece(self) -> int:
        """Memory that the keys and values of one piece take; where a model does not say its shape, that of a large
        one."""
        config = self.model.config
        heads = getattr(config, "num_attention_heads", None)
        kept_heads = getattr(config, "num_key_value_heads", None) or heads
        layers, width = getattr(config, "num_hidden_layers", None), getattr(config, "hidden_size", None)
        if not (heads and layers and width):
            return _BYTES_OF_LARGE_MODEL
        head = getattr(config, "head_dim", None) or width // heads
        return int(2 * layers * kept_heads * head * self.model.dtype.itemsize)

    @property
    def pieces_in_gpu(self) -> int:
        """Pieces whose keys and values take a quarter of the GPU's memory (beside the model, and once more where rows
        are copied); 0 on a processor."""
        if self.model.device.type != "cuda":
            return 0
        memory = torch.cuda.get_device_properties(self.model.device).total_memory
        return int(memory // 4 // self.bytes_per_piece)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The pieces of each text as it stands inside a line or at its start; strings that look like special tokens
        are ordinary text."""
        behind = [index for index, text in enumerate(texts) if text]
        encoded: list[list[int]] = [[] for _ in texts]
        cut = len(self.anchor)
        whole = self._plain([_ANCHOR + texts[index] for index in behind])
        for index, pieces in zip(behind, whole, strict=True):
            if pieces[:cut] == self.anchor:
                encoded[index] = pieces[cut:]
            else:
                # The tokenizer made one piece of the line end and what follows.
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
        """The text of pieces, character by character as the model wrote it."""
        text = self.tokenizer.decode(list(pieces), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)


def load_filler(name: str) -> tuple[Any, Any, CausalFillerRecord]:
    """Model, tokenizer and record of a filler, an adapter added to its base (but for 4 bits, where it stays beside).

    Raises ``ModelError`` as ``load_causal_model`` and ``CausalFillerRecord.read``, and where the adapter changes a
    weight that two layers share.
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
    if record.precision != "4bit":
        refuse_update_of_shared_weights(tuned, name)
    merged = tuned.merge_and_unload() if record.precision != "4bit" else tuned.get_base_model()
    return merged, tokenizer, record


_CONTINUATION = "##"


@dataclass(frozen=True)
class CausalWords:
    """The pieces of one vocabulary of ``V`` entries."""

    candidates: CandidateWords
    """The words of one piece."""
    begins: tuple[np.ndarray, np.ndarray]
    """``(V,)`` booleans each: begins a word behind a line start or another character, behind a space."""
    whole: tuple[np.ndarray, np.ndarray]
    """``(V,)`` indices into ``candidates`` each, -1 where the piece alone is no word."""
    continues: np.ndarray
    """``(V,)`` booleans: carries on the word of the piece before."""
    tokenizer: "Tokenizer"
    known_words: Collection[str]
    language: str | None = None
    """The one whose list of kept words they are held against."""

    @classmethod
    def of(
        cls, tokenizer: "Tokenizer", size: int, *, name: str, known_words: Collection[str] | None = None
    ) -> "CausalWords":
        """``size``: ``V``, which may be more than the tokenizer has; ``known_words``: folded, ``None`` or empty for no
        list."""
        candidates = candidate_words(tokenizer, name=name, known_words=known_words)
        sign = space_sign(tokenizer)
        excluded = special_entries(tokenizer)
        spaced, glued = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        for piece, entry in tokenizer.get_vocab().items():
            if entry in excluded or piece.startswith(_CONTINUATION):
                continue
            bare = piece.removeprefix(sign) if sign else piece
            # A space alone begins words whose first letter or digit is a piece of its own.
            if bare[:1].isalnum() or (sign and piece == sign):
                (spaced if sign is None or bare != piece else glued)[entry] = True
        whole_spaced, whole_glued = np.full(size, -1), np.full(size, -1)
        whole_spaced[candidates.spaced] = np.arange(len(candidates))
        # Where a word has no entry of its own for a place behind another character, ``glued`` repeats the spaced one.
        own = glued[candidates.glued] | (sign is None)
        whole_glued[candidates.glued[own]] = np.flatnonzero(own)
        for whole in (whole_spaced, whole_glued):
            # What a model copies from its prompt is no substitute.
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
        """What each piece that begins a word is, folded."""
        entries = np.flatnonzero(self.begins[0] | self.begins[1]).tolist()
        # Of a letter whose bytes are pieces, the first one says nothing yet.
        return {entry: fold(self._spelled([entry])).rstrip("\ufffd") for entry in entries}

    def among(self, known_words: Collection[str], language: str | None = None) -> "CausalWords":
        """Those that are folded ``known_words``, and the pieces that one of these begins with."""
        ordered = sorted(known_words)
        begins = np.zeros(len(self.continues), dtype=bool)
        for entry, beginning in self._beginnings.items():
            begins[entry] = _is_beginning(beginning, ordered)
        is_known = np.array([fold(word) in known_words for word in self.candidates.words])
        at_start, behind_space = (np.where((each >= 0) & is_known[each], each, -1) for each in self.whole)
        return replace(
            self,
            begins=(self.begins[0] & begins, self.begins[1] & begins),
            whole=(at_start, behind_space),
            known_words=known_words,
            language=language,
        )

    def mean_factors(self, factors: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """``(V,)`` each, as ``begins``: log of the mean of ``exp(factor)`` over those of the folded words, where
        ``known_words`` are given of these, that begin with a piece; for other pieces over all of them."""
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
        """Whether a known word begins with these pieces; without a list of them any may."""
        beginning = fold(self._spelled(list(pieces))).rstrip("\ufffd") if self.known_words else ""
        return not self.known_words or _is_beginning(beginning, self._ordered)

    def _spelled(self, pieces: list[int]) -> str:
        names: Any = self.tokenizer.convert_ids_to_tokens(pieces)
        return self.tokenizer.convert_tokens_to_string(names).strip()

    def text(self, pieces: Sequence[int]) -> str | None:
        """The word that several pieces make, or ``None`` where they make none."""
        text = self._spelled(list(pieces))
        if not is_word(text) or MASK in text or (self.known_words and fold(text) not in self.known_words):
            return None
        return text


def _is_beginning(text: str, ordered: Sequence[str]) -> bool:
    at = bisect_left(ordered, text)
    return at < len(ordered) and ordered[at].startswith(text)


INSTRUCTION = "Predict the [MASK] tokens in the given sentence"
"""The paper's own words."""
MARKER = f"[{MASK}]"
_MIDDLE = "\nOutput:\n"


class CausalPrompt:
    """Makes prompts for one model."""

    def __init__(self, language_model: CausalLanguageModel, instruction: str | None) -> None:
        """``instruction``: ``None`` for a model that is not tuned on prompts, which then sees only what stands to the
        left."""
        self._language_model = language_model
        self.prompts = instruction is not None
        head = language_model.encode([f"{instruction}\nInput:"])[0] if instruction is not None else []
        self.head: list[int] = [*language_model.start, *head, *language_model.anchor] or [language_model.padding]
        """What every sentence begins with; never nothing."""
        self._middle: list[int] = language_model.encode([_MIDDLE])[0] if self.prompts else []
        self.end: list[int] = [language_model.end] if self.prompts and language_model.end is not None else []
        """What stands behind the output."""

    def inputs(self, sentences: Sequence[Sequence[str]]) -> list[list[int]]:
        """What stands between the head and the output, for sentences of ``n + 1`` texts round ``n`` slots."""
        if not self.prompts:
            return [[] for _ in sentences]
        encoded = self._language_model.encode([MARKER.join(texts) for texts in sentences])
        return [pieces + self._middle for pieces in encoded]


_ANY_WORD = re.compile(r"\s*\S+")


@dataclass(frozen=True)
class EncodedSentence:
    """A sentence with ``n`` slots and the pieces of its ``n + 1`` known texts.

    The space before a slot belongs to the word that will stand there, as in every vocabulary that has signs for
    spaces.
    """

    sentence: MaskedSentence
    known: list[list[int]]
    """Pieces of each text, without the space before a slot."""
    spaced: list[bool]
    """Whether a space stands before each slot."""
    following: list[list[int]]
    """Pieces of the first known words behind each slot."""
    input: list[int]
    """What stands between the prompt's head and the output."""

    @property
    def length(self) -> int:
        """Pieces of the input and all known texts."""
        return len(self.input) + sum(map(len, self.known))


def encode_sentences(
    language_model: CausalLanguageModel,
    sentences: Sequence[MaskedSentence],
    inputs: Sequence[list[int]],
    *,
    following_words: int,
) -> list[EncodedSentence]:
    """Encode sentences in one go; ``following_words``: how many known words behind each slot."""
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
