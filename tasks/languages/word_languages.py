"""Language identification of each word of a text, learned from the text itself and from lists of frequent words.

A word of a language is drawn from that language's published frequencies, or spelled by its letter model. Or the word is
mixed, and then gives no evidence on its neighbours. A sticky path (``path``) decides where these leave several
languages. Expectation-maximisation learns the rates of spelled and of mixed words and the stickiness of lines from the
text, without labels.

For a language without a list, or in letters that the text hardly has (Arabic in Latin letters), nothing is known in
advance. It starts with the words that are on no list or rare on one. Its letters and words are learned with the rest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, tee

import numpy as np

from tasks.corpora.languages import words_by_script
from tasks.corpora.masked_text import MARKER_PATTERN
from tasks.corpora.words import word_spans
from tasks.errors import ParameterError
from tasks.languages.letters import Alphabet, Floats, Integers, LetterModel, SpelledWords
from tasks.languages.mixed_words import MixedWords
from tasks.languages.names import Names
from tasks.languages.path import Chain, Path, follow
from tasks.languages.segmentation import DIVIDED, divider
from tasks.languages.word_lists import list_form, several, share_on_list, word_list

MIXED, NAME = "mixed", "name"
_ROUNDS = 10
_LISTED, _LONGEST = 60_000, 30
_SPELLED, _MIXED = 0.05, 0.005
_OWN_WORDS = (0.3, 0.5)
"""Weights of a word's share in the text itself, for listed and unlisted languages, if one language has no list."""
_MOST_REMEMBERED = 1 << 18
LEARNED_FROM = 20_000
"""Number of lines that the languages are learned from."""
_BLOCK = 5000
"""Lines that are tagged at once."""
_TINY = 1e-300
_LATIN, _TELL_SCRIPT, _MOSTLY, _HARDLY = "LATIN", 1000, 0.5, 0.01
"""List words that decide its script; shares of a text's words in its main script, and in one that it hardly has."""
_RARE = 1e-7
"""List frequency at which a word is equally likely to be in the language without a list."""


@dataclass(frozen=True)
class TaggedLine:
    """A line, and the languages of its words."""

    words: list[str]
    languages: list[str | None]
    """A language of the text, ``mixed``, ``name``, or ``None`` for punctuation and numbers."""
    around: Floats
    """Probability of each language at each place, (T, K); a place without a word has it from its neighbours alone."""
    before: list[dict[str, float]]
    """Probability of each language at each place, given only the words to its left."""

    def places(self, text: str) -> Iterator[tuple[int, str, str | None]]:
        """The offset of each word in the line, the word, and its language."""
        position = 0
        for word, language in zip(self.words, self.languages, strict=True):
            position = text.index(word, position)
            yield position, word, language
            position += len(word)

    def by_start(self, text: str) -> dict[int, str | None]:
        """The language of each word of ``tasks.corpora.words``, by its offset."""
        places = self.places(text)
        return {at + start: language for at, word, language in places for start, _ in word_spans(word)}


def tagged_lines(
    languages: Sequence[str], lines: Iterable[str], *, names: bool = True, model: "WordLanguages | None" = None
) -> tuple["WordLanguages", Iterator[tuple[str, TaggedLine]]]:
    """A model learned from the first 20,000 lines of a text, or the given one, and each line with its tags.

    Those lines are held in memory, the others are a stream. Raises the errors of ``WordLanguages`` and ``divider``.
    """
    divide, lines = divider(languages), iter(lines)
    first = [] if model else list(islice(lines, LEARNED_FROM))
    model = model or WordLanguages(languages, [divide(line) for line in first], names=names)
    raw, words = tee(chain(first, lines))
    return model, zip(raw, model.tag(map(divide, words)), strict=True)


def spoken_languages(languages: Sequence[str], texts: Sequence[str]) -> Iterator[list[str]]:
    """The language in which to pronounce each white-space word of these texts, from which it is learned. Names,
    mixed words and numbers take their neighbours' language. Raises the errors of ``WordLanguages``."""
    words = [text.split() for text in texts]
    return WordLanguages(languages, words[:LEARNED_FROM]).spoken(words)


class WordLanguages:
    """Identifies the languages of words."""

    def __init__(self, languages: Sequence[str], lines: Iterable[Sequence[str]], *, names: bool = False) -> None:
        """``languages``: at least two codes (ISO 639-1, as in ``wordfreq``). ``lines``: unlabelled words of text to
        learn from, divided by ``segmentation.divider``. ``names``: also recognise names.

        Raises ``ParameterError`` for a single language, a repeated one, or where none has a list.
        """
        try:
            several(languages)
        except ValueError as error:
            raise ParameterError(str(error)) from None
        self.languages = tuple(languages)
        self._lists = [word_list(language) for language in languages]
        lines = list(lines)
        self.in_other_script = _in_other_script(dict(zip(languages, self._lists, strict=True)), lines)
        """Languages whose list is not used, since the text does not have its letters."""
        self._lists = [
            {} if language in self.in_other_script else words
            for language, words in zip(languages, self._lists, strict=True)
        ]
        self._listed = np.array([bool(words) for words in self._lists])
        self._mixed = MixedWords(languages) if self._listed.all() else None
        self._own = np.zeros(len(languages)) if self._listed.all() else np.where(self._listed, *_OWN_WORDS)
        self._spelled = np.where(self._listed, _SPELLED, 1.0)
        self._mixed_share = _MIXED
        self.chain = Chain.even(len(languages))
        self._names: Names | None = None
        self._learn(_Numbered.of(lines))
        if names:
            # Names are learned from words with their languages.
            found = Names(languages)
            tagged = ((line.words, [form_of(word) for word in line.words], line.languages) for line in self.tag(lines))
            found.learn(tagged)
            self._names = found

    @property
    def unlisted(self) -> list[str]:
        """Languages without a list, or whose list is not used."""
        return [code for code, listed in zip(self.languages, self._listed, strict=True) if not listed]

    def tag(self, lines: Iterable[Sequence[str]]) -> Iterator[TaggedLine]:
        """Each line of words with their languages; lines are read in blocks."""
        lines = iter(lines)
        while read := list(islice(lines, _BLOCK)):
            numbered = _Numbered.of(read)
            emission, mixed = self._emission(numbered.types)
            path = self._follow(numbered, emission)
            is_mixed = (path.languages * (mixed[:, None] / emission)[numbered.words]).sum(axis=1) > 0.5
            best = [self.languages[number] for number in path.languages.argmax(axis=1).tolist()]
            place = 0
            for words, forms in zip(read, numbered.forms, strict=True):
                found: list[str | None] = []
                for at, form in enumerate(forms, start=place):
                    found.append((MIXED if is_mixed[at] else best[at]) if form else None)
                for at in self._names.told(words, forms, found) if self._names else ():
                    found[at] = NAME
                here = slice(place, place + len(words))
                before = [dict(zip(self.languages, row, strict=True)) for row in path.before[here].tolist()]
                yield TaggedLine(list(words), found, path.languages[here], before)
                place += len(words)

    def spoken(self, lines: Iterable[Sequence[str]]) -> Iterator[list[str]]:
        """The language in which to pronounce each word; words without one take their neighbours'."""
        for line in self.tag(lines):
            yield [self.languages[number] for number in line.around.argmax(axis=1).tolist()]

    def shares(self, words: Sequence[str]) -> Floats:
        """Probability of each language of a word without context, for equally frequent languages, (W, K)."""
        probability, _ = self._emission([form_of(word) for word in words])
        return np.asarray(probability / probability.sum(axis=1, keepdims=True))

    def _learn(self, text: "_Numbered") -> None:
        listed = list(zip(self.languages, self._listed, strict=True))
        spelling = chain.from_iterable(_spelled_words(language) for language, has_list in listed if has_list)
        self._alphabet = Alphabet.of(sorted({*text.types, *spelling}))
        self._remembered: dict[str, tuple[list[float], float]] = {}
        self._shares: dict[str, Floats] = {}
        counts = np.bincount(text.words, minlength=len(text.types)).astype(np.float64)
        is_word = np.array([bool(form) for form in text.types])
        known = self._frequencies(text.types)
        spelled = self._alphabet.spell(text.types)
        weights = self._mixed_weights(text.types)
        total = max(counts[is_word].sum(), 1.0)
        share = np.zeros_like(known)
        unlisted = counts * is_word * _RARE / (_RARE + known.max(axis=1, initial=0.0))
        share[:, ~self._listed] = (unlisted / max(unlisted.sum(), _TINY))[:, None]
        self._letters = [
            _letters_of_list(language, self._alphabet) if has_list else LetterModel(spelled, np.log1p(unlisted))
            for language, has_list in listed
        ]
        own = np.where(self._listed, 0.0, self._own)
        letters = self._spelling(spelled)
        for _ in range(_ROUNDS):
            general = self._general(known, letters)
            plain = (1 - own) * general + own * share
            mixed = self._mixed_share * weights
            emission = np.where(is_word[:, None], (1 - self._mixed_share) * plain + mixed[:, None] + _TINY, 1.0)
            path = self._follow(text, emission)
            self.chain = path.chain
            of_mixed = (mixed[:, None] / emission)[text.words]
            places = is_word[text.words][:, None]
            expected = path.languages * (1 - of_mixed) * places
            if self._mixed is not None:
                self._mixed_share = max(float((path.languages * of_mixed * places).sum() / total), 1e-5)
            of_type = np.stack([np.bincount(text.words, each, len(text.types)) for each in expected.T], axis=1)
            sums = np.maximum(of_type.sum(axis=0), _TINY)
            by_letters = (of_type * self._spelled * letters / (general + _TINY)).sum(axis=0) / sums
            self._spelled = np.where(self._listed, by_letters, 1.0)
            share, own = of_type / sums, self._own
            for language in np.flatnonzero(~self._listed):
                certain = of_type[:, language] / np.maximum(of_type.sum(axis=1), _TINY)
                self._letters[language] = LetterModel(spelled, certain * np.log1p(counts) * is_word)
                letters[:, language] = np.exp(self._letters[language].log_probability(spelled))
        if self._own.any():
            self._shares = dict(zip(text.types, share, strict=True))

    def _spelling(self, spelled: SpelledWords) -> Floats:
        return np.exp(np.stack([letters.log_probability(spelled) for letters in self._letters], axis=1))

    def _frequencies(self, forms: list[str]) -> Floats:
        """Frequencies on the lists, (W, K)."""
        found = [[share_on_list(words, form) for words in self._lists] for form in forms]
        return np.array(found).reshape(-1, len(self._lists))

    def _mixed_weights(self, forms: list[str]) -> Floats:
        """Weight of each form as a mixed word, (W,)."""
        return np.array([self._mixed.weight(form) if self._mixed else 0.0 for form in forms])

    def _general(self, known: Floats, letters: Floats) -> Floats:
        """Probability of a word in each language: listed, or spelled by its letter model, (W, K)."""
        return (1 - self._spelled) * known + self._spelled * letters

    def _emission(self, types: list[str]) -> tuple[Floats, Floats]:
        """The probability of each form in each language, (W, K), and the part of it as a mixed word, (W,)."""
        new = [form for form in types if form not in self._remembered]
        if len(self._remembered) + len(new) > _MOST_REMEMBERED:
            self._remembered.clear()
            new = types
        words = [form for form in new if form]
        known = self._frequencies(words)
        letters = self._spelling(self._alphabet.spell(words))
        nowhere = np.zeros(len(self._lists))
        share = np.array([self._shares.get(form, nowhere) for form in words]).reshape(known.shape)
        plain = (1 - self._own) * self._general(known, letters) + self._own * share
        mixed = self._mixed_share * self._mixed_weights(words)
        full = (1 - self._mixed_share) * plain + mixed[:, None] + _TINY
        self._remembered |= zip(words, zip(full.tolist(), mixed.tolist(), strict=True), strict=True)
        if "" in new:
            self._remembered[""] = [1.0] * len(self._lists), 0.0
        found = [self._remembered[form] for form in types]
        rows, of_mixed = zip(*found, strict=True) if found else ((), ())
        return np.array(rows).reshape(-1, len(self._lists)), np.array(of_mixed)

    def _follow(self, text: "_Numbered", emission: Floats) -> Path:
        return follow(self.chain, np.log(emission)[text.words], text.lengths)


def _spelled_words(language: str) -> list[str]:
    """Words of a list that its letter model learns from."""
    return [word for word in islice(word_list(language), _LISTED) if len(word) < _LONGEST and word.isalpha()]


@lru_cache(maxsize=4)
def _letters_of_list(language: str, alphabet: Alphabet) -> LetterModel:
    """The letter model of a list; more frequent words have a little more weight. Small texts have one alphabet."""
    words, frequencies = _spelled_words(language), word_list(language)
    weights = np.log10(np.array([frequencies[word] for word in words]) * 1e9 + 1e-9) - 1
    return LetterModel(alphabet.spell(words), np.maximum(weights, 0.2))


def _in_other_script(lists: Mapping[str, dict[str, float]], lines: Iterable[Sequence[str]]) -> list[str]:
    """Languages with a list in another script than Latin, where the text is mostly Latin and hardly has that script.

    Chinese and Japanese always use their list, since the dictionary that divides them knows no other letters.
    """
    scripts = {
        language: words_by_script(islice(words, _TELL_SCRIPT)).most_common(1)[0][0]
        for language, words in lists.items()
        if words and language not in DIVIDED
    }
    foreign = {language: script for language, script in scripts.items() if script != _LATIN}
    if not foreign:
        return []
    found = words_by_script(chain.from_iterable(lines))
    total = max(found.total(), 1)
    if found[_LATIN] < _MOSTLY * total:
        return []
    unused = [language for language, script in foreign.items() if found[script] < _HARDLY * total]
    return unused if len(unused) < sum(map(bool, lists.values())) else []


@dataclass(frozen=True)
class _Numbered:
    """Lines as indices of their distinct forms."""

    forms: list[list[str]]
    """Look-up form of each word: folded, without punctuation; empty for punctuation and numbers."""
    types: list[str]
    words: Integers
    lengths: Integers

    @classmethod
    def of(cls, lines: Iterable[Sequence[str]]) -> "_Numbered":
        forms = [[form_of(word) for word in words] for words in lines]
        number: dict[str, int] = {}
        numbers = [number.setdefault(form, len(number)) for line in forms for form in line]
        lengths = np.array([len(line) for line in forms], dtype=np.int64)
        return cls(forms, list(number), np.array(numbers, dtype=np.int64), lengths)


def form_of(word: str) -> str:
    """The look-up form of a white-space word; empty for punctuation, numbers and markers."""
    if not word.isalpha():
        if not any(map(str.isalpha, word)) or MARKER_PATTERN.search(word):
            return ""
        spans = word_spans(word)
        word = word[spans[0][0] : spans[-1][1]] if spans else word
    return list_form(word)
