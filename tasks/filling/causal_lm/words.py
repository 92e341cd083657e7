"""Words that a causal LM can write: pieces that begin, continue or are words, so that a marker gets one whole word.

A word has one piece or several. It ends before a piece that begins with neither a letter nor a digit.
``candidate_words`` has the rules for words. With a word list, a word of several pieces must be on the list, since
pieces can combine to any string.

A slot may restrict its words to those of a language, of a marker's class, or of a form (``WordsOfKinds``). So the
context chooses a name among names, and a plural among plurals.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.corpora.masked_text import MASK
from tasks.corpora.words import fold
from tasks.filling.filled_lines import Kinds
from tasks.filling.frequencies.word_frequencies import WordFrequencies
from tasks.filling.masked_lm.candidate_words import (
    CandidateWords,
    candidate_words,
    continues_word,
    is_word,
    space_sign,
    special_entries,
)
from tasks.filling.masked_sentence import Kind

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

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
    kind: Kind = None
    """Kind of the words, for the list of never-masked words."""

    @classmethod
    def of(
        cls, tokenizer: "Tokenizer", size: int, *, name: str, known_words: Collection[str] | None = None
    ) -> "CausalWords":
        """Words of a tokenizer. ``size``: ``V``, which may exceed the tokenizer's entries. ``known_words``: folded;
        ``None`` or empty for no list."""
        candidates = candidate_words(tokenizer, name=name, known_words=known_words)
        sign, excluded = space_sign(tokenizer), special_entries(tokenizer)
        spaced, glued, continues = (np.zeros(size, dtype=bool) for _ in range(3))
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
        continues[continues_word(tokenizer)] = True
        begins = (spaced if sign is None else glued, spaced)
        return cls(candidates, begins, (whole_glued, whole_spaced), continues, tokenizer, known_words or ())

    def among(self, known_words: Collection[str], kind: Kind = None) -> "CausalWords":
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
            kind=kind,
        )

    def mean_factors(self, factors: Mapping[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Log of the mean of ``exp(factor)`` over the folded words that begin with each piece: ``(V,)`` each, in the
        order of ``begins``. A piece that begins none has the mean of all words. Only ``known_words`` count, if any."""
        size = len(self.continues)
        words = [word for word in factors if not self.known_words or word in self.known_words]
        if not words:
            return np.zeros(size), np.zeros(size)
        values = np.array([factors[word] for word in words])
        found = []
        for before in ("", " "):
            pieces = self.tokenizer([before + word for word in words], add_special_tokens=False)["input_ids"]
            first = np.array([word[0] for word in pieces if word], dtype=np.int64)
            sums, counts = np.full(size, -np.inf), np.bincount(first, minlength=size)
            np.logaddexp.at(sums, first, values[list(map(bool, pieces))])
            whole = np.logaddexp.reduce(values) - np.log(len(values))
            found.append(np.where(counts > 0, sums - np.log(np.maximum(counts, 1)), whole))
        return found[0], found[1]

    def may_become_word(self, pieces: Sequence[int]) -> bool:
        """Whether a known word begins with these pieces; always true without a word list."""
        return not self.known_words or _is_beginning(self._beginning(pieces), self._ordered)

    def text(self, pieces: Sequence[int]) -> str | None:
        """The word that several pieces make, or ``None`` if they make none."""
        text = self._spelled(pieces)
        if not is_word(text) or MASK in text or (self.known_words and fold(text) not in self.known_words):
            return None
        return text

    def word(self, pieces: Sequence[int], *, spaced: bool) -> str | None:
        """The word that one or several pieces make, or ``None`` if they make none."""
        if len(pieces) > 1:
            return self.text(pieces)
        index = self.whole[spaced][pieces[0]]
        return self.candidates.words[index] if index >= 0 else None

    @cached_property
    def _beginnings(self) -> dict[int, str]:
        entries = np.flatnonzero(self.begins[0] | self.begins[1]).tolist()
        return {entry: self._beginning([entry]) for entry in entries}

    @cached_property
    def _ordered(self) -> list[str]:
        return sorted(self.known_words)

    def _beginning(self, pieces: Sequence[int]) -> str:
        # The first byte of a letter in several pieces decodes to U+FFFD, which carries no information.
        return fold(self._spelled(pieces)).rstrip("\ufffd")

    def _spelled(self, pieces: Sequence[int]) -> str:
        names: Any = self.tokenizer.convert_ids_to_tokens(list(pieces))
        return self.tokenizer.convert_tokens_to_string(names).strip()


def _is_beginning(text: str, ordered: Sequence[str]) -> bool:
    at = bisect_left(ordered, text)
    return at < len(ordered) and ordered[at].startswith(text)


class WordsOfKinds(dict[Kind, CausalWords]):
    """The words that a model can write, by kind; the words of a kind are collected at its first use.

    ``None`` has the whole vocabulary.
    """

    def __init__(self, words: CausalWords, frequencies: WordFrequencies | None, kinds: Kinds | None) -> None:
        """``frequencies``: known words, which ``kinds`` restrict; without any, fills follow no kinds."""
        super().__init__({None: words})
        self._frequencies, self._kinds = frequencies, kinds

    def __missing__(self, kind: Kind) -> CausalWords:
        known = self._frequencies
        restricted = known and known.of_kind(self._kinds, kind)
        # Too few words do not restrict the filler.
        self[kind] = self[None]
        if restricted is not None and restricted is not known:
            self[kind] = self[None].among(restricted.folded, kind)
        return self[kind]
