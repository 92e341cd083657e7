"""Language identification of words with labels: a conditional random field over the unsupervised model's output."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import log10
from pathlib import Path
from tempfile import TemporaryDirectory

from tasks.conditional_random_field import train
from tasks.languages.labelled_words import LabelledWords
from tasks.languages.word_languages import TaggedLine, WordLanguages, form_of
from tasks.languages.word_lists import word_list

_ROUNDS, _L1, _L2 = 100, 0.05, 0.01
_OTHER = "-"
"""Label of tokens without a language."""
_AFFIXES = (1, 2, 3, 4)


class LabelledModel:
    """A linear-chain conditional random field (Lafferty et al. 2001) with features of a word and its neighbours."""

    def __init__(self, plain: WordLanguages, labelled: Sequence[LabelledWords]) -> None:
        """``plain`` is the unsupervised model: its tag is a feature, and the label of words without one."""
        import pycrfsuite

        self._plain = plain
        lines = list(plain.tag(line.words for line in labelled))
        labels = [
            [label or guess or _OTHER for label, guess in zip(line.languages, guessed.languages, strict=True)]
            for line, guessed in zip(labelled, lines, strict=True)
        ]
        features = (self._features(line) for line in lines)
        with TemporaryDirectory() as folder:
            model = Path(folder) / "model"
            train(model, features, labels, iterations=_ROUNDS, absolute=_L1, squared=_L2)
            self._content = model.read_bytes()  # the tagger reads it as long as it lives
        self._crf = pycrfsuite.Tagger()
        self._crf.open_inmemory(self._content)

    def tag(self, lines: Iterable[Sequence[str]]) -> Iterator[TaggedLine]:
        """Tag lines as ``WordLanguages.tag`` does; ``around`` and ``before`` come from the unsupervised model."""
        for line in self._plain.tag(lines):
            labels = self._crf.tag(self._features(line)) if line.words else []
            yield replace(line, languages=[None if label == _OTHER else label for label in labels])

    def _features(self, line: TaggedLine) -> list[list[str]]:
        own = [self._word(word, tag) for word, tag in zip(line.words, line.languages, strict=True)]
        found = []
        for place, features in enumerate(own):
            nearby = [f"{at}:{feature}" for at in (-2, -1, 1, 2) for feature in _at(own, place + at)[:5]]
            found.append([*features, *nearby])
        return found

    def _word(self, word: str, tag: str | None) -> list[str]:
        """Features of a word; its neighbours use the first five."""
        form = form_of(word)
        levels = [f"{language}={_level(form, language)}" for language in self._plain.languages]
        case = "X" if word.isupper() else "Xx" if word[:1].isupper() else "x" if form else "."
        affixes = [f"{end}{form[:n] if end == '^' else form[-n:]}" for n in _AFFIXES for end in "^$" if len(form) > n]
        return [f"w={form or word}", f"t={tag}", " ".join(levels), f"c={case}", f"$3{form[-3:]}", *levels, *affixes]


def _level(form: str, language: str) -> int:
    """Frequency of a word in powers of ten, from 1e-9; 0 where it is on no list."""
    frequency = word_list(language).get(form, 0.0)
    return max(int(log10(frequency * 1e9)), 0) if frequency else 0


def _at(lines: list[list[str]], place: int) -> list[str]:
    return lines[place] if 0 <= place < len(lines) else ["outside"]
