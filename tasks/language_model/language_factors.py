"""``LanguageFactors``: predict the language of the next word, then the word.

The model is p(w | h) = sum over languages l of p(l | h) p(w | l, h), built from any word model p(w | h). The word
factor is p(w | l, h) = p(w | h) s(l | w) / P(l | h), where s is the share of l among the occurrences of w. P(l | h),
the sum of p(w | h) s(l | w) over all words, is the word model's own next-language distribution. The language factor is
p(l | h) ~ P(l | h)^a q(l | h)^b. q uses all words to the left; an n-gram model uses the last two. a = 1 and b = 0 give
the word model. Tokens without a language (sentence end, markers, numbers, unknown words) are unchanged.

q depends on earlier ids alone, so it is the same for a text and a beam.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tasks.errors import ParameterError
from tasks.files.atomic_file import atomic_writer
from tasks.language_model.encoded_text import EncodedText
from tasks.language_model.model_folder import checked_content, hash_of_file
from tasks.language_model.settings import LanguageFactorSettings
from tasks.language_model.vocabulary import SPECIAL_TOKENS, Vocabulary

LANGUAGES = "languages.safetensors"
"""File of the tables in a model folder."""
TABLES = ("shares", "steps", "first")

_PRIOR = 1.0
"""Weight, in occurrences, of the prior share of a word: from the published lists and its letters."""
_STEP_PRIOR = 20.0
"""Weight, in occurrences, of the average step in the steps of each word."""
_LARGEST_EXPONENT = 3.0
_TINY = 1e-300


@dataclass(frozen=True)
class LanguageFactors:
    """Statistics of the languages of a vocabulary's V words; K languages."""

    languages: tuple[str, ...]
    shares: np.ndarray
    """Share of each language among the occurrences of each word (V, K); 0 for tokens that are no words."""
    steps: np.ndarray
    """Probability of the language after each word, by the language that the word itself has (V, K, K)."""
    first: np.ndarray
    """Probability of each language at the start of a sentence (K,)."""
    exponents: tuple[float, float] = (1.0, 0.0)
    """Exponents of the word model's own next-language distribution, a, and of q, b."""

    @cached_property
    def classes(self) -> np.ndarray:
        """Share of each language in each word and, last, the share without a language (V, K + 1)."""
        return np.concatenate([self.shares, 1 - self.shares.sum(axis=1, keepdims=True)], axis=1)

    def step(self, expected: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Q after words (N,), from q before them (N, K)."""
        shares = self.shares[words]
        found = expected * np.where(shares.any(axis=1, keepdims=True), shares, 1.0) + _TINY
        return np.einsum("nk,nkl->nl", found / found.sum(axis=1, keepdims=True), self.steps[words])

    def expected(self, text: EncodedText) -> np.ndarray:
        """Q(l | h) at each id of a text (N, K), from the earlier ids of its sentence."""
        found = np.tile(self.first, (len(text.tokens), 1))
        lengths = np.diff(text.offsets)
        for place in range(2, int(lengths.max())):
            at = text.offsets[:-1][lengths > place] + place
            found[at] = self.step(found[at - 1], text.tokens[at - 1])
        return found

    def correction(self, expected: np.ndarray, own: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The correction of the word model's log-probability of each target (N,), in nats; 0 without a language.

        ``expected``: q (N, K); ``own``: the word model's probability of each of ``classes`` (N, K + 1).
        """
        shares = self.shares[targets]
        spoken = shares.any(axis=1)
        factor = (shares * self._language_weights(expected, own)).sum(axis=1)
        return np.log(np.where(spoken, factor, 1.0))

    def factor_of_words(self, expected: np.ndarray, probability: np.ndarray) -> np.ndarray:
        """The factor of every word's probability (V,) after one history, with q (K,) in ``expected``."""
        own = probability @ self.classes
        factor: np.ndarray = self.shares @ self._language_weights(expected[None], own[None])[0] + self.classes[:, -1]
        return factor

    def _language_weights(self, expected: np.ndarray, own: np.ndarray) -> np.ndarray:
        """p(l | h) / P(l | h), (N, K)."""
        own = np.maximum(own[:, :-1], _TINY)
        a, b = self.exponents
        logs = a * np.log(own) + b * np.log(np.maximum(expected, _TINY))
        wanted = np.exp(logs - logs.max(axis=1, keepdims=True))
        together = own.sum(axis=1, keepdims=True) / wanted.sum(axis=1, keepdims=True)
        return np.asarray(wanted * together / own)

    def fitted(
        self, text: EncodedText, own: np.ndarray, switch_weight: float, tagger: "TextLanguages"
    ) -> "LanguageFactors":
        """A copy with the maximum-likelihood exponents for a text. A word at a switch point counts ``1 +
        switch_weight`` times; ``own`` as in ``correction``, at each id of the text (N, K + 1)."""
        from scipy.optimize import minimize

        is_target = text.is_target()
        expected, own, targets = self.expected(text)[is_target], own[is_target], text.tokens[is_target]
        weight = 1 + switch_weight * tagger.switches(text)[is_target]

        def loss(exponents: np.ndarray) -> float:
            tried = replace(self, exponents=(float(exponents[0]), float(exponents[1])))
            return -float((weight * tried.correction(expected, own, targets)).mean())

        found = minimize(loss, [0.5, 0.5], method="L-BFGS-B", bounds=[(0.0, _LARGEST_EXPONENT)] * 2).x.tolist()
        return replace(self, exponents=(round(found[0], 4), round(found[1], 4)))


class TextLanguages:
    """Tags the words of an encoded text with languages, from whole sentences: the training data of the factors."""

    def __init__(self, languages: Sequence[str], text: EncodedText, vocabulary: Vocabulary) -> None:
        from tasks.languages.word_languages import WordLanguages, form_of

        # Special tokens and numbers are no words to a tagger.
        self._words = ["0"] * len(SPECIAL_TOKENS) + list(vocabulary.tokens[len(SPECIAL_TOKENS) :])
        self._is_word = np.array([bool(form_of(word)) for word in self._words])
        self._tagger = WordLanguages(languages, list(self._lines(text)))

    def _lines(self, text: EncodedText) -> Iterator[list[str]]:
        for begin, end in zip(text.offsets[:-1].tolist(), text.offsets[1:].tolist(), strict=True):
            yield [self._words[token] for token in text.tokens[begin + 1 : end - 1].tolist()]

    def switches(self, text: EncodedText) -> np.ndarray:
        """Whether each id of a text (N,) is a word at a switch point, bool."""
        from tasks.languages.mixing import switch_points

        found = np.zeros(len(text.tokens), dtype=bool)
        for begin, line in zip(text.offsets.tolist(), self._tagger.tag(self._lines(text)), strict=False):
            found[[begin + 1 + place for place in switch_points(line.languages)]] = True
        return found

    def factors(self, text: EncodedText) -> LanguageFactors:
        """Count shares, steps and sentence starts in a text; a mixed word counts for the language of its neighbours."""
        codes = self._tagger.languages
        languages, words = len(codes), len(self._words)
        counts, steps = np.zeros((words, languages)), np.zeros((words, languages, languages))
        first = np.ones(languages)
        for begin, line in zip(text.offsets.tolist(), self._tagger.tag(self._lines(text)), strict=False):
            last = None
            for place, (language, around) in enumerate(zip(line.languages, line.around, strict=True), start=begin + 1):
                if language is None:
                    continue
                number = int(around.argmax())
                counts[text.tokens[place], number] += 1
                if last is None:
                    first[number] += 1
                else:
                    steps[text.tokens[place - 1], last, number] += 1
                last = number
        prior = np.zeros_like(counts)
        prior[self._is_word] = self._tagger.shares([self._words[word] for word in np.flatnonzero(self._is_word)])
        shares = (counts + _PRIOR * prior) / (counts.sum(axis=1, keepdims=True) + _PRIOR)
        usual = steps.sum(axis=0) + np.eye(languages)
        usual /= usual.sum(axis=1, keepdims=True)
        steps = (steps + _STEP_PRIOR * usual) / (steps.sum(axis=2, keepdims=True) + _STEP_PRIOR)
        return LanguageFactors(tuple(codes), shares * self._is_word[:, None], steps, first / first.sum())


def check_weight(settings: LanguageFactorSettings | None, valid: object) -> None:
    """Raise ``ParameterError`` where neither a weight nor a validation text gives the exponents."""
    if settings is not None and settings.weight is None and valid is None:
        raise ParameterError(
            "the weight of the languages is not set and there is no validation text to fit it; give "
            "languages.weight or --valid"
        )


def factors_of(
    settings: LanguageFactorSettings | None,
    text: EncodedText,
    valid: EncodedText | None,
    vocabulary: Vocabulary,
    own: Callable[[EncodedText, np.ndarray], np.ndarray],
) -> LanguageFactors | None:
    """The language factors of a text; ``None`` where no languages are set or the weight is 0.

    The exponents come from the settings or the validation text. ``own`` returns the word model's probability of each of
    ``classes`` (V, K + 1) at each id of a text (N, K + 1).
    """
    if settings is None or settings.weight == 0:
        return None
    check_weight(settings, valid)
    tagger = TextLanguages(settings.codes, text, vocabulary)
    factors = tagger.factors(text)
    if settings.weight is not None:
        return replace(factors, exponents=(1 - settings.weight, settings.weight))
    assert valid is not None, "check_weight ensures it"
    return factors.fitted(valid, own(valid, factors.classes), settings.switch_weight, tagger)


def exponents_of(factors: LanguageFactors | None) -> dict[str, object]:
    """Entries of a report; empty without languages."""
    return {} if factors is None else {"language_exponents": list(factors.exponents)}


def write_factors(folder: Path, factors: LanguageFactors | None) -> dict[str, Any]:
    """Write the tables into a model folder; return their entry for its settings, empty without languages."""
    from safetensors.numpy import save

    if factors is None:
        return {}
    tables = {name: getattr(factors, name).astype(np.float32) for name in TABLES}
    with atomic_writer(folder / LANGUAGES, private=True, binary=True) as stream:
        stream.write(save(tables))
    said = {"codes": factors.languages, "exponents": factors.exponents, "sha256": hash_of_file(folder / LANGUAGES)}
    return {"languages": said}


def read_factors(folder: Path, document: Mapping[str, Any]) -> LanguageFactors | None:
    """Read the tables that a model folder's settings list; raises ``ModelError`` where their hash differs."""
    from safetensors.numpy import load

    said = document.get("languages")
    if said is None:
        return None
    content = checked_content(folder / LANGUAGES, said["sha256"])
    tables = {name: table.astype(np.float64) for name, table in load(content).items()}
    return LanguageFactors(tuple(said["codes"]), exponents=tuple(said["exponents"]), **tables)
