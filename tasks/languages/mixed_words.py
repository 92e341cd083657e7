"""Words of two languages: a stem of one with an ending of the other, or a compound of both.

``Semesterdeyim`` is German with a Turkish ending. Endings of a language are found without labels: an ending follows one
listed word within another listed word.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache

from tasks.languages.word_lists import word_list

_SHORTEST = 5
_LISTED, _LONGEST_ENDING, _LEAST_WORDS, _SHORTEST_STEM, _SHORTEST_ROOT = 30_000, 9, 5, 3, 4
_STEM_FREQUENCY, _KNOWN = 1e-7, 3e-7
_COMPOUNDS = 0.1
"""Weight of a compound relative to a word with an ending."""
_APOSTROPHES = "'’-"


class MixedWords:
    """Computes the weight of a word as a mixed word."""

    def __init__(self, languages: Sequence[str]) -> None:
        """``languages`` must have lists."""
        self._lists = [word_list(language) for language in languages]
        self._endings = [_endings(language) for language in languages]

    def weight(self, word: str) -> float:
        """The sum over all splits of a folded word; 0 where a list has the whole word.

        The stem enters by the root of its frequency, since borrowing hardly depends on how frequent a word is.
        """
        if len(word) < _SHORTEST or max(words.get(word, 0.0) for words in self._lists) > _KNOWN:
            return 0.0
        found = 0.0
        for length in range(_SHORTEST_STEM, len(word)):
            stem, ending = word[:length], word[length:].lstrip(_APOSTROPHES)
            for language, words in enumerate(self._lists):
                frequency = words.get(stem, 0.0)
                if frequency >= _STEM_FREQUENCY:
                    found += frequency**0.5 * self._ending(ending, stem, other_than=language)
        return 0.01 * found

    def _ending(self, ending: str, stem: str, *, other_than: int) -> float:
        found = 0.0
        for language, endings in enumerate(self._endings):
            if language != other_than:
                found += endings.get(ending, 0.0)
                if min(len(ending), len(stem)) >= _SHORTEST_ROOT:
                    found += _COMPOUNDS * self._lists[language].get(ending, 0.0)
        return found


@cache
def _endings(language: str) -> dict[str, float]:
    """Share of each ending among all endings of a language's frequent words."""
    frequent = [word for word in list(word_list(language))[:_LISTED] if word.isalpha()]
    stems = set(frequent)
    counts = Counter(
        word[length:]
        for word in frequent
        for length in range(max(_SHORTEST_STEM, len(word) - _LONGEST_ENDING), len(word))
        if word[:length] in stems
    )
    productive = {ending: count for ending, count in counts.items() if count >= _LEAST_WORDS}
    total = sum(productive.values())
    return {ending: count / total for ending, count in productive.items()}
