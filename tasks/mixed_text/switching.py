"""Statistics of language switches, and synthetic lines that switch accordingly, spliced from lines in one language.

Statistics are counted over the lines of a corpus that mix two languages; the corpus may be masked. They cover words of
the published lists only: each of the most frequent words is a class, other words are classed by frequency. Counted are
how often people switch after a word, the words that they switch to, and how long they stay.

A synthetic line starts as a line in one language, read word by word. It is left as often as people switch after such a
word, for a line in the other language. That line is entered at a word that people switch to there, and is left again.
Then the first line continues, a word or a few further. With a dictionary an island begins with a translation of the
word that it replaces. The languages form a semi-Markov process; the words inside an island are a person's.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from tasks.corpora.text_lines import read_lines, write_lines
from tasks.errors import CorpusError
from tasks.languages.mixing import spoken
from tasks.languages.word_languages import MIXED, TaggedLine, form_of
from tasks.languages.word_lists import word_list

_OWN_CLASS = 3000
"""Number of most frequent words of a language that have a class of their own."""
_BANDS = (1e-4, 1e-5, 1e-6)
"""Frequencies that divide the other words into classes."""
_STEPS = (1, 2, 3, 4, 6, 9)
"""Lengths of an island, in words, at which a new class of lengths begins."""
_PRIOR, _SEAM_PRIOR, _RESUME_PRIOR = 20.0, 0.5, 5.0
"""Pseudo-counts of places for a word, for a word before a switch, and for one before the return; their share of hits is
that of all words."""
_AHEAD = 5
"""A line that was left continues at one of this many next words."""
_ROUNDS, _SAMPLE = 6, 400

Drawn = TypeVar("Drawn")
Shares = dict[str, list[int]]
"""By class: numbers of places and of switches among them."""


@cache
def _frequent(language: str) -> frozenset[str]:
    return frozenset(list(word_list(language))[:_OWN_CLASS])


def word_class(language: str, word: str) -> str:
    """One of the 3,000 most frequent words of a language, or ``<0`` to ``<3`` by its frequency."""
    form = form_of(word)
    if form in _frequent(language):
        return form
    frequency = word_list(language).get(form, 0.0)
    return f"<{sum(frequency < limit for limit in _BANDS)}"


_HIDDEN = f"<{len(_BANDS)}"


@dataclass(frozen=True)
class SwitchStatistics:
    """Counts of language switches over lines with words of two languages."""

    languages: list[str]
    lines: int
    first: dict[str, int]
    """Lines by their first language."""
    leave: dict[str, Shares]
    """By language and class of a word that has a next word: switches after it."""
    enter: dict[str, Shares]
    """By language and class of a word: switches to it."""
    stay: dict[str, Shares]
    """By ``first`` or ``later`` island of a line, and its length so far: switches."""
    seams: dict[str, dict[str, dict[str, int]]]
    """By the language of a switch, and language and class of the word before it: classes of the word after it."""

    @classmethod
    def learn(cls, languages: Sequence[str], lines: Iterable[TaggedLine]) -> "SwitchStatistics":
        """Count switches in lines that mix; ``CorpusError`` if none does."""
        mixed = 0
        first: Counter[str] = Counter()
        leave, enter, stay = (defaultdict[str, Shares](lambda: defaultdict(lambda: [0, 0])) for _ in range(3))
        seams: dict[str, dict[str, Counter[str]]] = defaultdict(partial(defaultdict, Counter))
        for line in lines:
            if len(set(spoken(line.languages))) < 2:
                continue
            mixed += 1
            before: tuple[str, str] | None = None
            length, island, hidden = 0, "first", False
            for word, language in zip(line.words, line.languages, strict=True):
                if language is None or language == MIXED:
                    # A hidden word or punctuation: a switch after it does not follow the last word directly.
                    hidden = True
                    continue
                here, switched = word_class(language, word), before is not None and before[0] != language
                if before is None:
                    first[language] += 1
                else:
                    _count(leave[before[0]], _HIDDEN if hidden else before[1], switched)
                    _count(stay[island], _step(length), switched)
                    if switched and not hidden:
                        seams[language][_key(*before)][here] += 1
                _count(enter[language], here, switched)
                island = "later" if switched else island
                length = 1 if switched else length + 1
                before, hidden = (language, here), False
        if not mixed:
            raise CorpusError("no line has words of two languages; give text that mixes them to learn from")
        plain = {to: {key: dict(row) for key, row in rows.items()} for to, rows in seams.items()}
        return cls(list(languages), mixed, dict(first), dict(leave), dict(enter), dict(stay), plain)

    @property
    def rate(self) -> float:
        """Switches per pair of words, over lines that mix."""
        pairs, switches = _sums(row for rows in self.stay.values() for row in rows.values())
        return switches / pairs

    def write(self, path: str | Path) -> None:
        """Write as JSON, readable for the owner alone: the counts come from a private text."""
        write_lines(path, [json.dumps(vars(self), ensure_ascii=False)], private=True)

    @classmethod
    def read(cls, path: str | Path) -> "SwitchStatistics":
        """Read a file of ``write``; ``CorpusError`` for another file."""
        try:
            return cls(**json.loads("\n".join(read_lines(path, "statistics"))))
        except (ValueError, TypeError):
            raise CorpusError(
                f"statistics {str(path)!r} are not a file of 'palimpsest generate-mixed --write-statistics'"
            ) from None


def _count(shares: Shares, key: str, switched: bool) -> None:
    shares[key][0] += 1
    shares[key][1] += switched


def _sums(rows: Iterable[Sequence[int]]) -> tuple[int, int]:
    places, switches = zip(*rows, strict=True)
    return sum(places), sum(switches)


def _key(language: str, word: str) -> str:
    return f"{language} {word}"


def _step(length: int) -> str:
    return str(max(step for step in _STEPS if step <= length))


class _Rates:
    """Shares of switches, each shrunk towards the share over all."""

    def __init__(self, shares: Mapping[str, Sequence[int]]) -> None:
        places, switches = _sums(shares.values()) if shares else (1, 0)
        self.whole = switches / places
        self._of = {key: (s + _PRIOR * self.whole) / (p + _PRIOR) for key, (p, s) in shares.items()}

    def of(self, key: str) -> float:
        return self._of.get(key, self.whole)


@dataclass
class _Segment:
    """A line in one language, and the position reached in it."""

    language: str
    words: Sequence[str]
    classes: Sequence[str]
    place: int
    original: "_Segment | None" = None
    """The line whose words this segment translates, one by one."""


class Splicer:
    """Endless iterator over lines that mix languages, spliced from lines in one language."""

    def __init__(
        self,
        statistics: SwitchStatistics,
        lines: Mapping[str, Sequence[Sequence[str]]],
        dictionary: Mapping[tuple[str, str], Sequence[str]],
        seed: int,
    ) -> None:
        """``lines``: words of lines by language, for at least one; a language without lines has islands of dictionary
        words. ``dictionary``: a language and a folded word of another language, to translations into the first."""
        import numpy as np

        self._rng = np.random.default_rng(seed)
        self._statistics, self._dictionary = statistics, dictionary
        self._lines = {code: rows for code, rows in lines.items() if rows}
        known = {code: {w for row in rows for w in row} for code, rows in self._lines.items()}
        self._class = {code: {word: word_class(code, word) for word in words} for code, words in known.items()}
        self._leave = {code: _Rates(rows) for code, rows in statistics.leave.items()}
        self._enter = {code: _Rates(rows) for code, rows in statistics.enter.items()}
        self._stay = {island: _Rates(statistics.stay.get(island, {})) for island in ("first", "later")}
        self._of_class: dict[str, dict[str, list[tuple[int, int]]]] = {}
        self._of_word: dict[str, dict[str, list[tuple[int, int]]]] = {}
        self._entered: dict[str, tuple[list[str], np.ndarray]] = {}
        for code, rows in self._lines.items():
            places, words = self._of_class.setdefault(code, {}), self._of_word.setdefault(code, {})
            for number, row in enumerate(rows):
                for place, word in enumerate(row):
                    places.setdefault(self._class[code][word], []).append((number, place))
                    words.setdefault(form_of(word), []).append((number, place))
            weights = np.array([self._enter[code].of(key) * len(at) for key, at in places.items()])
            self._entered[code] = list(places), weights / weights.sum()
        self._factor = 1.0
        for _ in range(_ROUNDS):
            # Lines that never switch are dropped, and lines end: correct the rate towards that of people.
            drawn = [languages for (_, languages), _ in zip(self, range(_SAMPLE), strict=False)]
            switches = sum(a != b for line in drawn for a, b in pairwise(line))
            self._factor *= statistics.rate * sum(len(line) - 1 for line in drawn) / switches

    def __iter__(self) -> Iterator[tuple[list[str], list[str]]]:
        """Words and their languages. ``CorpusError`` if hardly any line can be mixed."""
        failed = 0
        while failed < 100_000:
            words, languages = self._line()
            if len(set(languages)) > 1:
                failed = 0
                yield words, languages
            failed += 1
        raise CorpusError("no line could be mixed: text or dictionary have no words of the other language; give more")

    def _line(self) -> tuple[list[str], list[str]]:
        codes = list(self._lines)
        language = codes[self._draw([self._statistics.first.get(code, 0) + 1.0 for code in codes])]
        here = self._segment(language, int(self._rng.integers(len(self._lines[language]))), 0)
        waiting: dict[str, _Segment] = {}
        words: list[str] = []
        languages: list[str] = []
        length, island = 0, "first"
        while here.place < len(here.words):
            words.append(here.words[here.place])
            languages.append(here.language)
            here.place += 1
            length += 1
            ended = here.place == len(here.words)
            if (ended and here.original) or (not ended and self._is_left(here, length, island)):
                other = self._other(here, waiting)
                if other is not None:
                    waiting[here.language] = here
                    here, length, island = other, 0, "later"
        return words, languages

    def _is_left(self, here: _Segment, length: int, island: str) -> bool:
        of_length = self._stay[island]
        share = self._leave[here.language].of(here.classes[here.place - 1]) * self._factor
        return bool(self._rng.random() < share * of_length.of(_step(length)) / max(of_length.whole, 1e-9))

    def _other(self, here: _Segment, waiting: Mapping[str, _Segment]) -> _Segment | None:
        """The segment in another language that the line continues with."""
        if here.original:
            here.original.place += here.place
            return here.original
        others = [code for code in self._statistics.languages if code != here.language]
        language = self._one_of(others)
        before = _key(here.language, here.classes[here.place - 1])
        row = self._statistics.seams.get(language, {}).get(before, {})
        if language not in self._lines:
            return self._translated(language, here)
        if language in waiting:
            left = waiting[language]
            ahead = left.classes[left.place : left.place + _AHEAD]
            weights = [_RESUME_PRIOR * self._enter[language].of(key) + row.get(key, 0) for key in ahead]
            left.place += self._draw(weights)
            return left
        places = self._of_word[language]
        known = [each for each in self._translations(language, here.words[here.place]) if each in places]
        if known:
            return self._segment(language, *self._one_of(places[self._one_of(known)]))
        row = {key: count for key, count in row.items() if key in self._of_class[language]}
        seen = sum(row.values())
        if seen and self._rng.random() < seen / (seen + _SEAM_PRIOR):
            key = list(row)[self._draw(list(row.values()))]
        else:
            keys, shares = self._entered[language]
            key = keys[int(self._rng.choice(len(keys), p=shares))]
        return self._segment(language, *self._one_of(self._of_class[language][key]))

    def _translations(self, language: str, word: str) -> Sequence[str]:
        return self._dictionary.get((language, form_of(word)), ())

    def _translated(self, language: str, here: _Segment) -> _Segment | None:
        """Dictionary translations of the next words, up to the first unknown word."""
        words: list[str] = []
        for word in here.words[here.place :]:
            known = self._translations(language, word)
            if not known:
                break
            words.append(self._one_of(known))
        return _Segment(language, words, [word_class(language, w) for w in words], 0, here) if words else None

    def _segment(self, language: str, number: int, place: int) -> _Segment:
        words = self._lines[language][number]
        return _Segment(language, words, [self._class[language][word] for word in words], place)

    def _one_of(self, these: Sequence[Drawn]) -> Drawn:
        return these[int(self._rng.integers(len(these)))]

    def _draw(self, weights: Sequence[float]) -> int:
        total = sum(weights)
        return int(self._rng.choice(len(weights), p=[weight / total for weight in weights]))
