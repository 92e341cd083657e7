"""Names, told from words without labels: by capital letters, by lists of names, and by how rare a word is.

What a capital says is learned from the text: whether its sentences begin with one, whether it writes names with one at
all, and in which of its languages other words have one too, as German nouns do. A language that keeps capitals for
names tells them where no sentence begins; elsewhere a list of names has to say so as well, or another place in the
text. An ending behind an apostrophe (``Berlin'de``) says it in every language. Where names are written without capitals
the lists alone say so, of rare words. Scripts without capitals tell no names.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tasks.languages.word_lists import list_form, word_list

_COMMON, _UNUSUAL, _RARE = 1e-3, 1e-4, 1e-5
"""Frequency on a list at which a word is no name, none though it is a name's as well, and none without a capital."""
_NOUNS = {"de": 0.3}
"""Share of words with a capital where no sentence begins, as far as the text does not say; elsewhere ``_SOME``."""
_SOME, _MOST, _EVIDENCE = 0.03, 0.1, 20
"""A language with a capital on more than ``_MOST`` of its words keeps none for names; known before: so many words."""
_BEGUN, _WRITTEN, _FIRST_EVIDENCE = 0.2, 0.5, 5.0
"""More than these shares of the first words of sentences, and of rare names, have a capital where a text writes any;
known before: so many words."""
_SENTENCE_ENDS, _CLOSING, _APOSTROPHES = ".?!…", "\"'”’»)", "'’"


class Names:
    """Tells which words are names."""

    def __init__(self, languages: Sequence[str]) -> None:
        """``languages``: as ``WordLanguages`` has them."""
        from tasks.labelled_text.value_pools import names_and_places

        self._languages = languages
        self._lists = [word_list(language) for language in languages]
        self._listed_names = frozenset(map(list_form, names_and_places(languages)))
        self._capitals_say: Mapping[str, bool] = {}
        self._begun = self._written = True
        self._small: frozenset[str] = frozenset()
        self._seen: frozenset[str] = frozenset()

    def learn(self, lines: Iterable[tuple[Sequence[str], Sequence[str], Sequence[str | None]]]) -> None:
        """From lines of words, their folded forms, and their languages (of a mixed word: ``mixed``)."""
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
                if language in ordinary and not listed and self._is_ordinary(frequency, language):
                    _count(ordinary[language], case)
                if case and language in of_language and frequency < _COMMON:
                    of_language[language].add(form)
        self._begun = begun[0] > _BEGUN * begun[1]
        self._written = written[0] > _WRITTEN * written[1]
        self._capitals_say = {language: found <= _MOST * all_ for language, (found, all_) in ordinary.items()}
        self._small = frozenset(form for form, count in small.items() if count > capitals[form])
        told = [forms for language, forms in of_language.items() if self._capitals_say[language]]
        self._seen = frozenset().union(*told) - self._small

    def told(self, words: Sequence[str], forms: Sequence[str], languages: Sequence[str | None]) -> list[int]:
        """Places of the names of a line."""
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
        """How frequent a word is without its ending, and whether it is on a list of names."""
        stem = _parts(form)[0]
        frequency = max(max(words.get(form, 0.0), words.get(stem, 0.0)) for words in self._lists)
        return frequency, stem in self._listed_names

    def _is_ordinary(self, frequency: float, language: str) -> bool:
        return _UNUSUAL <= frequency < _COMMON or not self._list(language)

    def _list(self, language: str | None) -> Mapping[str, float]:
        return self._lists[self._languages.index(language)] if language in self._languages else {}


def _parts(word: str) -> tuple[str, bool]:
    """A word without the article or the ending that an apostrophe divides from it, and whether there is an ending."""
    before, apostrophe, after = word.replace("’", "'").partition("'")
    if apostrophe and len(before) <= 2 < len(after):
        return after, False
    return before, bool(apostrophe and after)


def _capital(word: str) -> bool | None:
    """Whether a word has a capital; ``None`` where that says nothing: in a script without any, of a single letter, and
    where all letters are capitals, since whole sentences are written so."""
    if word.islower():
        return False
    begin = next((place for place, letter in enumerate(word) if letter.isalpha()), 0)
    stem = _parts(word[begin:])[0]
    if len(stem) < 2 or stem[0].lower() == stem[0].upper() or stem.isupper():
        return None
    return stem[0].isupper()


def _begins(words: Sequence[str], forms: Sequence[str], place: int) -> bool:
    """Whether a sentence begins with a word: the first of its line, or the first behind a full stop."""
    for before in range(place - 1, -1, -1):
        if words[before].rstrip(_CLOSING)[-1:] in _SENTENCE_ENDS and words[before].rstrip(_CLOSING):
            return True
        if forms[before]:
            return False
    return True


def _count(share: list[float], found: bool) -> None:
    share[0] += found
    share[1] += 1
