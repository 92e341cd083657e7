"""Entries of a masked LM's vocabulary that are words, so that one marker gets exactly one word.

These entries are never written:

- special and added tokens, and continuation pieces: ``##ing`` of WordPiece, pieces without the sign for a space (``Ġ``,
  ``▁``) in other vocabularies;
- entries that are not exactly one word by ``corpora.words``, and typographic forms (``ﬁ``);
- single characters other than ``a``, ``i`` and digits. Letters from a to z are allowed if the word list has them, as if
  masked words are counted;
- digits that begin with a zero, and pieces of contractions and addresses (``didn``, ``ll``, ``www``);
- strong words and slurs, and letters from a to z with marks on them (``fill_words``);
- with a word list, entries that the list lacks, if they may be beginnings of words: all of a vocabulary with space
  signs (``Ġconf``), and WordPiece entries of up to three characters.

A word may have two entries: one after a space, and one at the start of a line or after a bracket (``ĠBoston`` and
``Boston``). The entry that fits the slot is scored.
"""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpora.words import fold, word_spans
from tasks.errors import ModelError
from tasks.filling.fill_words import has_stray_mark, is_strong, strong_words

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase as Tokenizer

SENTENCE_PIECE_SIGN = "▁"
_SPACE_SIGNS = ("Ġ", SENTENCE_PIECE_SIGN)
_CONTINUATION = "##"
_WORD_END = "</w>"
_SINGLE_CHARACTER_WORDS = frozenset("aAiI0123456789")
_CONTRACTION_DEBRIS = (
    "ain aren couldn didn doesn don hadn hasn isn ll mightn mustn needn re shan shouldn ve wasn weren wouldn nt em im"
)
_OTHER_DEBRIS = "ing th st nd rd http https www com org html"
_DEBRIS = frozenset(f"{_CONTRACTION_DEBRIS} {_OTHER_DEBRIS}".split())
"""Pieces of contractions, ordinals and addresses."""
_SHORT = 3
"""WordPiece entries up to this length must be on the word list, if there is one."""


@dataclass(frozen=True)
class CandidateWords:
    """The ``W`` words that a filler can write."""

    words: tuple[str, ...]
    """Text of each word in the vocabulary."""
    spaced: np.ndarray
    """``(W,)`` entry of each word after white space."""
    glued: np.ndarray
    """``(W,)`` entry of each word at the start of a line or after another character; equal to ``spaced`` if the
    vocabulary has no such entry."""
    line_start_is_spaced: bool
    """Whether the tokenizer treats the start of a line like a space."""
    cased: bool
    """Whether any word has a capital letter; if none has, the filler writes only lower case."""

    def __len__(self) -> int:
        return len(self.words)

    def follows_space(self, texts: Sequence[str], slot: int) -> bool:
        """Whether a slot of a sentence, ``n + 1`` texts around ``n`` slots, takes ``spaced`` instead of ``glued``."""
        before = texts[slot]
        return self.line_start_is_spaced if slot == 0 and not before else before[-1:].isspace()

    def entries_after(self, texts: Sequence[str], slot: int) -> np.ndarray:
        """``(W,)`` the entries that fit a slot."""
        return self.spaced if self.follows_space(texts, slot) else self.glued


def candidate_words(tokenizer: "Tokenizer", *, name: str, known_words: Collection[str] | None = None) -> CandidateWords:
    """Find the words of a tokenizer's vocabulary.

    ``known_words``: folded words of a word list; ``None`` or an empty list to use only the rules. Raises ``ModelError``
    if no word is left, or if the vocabulary marks the ends of words instead of their beginnings (XLM). The entries of
    such a vocabulary do not distinguish a word from the last piece of a word.
    """
    vocabulary: Mapping[str, int] = tokenizer.get_vocab()
    if any(piece.endswith(_WORD_END) and piece != _WORD_END for piece in vocabulary):
        raise ModelError(
            f"filler {name!r}: its vocabulary marks the ends of words ({_WORD_END}), so words and endings look alike; "
            "take one of another kind, such as 'bert-base-uncased' or 'roberta-base'"
        )
    excluded = special_entries(tokenizer)
    sign = space_sign(tokenizer)
    words: list[str] = []
    spaced: list[int] = []
    glued: list[int] = []
    for piece, entry in sorted(vocabulary.items(), key=lambda item: item[1]):
        if entry in excluded:
            continue
        word = _word_of(piece, sign, tokenizer)
        if word is None or not (is_word(word) or (known_words and is_letter(word) and fold(word) in known_words)):
            continue
        if known_words and (sign or len(word) <= _SHORT) and fold(word) not in known_words:
            continue
        words.append(word)
        spaced.append(entry)
        glued.append(vocabulary.get(piece.removeprefix(sign), entry) if sign else entry)
    if not words:
        raise ModelError(f"filler {name!r}: no entry of its vocabulary of {len(vocabulary)} pieces is a word")
    spaced_entries = np.array(spaced, dtype=np.int64)
    return CandidateWords(
        tuple(words),
        spaced_entries,
        np.array(glued, dtype=np.int64) if sign else spaced_entries,
        line_start_is_spaced=not sign or _first_piece(tokenizer, words[0]).startswith(sign),
        cased=any(word != word.lower() for word in words),
    )


def is_letter(text: str) -> bool:
    """Whether a text is a single letter from a to z, in either case."""
    return len(text) == 1 and text.isascii() and text.isalpha()


def is_word(text: str) -> bool:
    """Whether a text may replace one marker, by the rules above."""
    if len(text) > 1 and text.isascii() and text.isalpha():
        # A fast path for most words, equal to the rules below.
        folded = text.lower()
        return folded not in _DEBRIS and folded not in strong_words()
    if word_spans(text) != [(0, len(text))] or not unicodedata.is_normalized("NFKC", text):
        return False
    if len(text) == 1:
        return text in _SINGLE_CHARACTER_WORDS
    if text.isdigit() and text[0] == "0":
        return False
    return fold(text) not in _DEBRIS and not is_strong(text) and not has_stray_mark(text)


def _word_of(piece: str, sign: str | None, tokenizer: "Tokenizer") -> str | None:
    """The text of an entry that begins a word, or ``None`` for any other entry."""
    if sign is None:
        return None if piece.startswith(_CONTINUATION) else piece
    if not piece.startswith(sign):
        return None
    bare = piece[len(sign) :]
    # Byte-level vocabularies spell every byte outside ASCII with a separate sign.
    return bare if bare.isascii() else tokenizer.convert_tokens_to_string([piece]).strip()


def special_entries(tokenizer: "Tokenizer") -> set[int]:
    """The special and the added entries of a vocabulary."""
    return {*tokenizer.all_special_ids, *tokenizer.get_added_vocab().values()}


def space_sign(tokenizer: "Tokenizer") -> str | None:
    """The sign for a space that begins words in this vocabulary, or ``None`` for WordPiece and word vocabularies."""
    second_word = tokenizer.tokenize("a a")[1:]
    return next((sign for sign in _SPACE_SIGNS if any(piece.startswith(sign) for piece in second_word)), None)


def _first_piece(tokenizer: "Tokenizer", word: str) -> str:
    return next(iter(tokenizer.tokenize(word)), "")


def continues_word(tokenizer: "Tokenizer") -> list[int]:
    """The entries that continue the word of the piece before them."""
    vocabulary: Mapping[str, int] = tokenizer.get_vocab()
    excluded = special_entries(tokenizer)
    sign = space_sign(tokenizer)
    if sign is None:
        return [entry for piece, entry in vocabulary.items() if piece.startswith(_CONTINUATION)]
    return [
        entry
        for piece, entry in vocabulary.items()
        if entry not in excluded and not piece.startswith(sign) and piece[:1].isalnum()
    ]


def without_sign(tokenizer: "Tokenizer") -> list[int]:
    """The entries without a space sign, which may be inside a word. Empty for a vocabulary without such signs, which
    marks continuations instead."""
    sign = space_sign(tokenizer)
    if sign is None:
        return []
    return [entry for piece, entry in tokenizer.get_vocab().items() if not piece.startswith(sign)]


def holds_word(tokenizer: "Tokenizer") -> list[int]:
    """The entries with a letter or digit, or with a part of one, and the unknown piece. A piece after them without a
    space belongs to their word."""
    excluded = special_entries(tokenizer)
    sign = space_sign(tokenizer)
    byte_level = sign not in (None, SENTENCE_PIECE_SIGN)
    found = []
    for piece, entry in tokenizer.get_vocab().items():
        text = piece.removeprefix(sign or "")
        if byte_level and not text.isascii():
            # Such vocabularies spell every byte outside ASCII with a separate sign.
            text = tokenizer.convert_tokens_to_string([piece])
        if entry == tokenizer.unk_token_id or (entry not in excluded and any(map(_is_of_word, text))):
            found.append(entry)
    return found


def _is_of_word(character: str) -> bool:
    """Whether a character is a letter or a digit, a combining mark, or an incomplete sequence of bytes."""
    return character.isalnum() or character == "\ufffd" or unicodedata.category(character).startswith("M")
