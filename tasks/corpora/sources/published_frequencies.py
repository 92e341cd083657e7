"""Published word frequencies of general English, blended with the counts of the user's own generic text.

A vocabulary "built on large generic corpora" (paper 3.1) needs more kinds of text than one generic corpus has: an
encyclopedia alone makes ``yeah`` and ``homework`` rare words. The package ``wordfreq`` (data CC BY-SA 4.0) has one
frequency per word over encyclopedia, subtitles, news, books, web pages and social media.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from tasks.corpora.plain_text import stands_for_letters
from tasks.corpora.words import fold, words_of

_CAPITALS = Path(__file__).parent / "capitals.txt"
_MOST_WORDS, _PER_WORDS = 100_000, 10**9


def published_frequencies(languages: Sequence[str] = ("en",)) -> dict[str, float]:
    """The relative frequency of each word of ``wordfreq``, lower case, with equal weights of the languages.

    Entries with digits are left out: the list replaces digits of numbers with two or more by zeros. So are entries that
    are not one word by the rules of ``tasks.corpora.words``, and those with signs for letters (``™``).
    """
    frequencies: dict[str, float] = {}
    for language in languages:
        for word, frequency in _words(language):
            frequencies[word] = frequencies.get(word, 0.0) + frequency / len(languages)
    return frequencies


def _words(language: str) -> Iterator[tuple[str, float]]:
    """The words and their frequencies, the most frequent first."""
    from wordfreq import get_frequency_dict

    from tasks.languages.word_lists import ROMANISED_HINDI, listed_languages, word_list

    if language not in listed_languages():
        return
    own = language == ROMANISED_HINDI
    frequencies = word_list(language) if own else get_frequency_dict(language, wordlist="best")
    for word, frequency in frequencies.items():
        signs = () if word.isascii() else (one for one in word if stands_for_letters(one) and not one.isalnum())
        if not any(map(str.isdigit, word)) and not any(signs) and words_of(word) == [word]:
            yield word, frequency


@cache
def published_counts(language: str = "en") -> tuple[tuple[str, int], ...]:
    """The 100,000 most frequent words of a language with their counts per billion words, for users without
    counts.

    Empty for a language without a list. The published list is all lower case. ``capitals.txt`` has the English words
    that occur at least three times in the demo's generic text (SQuAD paragraphs, CC BY-SA 4.0) and, by ``usual_forms``
    of its word counts, hardly ever in lower case.
    """
    known = _CAPITALS.read_text(encoding="utf-8").split() if language == "en" else []
    capitals = {fold(word): word for word in known}
    frequencies = islice(_words(language), _MOST_WORDS)
    return tuple((capitals.get(word, word), round(frequency * _PER_WORDS)) for word, frequency in frequencies)


def blend_counts(counts: Mapping[str, int], frequencies: Mapping[str, float], share: float) -> dict[str, int]:
    """Counts with ``share`` of the weight from the published frequencies, and the rest from the text.

    With ``n`` words counted, a word gets ``count * (1 - share) + n * share * frequency``, times ``1 / (1 - share)``
    below a share of 1, so that the text's own counts are unchanged; rounded, and left out at 0. A published word is
    divided among its spellings in the text (``london`` all to ``London``, ``nice`` to ``nice`` and the ``Nice`` of
    titles), so that the text decides the usual spelling. A word that the text lacks is unchanged.
    """
    total = sum(counts.values())
    spellings: dict[str, list[str]] = {}
    for word in counts:
        spellings.setdefault(fold(word), []).append(word)
    own, published = (1.0, share / (1 - share)) if share < 1 else (0.0, 1.0)
    blended = {word: count * own for word, count in counts.items()}
    for word, frequency in frequencies.items():
        written = spellings.get(fold(word))
        if written is None:
            blended[word] = blended.get(word, 0.0) + total * published * frequency
            continue
        occurrences = sum(counts[each] for each in written)
        for each in written:
            blended[each] += total * published * frequency * counts[each] / occurrences
    rounded = {word: round(count) for word, count in blended.items()}
    return {word: count for word, count in rounded.items() if count > 0}
