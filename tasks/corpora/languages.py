"""Languages and scripts of a text, estimated from a sample of its lines.

py3langid detects the languages: a naive Bayes classifier over byte n-grams (Lui and Baldwin 2012, "langid.py: An
Off-the-shelf Language Identification Tool"). It is unsure about a few words, so short lines of one script are joined.
Languages with hardly any lines count as its errors; their lines go to the most likely of the others. A language in a
foreign script, such as Hindi in Latin letters, is detected as some language of that script.

``LineSample`` and the warnings report on a private text while it is read: false line ends, and unknown languages.
"""

import random
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from tasks.corpora.words import words_of

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

UNDETERMINED = "und"
"""Language of a text that is too short to detect (ISO 639-2)."""

_ENOUGH_BYTES, _FEWEST_BYTES = 160, 16
"""UTF-8 bytes from which detection is reliable, and the fewest bytes for any detection."""
_LONGEST = 2000
"""Characters of a line that are read."""
_RARE = 0.05
"""Share of the words below which a language counts as an error."""
_WITHOUT_SPACES = {"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"}
_CHARACTERS_A_WORD = 2
"""Characters that count as one word in a script without spaces."""


@dataclass(frozen=True)
class Languages:
    """Shares of the words of a text, the largest first; empty if no word has a letter."""

    languages: dict[str, float]
    """Shares by ISO 639-1 code: ``en``, ``de``, ``hi``, ``zh``; ``und`` for text that is too short."""
    scripts: dict[str, float]
    """Shares by the first word of the letters' names in Unicode: ``LATIN``, ``DEVANAGARI``, ``CJK``."""

    def foreign(self, known: Collection[str]) -> dict[str, float]:
        """The languages that are not among the known ones; undetermined text is not foreign."""
        return {name: share for name, share in self.languages.items() if name not in {*known, UNDETERMINED}}


def language_shares(lines: Iterable[str], most: int = 2000) -> Languages:
    """The languages and scripts of ``most`` of the lines, drawn evenly and reproducibly, in about a second."""
    sample = LineSample(most)
    for line in lines:
        sample.take(line)
    by_script: Counter[str] = Counter()
    stretches = []
    for text, words in _stretches(sample.lines):
        by_script.update(words)
        stretches.append((text, sum(words.values())))
    languages = _classified(stretches, None)
    total = sum(languages.values())
    frequent = [name for name, words in languages.items() if words >= _RARE * total and name != UNDETERMINED]
    if frequent:
        languages = _classified(stretches, frequent)
    return Languages(_shares(languages), _shares(by_script))


def _shares(words: Counter[str]) -> dict[str, float]:
    total = sum(words.values())
    return {name: count / total for name, count in words.most_common()}


class LineSample:
    """A uniform sample of the lines that are not blank (reservoir sampling, Vitter 1985, algorithm R)."""

    def __init__(self, most: int) -> None:
        self._most, self._seen, self._chance = most, 0, random.Random(1)
        self._kept: list[tuple[int, str]] = []

    def take(self, line: str) -> None:
        """Offer one more line to the sample."""
        if not line or line.isspace():
            return
        if self._seen < self._most:
            self._kept.append((self._seen, line))
        elif (place := self._chance.randrange(self._seen + 1)) < self._most:
            self._kept[place] = (self._seen, line)
        self._seen += 1

    @property
    def lines(self) -> list[str]:
        """The sampled lines, in their order."""
        return [line for _, line in sorted(self._kept)]

    @property
    def words(self) -> int:
        """The number of their words."""
        return sum(sum(_words_by_script(line[:_LONGEST]).values()) for _, line in self._kept)


def _stretches(lines: Iterable[str]) -> Iterator[tuple[str, Counter[str]]]:
    """Pieces of text, short lines of one script joined, each with its words by script."""
    joined, words, script, size = "", Counter[str](), "", 0
    for line in lines:
        line = line[:_LONGEST]
        of_line = _words_by_script(line)
        if not of_line:
            continue
        main = of_line.most_common(1)[0][0]
        if joined and (main != script or size >= _ENOUGH_BYTES):
            yield joined, words
            joined, words = "", Counter()
        joined, script = f"{joined}\n{line}" if joined else line, main
        size = len(joined.encode("utf-8", errors="replace"))
        words.update(of_line)
    if joined:
        yield joined, words


def _words_by_script(line: str) -> Counter[str]:
    letters: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for word in words_of(line):
        of_word = Counter(name for character in word if (name := _script(character)))
        for script in of_word:
            if script in _WITHOUT_SPACES:
                letters[script] += of_word[script]
        spaced = [script for script in of_word if script not in _WITHOUT_SPACES]
        if spaced:
            words[max(spaced, key=of_word.__getitem__)] += 1
    for script, count in letters.items():
        words[script] += -(-count // _CHARACTERS_A_WORD)
    return words


def words_by_script(words: Iterable[str]) -> Counter[str]:
    """The number of words whose first letter is in each script."""
    firsts = (next(filter(str.isalpha, word), "") for word in words)
    return Counter(_script(first) for first in firsts if first)


@lru_cache(maxsize=1 << 14)
def _script(character: str) -> str:
    """The script of a letter; empty for anything else."""
    plain = unicodedata.normalize("NFKC", character)[:1]
    return unicodedata.name(plain, "").partition(" ")[0] if plain.isalpha() else ""


def _classified(stretches: Iterable[tuple[str, int]], among: list[str] | None) -> Counter[str]:
    """The number of words by language; ``among``: the only languages to consider."""
    identifier = _identifier()
    identifier.set_languages(among)
    found: Counter[str] = Counter()
    for text, words in stretches:
        told = len(text.encode("utf-8", errors="replace")) >= _FEWEST_BYTES
        found[identifier.classify(text)[0] if told else UNDETERMINED] += words
    return found


@cache
def _identifier() -> "LanguageIdentifier":
    """The classifier; loading takes half a second."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


_FEWEST_WORDS = 20
"""Fewest words from which a text's language can be detected."""
MUCH_FOREIGN, _OF_A_SCRIPT = 0.2, 0.05
"""Shares of words in unknown languages and in unknown scripts from which the user gets a warning."""
_FEW_WORDS, _MUCH_OF_FEW = 200, 0.6
"""In a text of few words detection errs now and then; a language must then have this share of the words."""
_SCRIPTS = {
    **{name: {"CYRILLIC"} for name in ("bg", "mk", "ru", "sr", "uk")},
    **{name: {"DEVANAGARI"} for name in ("hi", "mr", "ne", "sa")},
    **{"ar": {"ARABIC"}, "fa": {"ARABIC"}, "ur": {"ARABIC"}, "el": {"GREEK"}, "he": {"HEBREW"}, "ko": {"HANGUL"}},
    **{"zh": {"CJK"}, "ja": {"CJK", "HIRAGANA", "KATAKANA"}, "th": {"THAI"}, "ta": {"TAMIL"}, "bn": {"BENGALI"}},
}
"""Scripts of languages that are not written in Latin letters."""


class WatchedText:
    """Lines that are counted and sampled as they pass; memory does not grow with them."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines, self._sample = lines, LineSample(2000)
        self._carriage_returns = 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self._carriage_returns += line.count("\r")
            self._sample.take(line)
            yield line

    def warnings(self, technique: str, known: Sequence[str]) -> list[str]:
        """Warnings about the lines so far; ``known``: the technique's languages, empty if unknown."""
        found = []
        if self._carriage_returns:
            found.append(
                f"{self._carriage_returns:,} carriage returns are within lines: if they are line ends of an old Mac, "
                "write the text with line feeds, or a line is many sentences"
            )
        return found + list(self._unknown_languages(technique, known))

    def _unknown_languages(self, technique: str, known: Sequence[str]) -> Iterator[str]:
        if not known or self._sample.words < _FEWEST_WORDS:
            return
        shares = language_shares(self._sample.lines)
        foreign = shares.foreign(known)
        written = set().union(*(_SCRIPTS.get(name, {"LATIN"}) for name in known))
        scripts = {name: share for name, share in shares.scripts.items() if name not in written}
        much = MUCH_FOREIGN if self._sample.words > _FEW_WORDS else _MUCH_OF_FEW
        if sum(foreign.values()) > much or sum(scripts.values()) > _OF_A_SCRIPT:
            said = ", ".join(f"{share:.0%} {name}" for name, share in {**foreign, **scripts}.items() if share > 0.01)
            yield (
                f"{technique} is made for {', '.join(known)}, and the text looks like {said}: private words may "
                "stay unmasked, and harmless ones be masked; 'palimpsest train-tagger' makes a tagger that fits "
                "of a hundred labelled lines (docs/languages.md)"
            )
