"""A text as pieces (subword tokens) of a causal language model.

A text is first a sequence of words, as for every kind of model, but over a vocabulary that adds every word it meets.
Each word becomes its pieces with the space before it, the same at every place, also at the start of a sentence. A
marker that the model knows is one token. A sentence is a line: it starts after a line end and ends with one. The
tokenizer's own end token has another meaning in every model. A model tuned for conversation reads it as the end of a
turn, which hardly follows words without punctuation.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.errors import ModelError
from tasks.language_model.encoded_text import EncodedText, is_marker
from tasks.language_model.learners import MarkedText
from tasks.language_model.normalisation import normalise
from tasks.language_model.vocabulary import END_ID, MARKERS, SPECIAL_TOKENS, START_ID, Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

_LINE_END = "\n"
"""Words are encoded after a line end, since many tokenizers treat the start of a text differently."""


class OpenVocabulary(Vocabulary):
    """The special tokens, and every word once it is met; no word is unknown."""

    is_open = True

    def __init__(self) -> None:
        super().__init__(SPECIAL_TOKENS)
        self.words = list(SPECIAL_TOKENS)

    def encode(self, words: Iterable[str]) -> list[int]:
        """The ids of words and markers; a new word gets a new id."""
        found = []
        for word in words:
            index = self.ids.setdefault(word, len(self.words))
            if index == len(self.words):
                self.words.append(word)
            found.append(index)
        return found


class WordPieces:
    """A tokenizer, applied to words."""

    def __init__(self, tokenizer: "Tokenizer", name: str) -> None:
        """Raises ``ModelError`` where the tokenizer has no piece for the end of a line."""
        self._tokenizer, self._name = tokenizer, name
        self.hash = hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode()).hexdigest()
        self.size = len(tokenizer)
        self._anchor, line, longer = self._plain([_LINE_END, f"{_LINE_END} a", f"{_LINE_END} a{_LINE_END}"])
        if not self._anchor or longer[: len(line)] != line or longer == line:
            raise ModelError(f"model {name!r} has no pieces for the end of a line, which ends every sentence")
        # A tokenizer puts its start token before every text only where the model was trained that way (LLaMA).
        begins = tokenizer(_LINE_END)["input_ids"][:1] == [tokenizer.bos_token_id]
        self.begin: list[int] = [tokenizer.bos_token_id] if begins else []
        """Start token of every window; empty where the model has none."""
        self.start = [*self.begin, *self._anchor]
        """Pieces before a sentence."""
        self.end = longer[len(line) :]
        self.markers: dict[str, int] = {}
        self.vocabulary = OpenVocabulary()

    def add_markers(self, markers: Sequence[str]) -> None:
        """Add each of these markers as one token."""
        from tokenizers import AddedToken

        self._tokenizer.add_tokens([AddedToken(marker, special=True, normalized=False) for marker in markers])
        ids: Any = self._tokenizer.convert_tokens_to_ids(list(markers))
        self.markers = dict(zip(markers, ids, strict=True))

    def save(self, folder: str | Path) -> None:
        """Write the tokenizer into a model folder."""
        self._tokenizer.save_pretrained(folder)

    def of_words(self, words: Sequence[str]) -> list[list[int]]:
        """The pieces of each word with the space before it; raises ``ModelError`` where a word has none."""
        length = len(self._anchor)
        pieces = self._plain([f"{_LINE_END} {word}" for word in words])
        joined = [index for index, found in enumerate(pieces) if found[:length] != self._anchor]
        alone = iter(self._plain([f" {words[index]}" for index in joined]))
        cut = [found[length:] for found in pieces]
        for index in joined:
            # The tokenizer merged the line end and the next characters into one piece.
            cut[index] = next(alone)
        if not all(cut):
            raise ModelError(f"model {self._name!r}: its tokenizer has no pieces for some words of the text")
        return cut

    @cached_property
    def line_ends(self) -> list[int]:
        """The pieces that end a line or the whole text."""
        texts = self._tokenizer.batch_decode([[piece] for piece in range(self.size)])
        ends = {self._tokenizer.eos_token_id, *(piece for piece, text in enumerate(texts) if _LINE_END in text)}
        return sorted(ends - {None})

    def words(self, pieces: Sequence[int]) -> tuple[str, ...]:
        """The normalised words that pieces spell."""
        return tuple(normalise(str(self._tokenizer.decode(list(pieces), skip_special_tokens=True))))

    def _plain(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        pieces: list[list[int]] = self._tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=True, return_attention_mask=False
        )["input_ids"]
        return pieces

    def of_text(self, text: EncodedText) -> MarkedText:
        """Convert a text over the open vocabulary into pieces; the pieces before a sentence are no targets.

        Raises ``ModelError`` where it has markers that ``add_markers`` did not add.
        """
        vocabulary, used = self.vocabulary, np.unique(text.tokens)
        is_word = used >= len(SPECIAL_TOKENS)
        table: list[list[int]] = [[] for _ in vocabulary.words]
        table[START_ID], table[END_ID] = self.start, self.end
        for index in used[~is_word].tolist():
            token = vocabulary.words[index]
            if token in MARKERS:
                if token not in self.markers:
                    raise ModelError(f"model {self._name!r} does not know the marker {token}; adapt it on such text")
                table[index] = [self.markers[token]]
        words = used[is_word].tolist()
        for index, pieces in zip(words, self.of_words([vocabulary.words[index] for index in words]), strict=True):
            table[index] = pieces
        lengths = np.fromiter(map(len, table), dtype=np.int64, count=len(table))
        begins = np.concatenate([[0], np.cumsum(lengths)])
        flat = np.fromiter((piece for pieces in table for piece in pieces), dtype=np.int32, count=int(begins[-1]))
        counts = lengths[text.tokens]  # (N,): pieces of each word
        word = np.repeat(np.arange(len(counts)), counts)  # (P,)
        ends = np.cumsum(counts)
        inside = np.arange(len(word)) - (ends - counts)[word]  # (P,): place in the word
        return MarkedText(
            text=EncodedText(
                tokens=flat[begins[text.tokens[word]] + inside],
                offsets=np.concatenate([[0], ends])[text.offsets],
                lines=text.lines,
                empty_lines=text.empty_lines,
                marker_like=text.marker_like,
                markers_are_targets=text.markers_are_targets,
            ),
            is_target=text.is_target()[word],
            is_first=inside == 0,
        )


def markers_in(text: EncodedText) -> list[str]:
    """The markers that a text holds, in the order of their ids."""
    return [SPECIAL_TOKENS[index] for index in np.unique(text.tokens[is_marker(text.tokens)]).tolist()]
