"""The language of each place to be filled, as its neighbours tell it, so that a fill does not switch where nobody did.

The languages are learned from the masked text alone (``tasks.languages``): the sticky path decides by the words round a
marker, unless the marker itself names the language of its word.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tasks.corpora.masked_text import Marker, parse_masked
from tasks.filling.masked_sentence import MaskedSentence
from tasks.languages.mixing import Mixing
from tasks.languages.word_languages import TaggedLine, WordLanguages

_SAMPLE_LINES = 20_000
_LEAST_SHARE = 0.1
"""A word may stand in a language that one in ten of its occurrences is of: ``no`` is Spanish and English."""


class PlaceLanguages:
    """Tells the languages of markers, and of words that may stand there."""

    def __init__(self, languages: Sequence[str], masked: Sequence[str]) -> None:
        """``languages``: two codes or more (ISO 639-1); ``masked``: the masked text, whose first lines say how its
        languages are spoken.

        Raises ``ParameterError`` where there is no list of words for any of the languages.
        """
        self.languages = tuple(languages)
        self._model = WordLanguages(languages, (line.split() for line in masked[:_SAMPLE_LINES]))

    def told(self, lines: Sequence[str], sentences: Sequence[MaskedSentence]) -> list[MaskedSentence]:
        """The sentences of masked lines, each slot with its language."""
        return [
            replace(
                sentence,
                slots=tuple(replace(slot, language=found[slot.first_marker]) for slot in sentence.slots),
            )
            for sentence, found in zip(sentences, map(self._of_markers, self._tagged(lines)), strict=True)
        ]

    def shares(self, words: Sequence[str]) -> dict[str, np.ndarray]:
        """For each language the share, ``(W,)``, of each word's occurrences that is of it; 0 where it is small."""
        shares = self._model.shares(words)
        return dict(zip(self.languages, np.where(shares < _LEAST_SHARE, 0.0, shares).T, strict=True))

    def counts(self, sentences: Sequence[MaskedSentence], filled: Sequence[str]) -> Counter[str]:
        """What filled lines are like: ``language_places`` and of these ``language_right``, where the fill, read in its
        line, has the language that its place had; ``switches`` among ``word_pairs`` that have a language."""
        found = Counter(language_places=0, language_right=0)
        mixing = Mixing(self.languages)
        for sentence, tagged in zip(sentences, self._tagged(filled), strict=True):
            mixing.add(tagged.languages)
            at = _words_of_slots(sentence)
            right = [tagged.languages[place] == slot.language for place, slot in zip(at, sentence.slots, strict=True)]
            found.update(language_places=len(right), language_right=sum(right))
        found.update(switches=mixing.switches, word_pairs=mixing.pairs)
        return found

    def _tagged(self, lines: Sequence[str]) -> list[TaggedLine]:
        return list(self._model.tag(line.split() for line in lines))

    def _of_markers(self, line: TaggedLine) -> list[str]:
        likeliest = line.around.argmax(axis=1).tolist()
        return [
            piece.language if piece.language in self.languages else self.languages[best]
            for word, best in zip(line.words, likeliest, strict=True)
            for piece in parse_masked(word)
            if isinstance(piece, Marker)
        ]


def _words_of_slots(sentence: MaskedSentence) -> list[int]:
    """Which white-space word of the filled line each fill is, or begins."""
    text, found = "", []
    for before in sentence.texts[: len(sentence.slots)]:
        text += before
        found.append(len(text.split()) - (bool(text) and not text[-1].isspace()))
        text += "x"
    return found
