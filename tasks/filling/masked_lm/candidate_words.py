"""Which entries of a masked LM's vocabulary are words, so that one marker stands for exactly one word.

A vocabulary of pieces holds much that is no word. These entries are never written:

- special and added tokens (``[CLS]``, ``<s>``, ``[unused7]``);
- continuation pieces: ``##ing`` of WordPiece; in byte-level BPE and SentencePiece vocabularies whatever does not
  begin with the sign for a space (``Ġ``, ``▁``);
- whatever is not exactly one word to ``corpora.words``: bare punctuation, ``and/or``, an ending that stands alone;
- single characters other than ``a``, ``i`` and digits (initials, list marks, letters of other scripts), and
  typographic forms (``ﬁ``); but a letter from a to z may stand where the word list has it, which it does only where
  masked words are counted (people spell, and meetings speak of *p* and *m*);
- digits that begin with a zero: ``000`` is what tokenizers leave of ``1,000``;
- strong words and slurs, and letters from a to z with marks on them (``fill_words``);
- debris of contractions: ``didn``, ``ll``, ``ve``: pieces that tokenizers make by cutting at the apostrophe;
- with a word list (``--word-counts``), what never stands alone in that text, where the entry is likely to be the mere
  beginning of words: any entry of a vocabulary with space signs (``Ġconf``), and entries of WordPiece of up to
  three characters. Longer ones of WordPiece are whole words nearly always, also where the list lacks them.

A word may have two entries, one behind a space and one for the start of a line or behind a bracket (``ĠBoston`` and
``Boston``); the one that fits the slot is scored.
"""

import unicodedata
from collections.abc import Collection, Mapping
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
"""What tokenizers leave of contractions, ordinals and addresses."""
_SHORT = 3
"""Entries of WordPiece up to this length must be on the word list, where there is one."""


@dataclass(frozen=True)
class CandidateWords:
    """The ``W`` words that a filler can write."""

    words: tuple[str, ...]
    """Text of each, as the vocabulary has it."""
    spaced: np.ndarray
    """``(W,)`` entry of each behind white space."""
    glued: np.ndarray
    """``(W,)`` entry of each at the start of a line or behind another character; the same as ``spaced`` where a
    vocabulary makes no such difference or has no such entry."""
    line_start_is_spaced: bool
    """Whether the tokenizer treats the start of a line as if a space were before it."""
    cased: bool
    """Whether any word has a capital letter; if none has, the filler writes lower case only."""

    def __len__(self) -> int:
        return len(self.words)

    def follows_space(self, text_before: str, *, line_start: bool) -> bool:
        """Whether a slot behind this text wants the entries of ``spaced``, and not those of ``glued``."""
        return self.line_start_is_spaced if line_start and not text_before else text_before[-1:].isspace()


def candidate_words(tokenizer: "Tokenizer", *, name: str, known_words: Collection[str] | None = None) -> CandidateWords:
    """Find the words of a tokenizer's vocabulary.

    ``known_words``: folded words of a word list, or ``None`` to go by the rules alone; an empty list is none.
    Raises ``ModelError`` where no word is left, or where the vocabulary marks the ends of words instead of their
    beginnings (XLM): its entries do not tell a word from a word's last piece.
    """
    vocabulary: Mapping[str, int] = tokenizer.get_vocab()
    if any(piece.endswith(_WORD_END) and piece != _WORD_END for piece in vocabulary):
        raise ModelError(
            f"filler {name!r}: its vocabulary marks the ends of words ({_WORD_END}), so a word cannot be told from an "
            "ending; take one of another kind, such as 'bert-base-uncased' or 'roberta-base'"
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
    entries_behind_space = np.array(spaced, dtype=np.int64)
    return CandidateWords(
        tuple(words),
        entries_behind_space,
        np.array(glued, dtype=np.int64) if sign else entries_behind_space,
        line_start_is_spaced=not sign or _first_piece(tokenizer, words[0]).startswith(sign),
        cased=any(word != word.lower() for word in words),
    )


def is_letter(text: str) -> bool:
    """Whether a text is a single letter from a to z, in either case."""
    return len(text) == 1 and text.isascii() and text.isalpha()


def is_word(text: str) -> bool:
    """Whether a text may stand for one marker, by the rules above."""
    if len(text) > 1 and text.isascii() and text.isalpha():
        # Most words; the rules below say the same of them.
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
    # Byte-level vocabularies spell every byte outside ASCII with a sign of its own.
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
    """The entries that carry on the word of the piece before them."""
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
    """The entries that may stand within a word, as its space sign is missing; none in a vocabulary without such signs,
    where those that carry on a word have a sign of their own."""
    sign = space_sign(tokenizer)
    if sign is None:
        return []
    return [entry for piece, entry in tokenizer.get_vocab().items() if not piece.startswith(sign)]


def holds_word(tokenizer: "Tokenizer") -> list[int]:
    """The entries with a letter or digit, with a part of one, or with what may be one (the unknown piece): what follows
    them without a space is of their word."""
    excluded = special_entries(tokenizer)
    sign = space_sign(tokenizer)
    byte_level = sign not in (None, SENTENCE_PIECE_SIGN)
    found = []
    for piece, entry in tokenizer.get_vocab().items():
        text = piece.removeprefix(sign or "")
        if byte_level and not text.isascii():
            # Such vocabularies spell every byte outside ASCII with a sign of its own.
            text = tokenizer.convert_tokens_to_string([piece])
        if entry == tokenizer.unk_token_id or (entry not in excluded and any(map(_is_of_word, text))):
            found.append(entry)
    return found


def _is_of_word(character: str) -> bool:
    """Whether it is a letter or a digit, a mark upon one, or bytes that are no character by themselves."""
    return character.isalnum() or character == "\ufffd" or unicodedata.category(character).startswith("M")
