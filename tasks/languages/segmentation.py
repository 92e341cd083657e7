"""Word segmentation of scripts without spaces: a dictionary divides runs of Chinese or Japanese characters.

Chinese uses jieba with the dictionary of wordfreq's list, so that words are those that the list counts. Japanese uses
MeCab with IPAdic, as wordfreq's list does. A word ends where the script changes: ``OK了`` is two words. Words are
unchanged, in order and without overlap, so their offsets can be recovered. Thai, Lao, Khmer and Burmese are not
divided, since ``wordfreq`` has no list of them.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from tasks.corpora.masked_text import MARKER_PATTERN
from tasks.errors import ParameterError

_HAN = r"々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_KANA = r"\u3041-\u3096\u30a1-\u30faー\uff66-\uff9f"
_MARKS = r"\u3000-\u3004\u3008-\u301f・\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
"""Punctuation between words without a space."""
_RUN = re.compile(f"[{_HAN}{_KANA}]")
_OWN = re.compile(f"[{_HAN}{_KANA}{_MARKS}]")
_PIECES = re.compile(f"{MARKER_PATTERN.pattern}|[{_HAN}{_KANA}]+|[{_MARKS}]+|.[^{_HAN}{_KANA}{_MARKS}[]*")
UNSPACED = _HAN + _KANA
"""Characters of Chinese and Japanese, for a class of a regular expression."""
_PACKAGES = {"zh": "jieba", "ja": "mecab-python3 and ipadic"}
DIVIDED = frozenset(_PACKAGES)
"""Languages whose words a dictionary divides, since no white space does."""
_REMEMBERED = 1 << 16

Divide = Callable[[str], list[str]]


def divider(languages: Sequence[str]) -> Divide:
    """A function that divides a line in these languages (ISO 639-1) into words.

    Raises ``ParameterError`` where a required package is not installed.
    """
    dictionaries = {language: _dictionary(language) for language in languages if language in _PACKAGES}
    if not dictionaries:
        return str.split

    @lru_cache(_REMEMBERED)
    def of_run(run: str) -> tuple[str, ...]:
        japanese = "zh" not in dictionaries or ("ja" in dictionaries and bool(re.search(f"[{_KANA}]", run)))
        return tuple(dictionaries["ja" if japanese else "zh"](run))

    def divide(text: str) -> list[str]:
        found: list[str] = []
        for word in text.split():
            if not _OWN.search(word):
                found.append(word)
                continue
            for piece in _PIECES.finditer(word):
                found += of_run(piece.group()) if _RUN.match(piece.group()) else [piece.group()]
        return found

    return divide


@cache
def _dictionary(language: str) -> Divide:
    try:
        return _chinese() if language == "zh" else _japanese()
    except ImportError:
        raise ParameterError(
            f"language {language!r}: its words are divided by {_PACKAGES[language]}, which is not installed; run: pip "
            "install 'palimpsest[segmentation]'"
        ) from None


def _chinese() -> Divide:
    import jieba
    from wordfreq.chinese import DICT_FILENAME, simplify_chinese

    words = jieba.Tokenizer()
    # By default it writes a cache to the temporary folder that all users share.
    words.FREQ, words.total = words.gen_pfdict(open(DICT_FILENAME, "rb"))  # noqa: SIM115 - it closes the file
    words.initialized = True
    # The hidden Markov model is off, since it makes words that no list has.
    return lambda run: [run[start:end] for _, start, end in words.tokenize(simplify_chinese(run), HMM=False)]


def _japanese() -> Divide:
    from wordfreq.mecab import make_mecab_analyzer

    words = make_mecab_analyzer("ja")
    return lambda run: [line.split("\t")[0] for line in words.parse(run).splitlines() if line != "EOS"]
