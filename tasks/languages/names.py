"""Recognition of names without labels, from capital letters, lists of names, and the frequency of words.

The meaning of capitals is learned from the text: whether sentences begin with one, whether names have one, and in which
languages other words have one, as German nouns do. If a language uses capitals only for names, a capital within a
sentence marks a name. In other languages a list of names must confirm it, or another place in the text. An ending after
an apostrophe (``Berlin'de``) marks a name in every language. If names are written without capitals, only rare words on
the lists are names. Names are not found in scripts without capitals.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tasks.languages.word_lists import list_form, word_list

_COMMON, _UNUSUAL, _RARE = 1e-3, 1e-4, 1e-5
"""Frequency on a list from which a word is no name; no name, even if it is listed as one; no name without a capital."""
_NOUNS = {"de": 0.3}
"""Prior share of words with a capital within sentences; ``_SOME`` for other languages."""
_SOME, _MOST, _EVIDENCE = 0.03, 0.1, 20
"""Prior share; largest share of capitals in a language that uses them for names; weight of the prior, in words."""
_BEGUN, _WRITTEN, _FIRST_EVIDENCE = 0.2, 0.5, 5.0
"""Shares of first words of sentences, and of rare names, above which a text begins or writes them with a capital; and
the weight of the prior, in words."""
_SENTENCE_ENDS, _CLOSING, _APOSTROPHES = ".?!…", "\"'”’»)", "'’"


class Names:
    """Recognises names among the words of a text."""

    def __init__(self, languages: Sequence[str]) -> None:
        """``languages``: as in ``WordLanguages``."""
        from tasks.made_up.pools import names_and_places

        self._languages = languages
        self._lists = [word_list(language) for language in languages]
        self._listed_names = frozenset(map(list_form, names_and_places(frozenset(languages))))
        self._capitals_say: Mapping[str, bool] = {}
        self._begun = self._written = True
        self._small: frozenset[str] = frozenset()
        self._seen: frozenset[str] = frozenset()

    def learn(self, lines: Iterable[tuple[Sequence[str], Sequence[str], Sequence[str | None]]]) -> None:
        """Learn from lines of words, their folded forms, and their languages (``mixed`` for a mixed word)."""
        capitals: Counter[str] = Counter()
        small: Counter[str] = Counter()
        ordinary = {language: [_EVIDENCE * _NOUNS.get(language, _SOME), _EVIDENCE] for language in self._languages}
        begun, written = [_FIRST_EVIDENCE] * 2, [_FIRST_EVIDENCE] * 2
        of_language: dict[str, set[str]] = {language: set() for language in self._languages}
        for words, forms, languages in lines:
            for place, (word, form, language) in enumerate(zip(words, forms, languages, strict=True)):
                if not form or (case := _capital(word)) is None:
                    continue
                frequency, listed = self._known(form)
                if _begins(words, forms, place):
                    if frequency >= _UNUSUAL and not listed:
                        _count(begun, case)
                    continue
                (capitals if case else small)[form] += 1
                if listed and frequency < _RARE:
                    _count(written, case)
                is_ordinary = _UNUSUAL <= frequency < _COMMON or not self._list(language)
                if language in ordinary and not listed and is_ordinary:
                    _count(ordinary[language], case)
                if case and language in of_language and frequency < _COMMON:
                    of_language[language].add(form)
        self._begun = begun[0] > _BEGUN * begun[1]
        self._written = written[0] > _WRITTEN * written[1]
        self._capitals_say = {language: found <= _MOST * all_ for language, (found, all_) in ordinary.items()}
        self._small = frozenset(form for form, count in small.items() if count > capitals[form])
        usable = [forms for language, forms in of_language.items() if self._capitals_say[language]]
        self._seen = frozenset().union(*usable) - self._small

    def told(self, words: Sequence[str], forms: Sequence[str], languages: Sequence[str | None]) -> list[int]:
        """The places of the names of a line."""
        return [
            place
            for place, (word, form) in enumerate(zip(words, forms, strict=True))
            if form and not (self._written and word.islower()) and self._is_name(words, forms, languages[place], place)
        ]

    def _is_name(self, words: Sequence[str], forms: Sequence[str], language: str | None, place: int) -> bool:
        word, form = words[place], forms[place]
        case = _capital(word)
        if case is None:
            return False
        frequency, listed = self._known(form)
        if frequency >= _COMMON:
            return False
        if not self._written:
            return listed and frequency < _RARE and bool(self._list(language))
        if not case or form in self._small:
            return False
        if language is None or language not in self._capitals_say:
            return listed and _parts(word)[1]
        if listed and frequency < _UNUSUAL:
            return True
        if self._begun and _begins(words, forms, place):
            return form in self._seen
        return self._capitals_say[language] or form in self._seen or _parts(word)[1]

    def _known(self, form: str) -> tuple[float, bool]:
        """The frequency of a word without its ending, and whether it is on a list of names."""
        stem = _parts(form)[0]
        frequency = max(max(words.get(form, 0.0), words.get(stem, 0.0)) for words in self._lists)
        return frequency, stem in self._listed_names

    def _list(self, language: str | None) -> Mapping[str, float]:
        return self._lists[self._languages.index(language)] if language in self._languages else {}


def _parts(word: str) -> tuple[str, bool]:
    """Split off an article or an ending at an apostrophe; returns the word, and whether it had an ending."""
    before, apostrophe, after = word.replace("’", "'").partition("'")
    if apostrophe and len(before) <= 2 < len(after):
        return after, False
    return before, bool(apostrophe and after)


def _capital(word: str) -> bool | None:
    """Whether a word has a capital. ``None`` in a script without capitals, for a single letter, and for a word in
    capitals alone, since whole sentences are written so."""
    if word.islower():
        return False
    begin = next((place for place, letter in enumerate(word) if letter.isalpha()), 0)
    stem = _parts(word[begin:])[0]
    if len(stem) < 2 or stem[0].lower() == stem[0].upper() or stem.isupper():
        return None
    return stem[0].isupper()


def _begins(words: Sequence[str], forms: Sequence[str], place: int) -> bool:
    """Whether a word begins a sentence: the first of its line, or the first after a full stop."""
    for before in range(place - 1, -1, -1):
        if words[before].rstrip(_CLOSING)[-1:] in _SENTENCE_ENDS and words[before].rstrip(_CLOSING):
            return True
        if forms[before]:
            return False
    return True


def _count(share: list[float], found: bool) -> None:
    share[0] += found
    share[1] += 1
