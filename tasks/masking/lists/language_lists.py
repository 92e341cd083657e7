"""Lists by language: keep a word if it is on the list of its language in this context.

A list of one language masks nearly all words of another one. Two lists together keep too much: an everyday word in one
language may be a name in the other (``die``, ``Ana``). So each word's language is detected first, from the text itself
(``tasks.languages``), and the list of that language decides. A word that mixes both languages is on neither list.

The same mechanism masks one language and leaves the other: ``lists: {en: all, es: 0}``.

A marker may name the language of its word. The neighbours predict it, so the marker reveals little: the surprisal of
the language, in bits, on the path through the masked line. The report has the mean. Every marker names one of the
languages; a mixed word or a number gets its neighbours' language, so its marker reveals nothing else.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice, tee
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator

from tasks.corpora.masked_text import Marker
from tasks.corpora.word_list import read_word_list
from tasks.corpora.words import word_spans
from tasks.languages.segmentation import divider
from tasks.languages.word_lists import list_form
from tasks.masking.lists.allow_list import SHIPPED_LIST
from tasks.masking.lists.allowed_words import word_class
from tasks.masking.settings import TechniqueSettings
from tasks.masking.technique import Finding, Technique

if TYPE_CHECKING:
    from tasks.languages.word_languages import TaggedLine, WordLanguages

_Found = tuple[str, list[str], list[tuple[int, Finding]]]
"""A line, its words, and pairs of a word's index and its finding."""
_ALL, _SHIPPED = "all", "allow_list"
_MASKED = str(Marker())
_LEAST = 1e-6
_NEVER_NAMES = 300
"""Number of the most frequent words of a language that count as words, even if they are names too (``del``,
``con``)."""


def _english_and_spanish() -> dict[str, int | str]:
    return {"en": _SHIPPED, "es": 10_000}


class LanguageLists(TechniqueSettings):
    """Keep words on a list of their own language, in text that mixes several."""

    sentence: ClassVar[str] = "Keep words on a list of their own language, in text that mixes several."
    kind: Literal["language_lists"]
    lists: dict[str, int | str] = Field(default_factory=_english_and_spanish)
    """Unmasked words by language (ISO 639-1): a number of its most frequent words by ``wordfreq``, without names of
    persons, cities and countries; ``allow_list``, the shipped English list; a file, one word a line; or ``all``."""
    keep_switch_points: bool = False
    """Leave the two words at a language switch unmasked if they are on the whole published list of their language and
    no names. Switching can then be studied, but the text reveals more (docs/languages.md)."""
    tell_languages: bool = False
    """Whether a marker names the language of its word, ``[MASK:es]``, for fills with ``languages``. The report has the
    bits per masked word that this reveals (``marker_language_bits``)."""
    mask_names: bool = True
    """Mask every word that is detected as a name, by its capital and by lists of names, even if it is on a list."""

    @field_validator("lists")
    @classmethod
    def _lists_have_languages(cls, lists: dict[str, int | str]) -> dict[str, int | str]:
        from tasks.languages.word_lists import listed_languages

        if len(lists) < 2:
            raise ValueError(f"needs two languages or more; it has {', '.join(lists) or 'none'}")
        for language, entry in lists.items():
            if isinstance(entry, int) and entry < 0:
                raise ValueError(f"{language}: {entry!r} is no number of words; give 0 or more")
            if isinstance(entry, int) and entry and language not in listed_languages():
                raise ValueError(
                    f"{language}: no frequencies of its words; give a file, 'all' or 0, or one of "
                    f"{', '.join(listed_languages())}"
                )
            if entry == _SHIPPED and language != "en":
                raise ValueError(f"{language}: 'allow_list' is a list of English words; use it for en only")
        return lists

    def build(self, word_counts: str | None, threads: int) -> "WordsByLanguage":
        """The technique with the words of the lists; languages are learned from the text."""
        return WordsByLanguage(self)

    @property
    def files(self) -> list[str]:
        """The user's list files."""
        return [entry for entry in self.lists.values() if isinstance(entry, str) and entry not in (_ALL, _SHIPPED)]


class WordsByLanguage(Technique):
    """Keep the words on the list of their language, mask all others."""

    def __init__(self, settings: LanguageLists) -> None:
        from tasks.languages.masked_words import MaskedWords

        self.name = settings.kind
        self.mixes = tuple(settings.lists)
        # A detector that reads the whole text takes a language in foreign letters for another language.
        self.languages = () if any("-" in code for code in self.mixes) else self.mixes
        self.by_language: MaskedWords = MaskedWords(self.mixes)
        self._mask_names = settings.mask_names
        self._divide = divider(self.mixes)
        self._lists = {language: self._list(language, entry) for language, entry in settings.lists.items()}
        self.allowed_by_language = {language: words for language, words in self._lists.items() if words is not None}
        limited = self.allowed_by_language.values()
        self.allowed_words = frozenset.intersection(*limited) if limited else None
        switching = settings.lists if settings.keep_switch_points else ()
        self._at_switches = {language: self._frequent(language, None) for language in switching}
        self._tells = settings.tell_languages
        self._bits, self._marked_words = 0.0, 0
        self._model: WordLanguages | None = None

    def learn(self, lines: Iterable[str]) -> None:
        """Learn the languages of words from the first lines."""
        from tasks.languages.word_languages import tagged_lines

        self._model, _ = tagged_lines(self.mixes, lines, names=self._mask_names)

    def findings(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding]]]:
        """Each line with its words that are not on the list of their language."""
        from tasks.languages.word_languages import tagged_lines

        model, read = tagged_lines(self.mixes, lines, names=self._mask_names, model=self._model)
        found = ((line, tagged.words, self._of_line(line, tagged)) for line, tagged in read)
        for line, _, findings in self._telling(model, found) if self._tells else found:
            yield line, [finding for _, finding in findings]

    def _telling(self, model: "WordLanguages", found: Iterable[_Found]) -> Iterator[_Found]:
        """Yield findings whose markers name a language, and count the bits that this reveals."""
        found, read = tee(found)
        masked = (
            [_MASKED if place in places else word for place, word in enumerate(words)]
            for _, words, findings in read
            for places in [dict(findings)]
        )
        for (line, words, findings), tagged in zip(found, model.tag(masked), strict=True):
            told = []
            for place, finding in findings:
                by_company = tagged.around[place]  # (K,)
                known = finding.language in self.mixes
                number = self.mixes.index(finding.language) if known else int(by_company.argmax())
                self._marked_words += 1
                self._bits -= math.log2(max(float(by_company[number]), _LEAST))
                told.append((place, replace(finding, language=self.mixes[number])))
            yield line, words, told

    def spans(self, line: str) -> list[tuple[int, int]]:
        """The word spans; for Chinese and Japanese the words that a dictionary divides."""
        found, position = [], 0
        for word in self._divide(line):
            position = line.index(word, position)
            found += [(position + start, position + end) for start, end in word_spans(word)]
            position += len(word)
        return found

    @property
    def marker_language_bits(self) -> float | None:  # type: ignore[override]
        """The mean surprisal of the language of a masked word, in bits."""
        return self._bits / self._marked_words if self._marked_words else None

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of all languages of the text: a name of one language occurs in sentences of another."""
        from tasks.made_up.pools import names_and_places

        return frozenset(map(list_form, names_and_places(frozenset(self.mixes))))

    def _list(self, language: str, entry: int | str) -> frozenset[str] | None:
        """The folded words of a list; ``None`` for all words."""
        if entry == _ALL:
            return None
        if isinstance(entry, int):
            return self._frequent(language, entry)
        return read_word_list(SHIPPED_LIST if entry == _SHIPPED else entry).words

    def _frequent(self, language: str, most: int | None) -> frozenset[str]:
        """The most frequent words that are not names, folded; empty where there is no published list."""
        from tasks.languages.word_lists import word_list

        frequent = (list_form(word) for word in word_list(language))
        safe = (word for rank, word in enumerate(frequent) if rank < _NEVER_NAMES or word not in self._names)
        return frozenset(islice(safe, most))

    def _of_line(self, line: str, tagged: "TaggedLine") -> list[tuple[int, Finding]]:
        """The masked words as pairs of the word's index and its finding."""
        from tasks.languages.mixing import near_switches
        from tasks.languages.word_languages import NAME

        found = []
        switching = near_switches(tagged.languages) if self._at_switches else ()
        for number, (position, word, language) in enumerate(tagged.places(line)):
            for start, end in word_spans(word):
                form = list_form(word[start:end])
                at_switch = number in switching and form in self._at_switches.get(language or "", ())
                if not at_switch and not self._keeps(form, language):
                    place = position + start, position + end
                    label = word_class(word[start:end])
                    reason = "a name" if language == NAME else f"not on the list of {language or 'any language'}"
                    told = language if self._tells else None
                    found.append((number, Finding(*place, label, self.name, None, reason, told)))
        self.by_language.add(line, tagged, (finding.start for _, finding in found))
        return found

    def _keeps(self, form: str, language: str | None) -> bool:
        if language not in self._lists:
            return False
        words = self._lists[language]
        return words is None or form in words
