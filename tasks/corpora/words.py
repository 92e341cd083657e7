"""Definition of a word: the one tokenisation that masking, counting, cleaning and filling share.

A word has at least one letter or digit and no white space. Its rules, each with a test:

- **Punctuation** around a word does not belong to it: ``"Chicago,"`` is the word ``Chicago``. Bare punctuation is none.
- **Contractions** of pronouns, question words and the like are one word: ``don't``, ``it's``, ``we'll``, ``o'clock``,
  ``O'Brien``. The apostrophe may be straight or curly.
- **Possessives** and other endings (``'s 'd 'll 're 've 'm``) after any other word do not belong to it: ``Tom's`` is
  the word ``Tom``. So it is masked as ``[MASK]'s`` and the filler sees that a possessor is missing. Such an ending on
  its own, as in tokenised text (``Tom 's``), is no word either.
- **Hyphens and slashes** divide words: ``Chicago-based`` is ``Chicago`` and ``based``.
- **Digits** joined by ``. , : / -`` are one word: ``3.14``, ``10:30``, ``1,000``, ``2018-05-02``, ``555-1234``; so are
  digits with letters: ``5pm``, ``1st``, ``B2B``. Signs before and after (``$``, ``%``, ``+``) are punctuation.
- **Initials** joined by full stops are one word without the last stop: ``U.S.``, ``e.g.``; so is ``AT&T``.
- **E-mail addresses, URLs and bare domains** are one word, without punctuation after them.
- **@handles and #tags** are one word with their sign; underscores inside a word belong to it, others do not.
- **Other scripts**: a run of letters with its combining marks is one word, also in a script without spaces.
- **Hexadecimal identifiers** are one word: addresses of machines (``fe80::dead:beef``, ``de:ad:be:ef:ca:fe``), UUIDs,
  and keys in groups of four digits or more.
- **Emoji and symbols** are no words; **signs for letters** are letters (``Ⓐⓝⓝⓐ``, ``🅰🅽🅽🅰``, full-width ones). Styled
  signs are read as their plain ones (``＠``, no-break hyphens; ``tasks.corpora.plain_text``).
- **Control characters** divide words; **format characters** (soft hyphen, zero-width space, joiners, direction marks)
  inside a word belong to it, so they cannot hide it.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from tasks.corpora.identifiers import HEXADECIMAL
from tasks.corpora.plain_text import plain, stands_for_letters

_APOSTROPHES = "'’ʼ＇"
_CHUNK = re.compile(r"\S+")
_LONGEST_CACHED = 48

_LETTER = r"[^\W\d_]"
_CHARACTER = r"[^\W_]"
_INSIDE = rf"(?:[{_APOSTROPHES}&]|_+|(?<=\d)[.,:/\-](?=\d))"
_WORD = rf"{_CHARACTER}+(?:{_INSIDE}{_CHARACTER}+)*"
_TAIL = r"""[^\s<>"]*[^\s<>".,;:!?'’)\]}…*_~|]"""
_DOMAINS = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|ly|tv|gg|co|uk|ie|de|fr|es|nl|ch|at|se|pl|eu|jp|cn|ru|au|nz"
)
# Repetitions are bounded where a failed attempt would be repeated from every position: time stays linear in the length
# of the line.
_WEB = "|".join(
    (
        rf"(?:https?|ftp)://{_TAIL}",
        rf"(?<!\w)www\.{_TAIL}",
        rf"{_CHARACTER}[\w.+%-]{{0,63}}@{_CHARACTER}[\w-]{{0,62}}(?:\.{_CHARACTER}[\w-]{{0,62}}){{0,8}}",
        rf"(?<![\w.])(?:{_CHARACTER}[\w-]{{0,62}}\.){{1,8}}(?:{_DOMAINS})(?![\w-])(?::\d+)?(?:/(?:{_TAIL})?)?",
        rf"(?<!\w)@{_CHARACTER}\w*(?:\.\w+)*",
        rf"(?<!\w)\#{_CHARACTER}\w*",
        rf"(?<!\w){_LETTER}(?:\.{_LETTER})+(?![{_APOSTROPHES}]?{_CHARACTER})",
    )
)
_PLAIN_PATTERN = re.compile(_WORD)
_WEB_PATTERN = re.compile(f"{_WEB}|{_WORD}", re.IGNORECASE)
_WEB_SIGNS = re.compile(r"[@#./]")
_IDENTIFIER_PATTERN = re.compile(f"{HEXADECIMAL}|{_WEB}|{_WORD}", re.IGNORECASE)
_MAY_BE_IDENTIFIER = re.compile(r"::|[0-9a-fA-F]{2}([:.-])[0-9a-fA-F]{2,}\1[0-9a-fA-F]{2}").search
_ENDING = re.compile(rf"(.+)[{_APOSTROPHES}](?:s|d|ll|re|ve|m)", re.IGNORECASE | re.DOTALL)
_LONE_ENDING = re.compile(rf"[{_APOSTROPHES}](?:s|d|ll|re|ve|m)", re.IGNORECASE)
_CONTRACTED = frozenset(
    (
        "i you he she it we they this that these those there here who what where when why how let "
        "could would should might must may"
    ).split()
)
"""Words that form one word with a following ``'s 'd 'll 're 've 'm``."""

_FOLDED_APOSTROPHES = str.maketrans(dict.fromkeys(_APOSTROPHES, "'"))


def word_spans(text: str) -> list[tuple[int, int]]:
    """Start and end (characters, end excluded) of each word of a text, in order; linear in its length."""
    spans: list[tuple[int, int]] = []
    for chunk in _CHUNK.finditer(text):
        start = chunk.start()
        spans += [(start + first, start + last) for first, last in _chunk_spans(chunk.group())]
    return spans


def words_of(text: str) -> list[str]:
    """The words of a text, unchanged."""
    return [text[start:end] for start, end in word_spans(text)]


def folded_words(text: str) -> list[str]:
    """The folded words of a text."""
    return [word for chunk in text.split() for word in _folded_words(chunk)]


def lines_found(lines: Iterable[str], others: Iterable[str]) -> list[bool]:
    """Whether each line is one of the others, by its folded words; a line without a word is none of them."""
    keys = [" ".join(folded_words(line)) for line in lines]
    found = (set(keys) - {""}).intersection(" ".join(folded_words(other)) for other in others)
    return [key in found for key in keys]


def count_words(text: str) -> int:
    """The number of words of a text."""
    return sum(len(_chunk_spans(chunk)) for chunk in text.split())


def fold(word: str) -> str:
    """The form of a word for look-ups: NFKC, case folded, straight apostrophe, no format characters.

    ``fold(fold(word)) == fold(word)``.
    """
    if word.isascii():
        return word.lower()
    word = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain(word)).casefold()).translate(
        _FOLDED_APOSTROPHES
    )
    return "".join(character for character in word if unicodedata.category(character) != "Cf")


def _chunk_spans(chunk: str) -> tuple[tuple[int, int], ...]:
    """The word spans of a chunk without white space; short ones are cached, since text repeats itself."""
    return _remembered_spans(chunk) if len(chunk) <= _LONGEST_CACHED else _find_spans(chunk)


def _find_spans(chunk: str) -> tuple[tuple[int, int], ...]:
    # Letters alone are one word, but for the apostrophe that is a letter.
    if chunk.isalpha() and "ʼ" not in chunk:
        return ((0, len(chunk)),)
    return _match_spans(chunk) if chunk.isascii() else _spans_in_plain(chunk)


def _match_spans(chunk: str) -> tuple[tuple[int, int], ...]:
    pattern = _WEB_PATTERN if _WEB_SIGNS.search(chunk) else _PLAIN_PATTERN
    if (":" in chunk or chunk.count("-") > 1 or chunk.count(".") > 1) and _MAY_BE_IDENTIFIER(chunk):
        pattern = _IDENTIFIER_PATTERN
    spans = []
    for match in pattern.finditer(chunk):
        start, end = match.span()
        if start and _LONE_ENDING.fullmatch(chunk, start - 1, end):
            continue
        ending = _ENDING.fullmatch(chunk, start, end)
        if ending and "://" not in match.group() and fold(ending.group(1)) not in _CONTRACTED:
            end = ending.end(1)
        spans.append((start, end))
    return tuple(spans)


_remembered_spans = lru_cache(maxsize=1 << 16)(_find_spans)


def _folded_words(chunk: str) -> tuple[str, ...]:
    return _remembered_words(chunk) if len(chunk) <= _LONGEST_CACHED else _find_words(chunk)


def _find_words(chunk: str) -> tuple[str, ...]:
    return tuple(fold(chunk[start:end]) for start, end in _find_spans(chunk))


_remembered_words = lru_cache(maxsize=1 << 16)(_find_words)


def _spans_in_plain(chunk: str) -> tuple[tuple[int, int], ...]:
    """The word spans of a chunk in plain characters, without format characters at a word's border.

    Otherwise the end of a text direction would be masked with a word, but not its beginning.
    """
    places = [place for place, character in enumerate(chunk) if unicodedata.category(character) != "Cf"]
    visible = chunk if len(places) == len(chunk) else "".join([chunk[place] for place in places])
    return tuple((places[start], places[end - 1] + 1) for start, end in _match_spans(_with_marks_as_letters(visible)))


def _with_marks_as_letters(chunk: str) -> str:
    """A plain text of equal length, in which marks after a letter and signs for several letters are letters.

    Python's ``\\w`` knows no combining marks, and would divide words of scripts that write vowels with them. Marks
    after an emoji are unchanged, or a variation selector would be a word.
    """
    characters = list(plain(chunk))
    inside = False
    for position, character in enumerate(characters):
        is_mark = inside and unicodedata.category(character) in ("Mn", "Mc", "Me")
        if is_mark or (not character.isascii() and not character.isalnum() and stands_for_letters(character)):
            characters[position] = "x"
            inside = True
        else:
            inside = character.isalnum()
    return "".join(characters)
