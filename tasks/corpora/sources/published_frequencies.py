"""Published word frequencies of general English, blended with the counts of the user's own generic text.

A vocabulary "built on large generic corpora" (paper 3.1) needs more kinds of text than one generic corpus has: an
encyclopedia alone makes ``yeah`` and ``homework`` rare words. The package ``wordfreq`` (data CC BY-SA 4.0) sums up
encyclopedia, subtitles, news, books, web pages and social media as one frequency per word.
"""

from collections.abc import Mapping

from tasks.corpora.words import fold, words_of


def published_frequencies() -> dict[str, float]:
    """Relative frequency of each English word of ``wordfreq``, lower case.

    Entries with digits are left out: that list writes every number of two or more digits with zeros. So are entries
    that are not one word by the rules of ``tasks.corpora.words``.
    """
    from wordfreq import get_frequency_dict

    return {
        word: frequency
        for word, frequency in get_frequency_dict("en", wordlist="best").items()
        if not any(character.isdigit() for character in word) and words_of(word) == [word]
    }


def blend_counts(counts: Mapping[str, int], frequencies: Mapping[str, float], share: float) -> dict[str, int]:
    """Counts in which ``share`` of the weight is the published frequencies', and the rest the text's own.

    With ``n`` words counted, a word gets ``count * (1 - share) + n * share * frequency``, times ``1 / (1 - share)``
    below a share of 1, so that the text's own counts stay as they are; rounded, and left out at 0. A published word
    is added to the spelling that the text has most often (``london`` to ``London``), or stands as it is.
    """
    total = sum(counts.values())
    spelling: dict[str, str] = {}
    for word in sorted(counts, key=lambda word: (-counts[word], word)):
        spelling.setdefault(fold(word), word)
    own, published = (1.0, share / (1 - share)) if share < 1 else (0.0, 1.0)
    blended = {word: count * own for word, count in counts.items()}
    for word, frequency in frequencies.items():
        written = spelling.get(fold(word), word)
        blended[written] = blended.get(written, 0.0) + total * published * frequency
    rounded = {word: round(count) for word, count in blended.items()}
    return {word: count for word, count in rounded.items() if count > 0}
