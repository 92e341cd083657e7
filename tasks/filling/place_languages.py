"""The language of each place, from the neighbouring words, so that a fill adds no switch of language.

The languages are learned from the masked text alone (``tasks.languages``). A marker may name the language of its word.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tasks.corpora.masked_text import Marker, parse_masked
from tasks.filling.masked_sentence import Kind, MaskedSentence, spans_of_slots
from tasks.languages.mixing import Mixing
from tasks.languages.segmentation import divider
from tasks.languages.word_languages import TaggedLine, WordLanguages

_SAMPLE_LINES = 20_000
_LEAST_SHARE = 0.1
"""Minimum share of a language among a word's occurrences, for use in it: ``no`` is Spanish and English."""


class PlaceLanguages:
    """Languages of markers, and of words for them."""

    def __init__(self, languages: Sequence[str], masked: Sequence[str]) -> None:
        """``languages``: two codes or more (ISO 639-1). ``masked``: the masked text, whose first lines train the model.

        Raises ``ParameterError`` if none of the languages has a list of words.
        """
        self.languages = tuple(languages)
        self._divide = divider(languages)
        self._shares: dict[tuple[str, ...], np.ndarray] = {}
        self._model = WordLanguages(languages, map(self._divide, masked[:_SAMPLE_LINES]))

    def with_kinds(self, lines: Sequence[str], sentences: Sequence[MaskedSentence]) -> list[MaskedSentence]:
        """The sentences of masked lines, with the language of each slot."""
        return [
            sentence.with_kinds([found[slot.first_marker] for slot in sentence.slots])
            for sentence, found in zip(sentences, map(self._of_markers, self._tagged(lines)), strict=True)
        ]

    def weights(self, words: Sequence[str], kind: Kind) -> np.ndarray | None:
        """``(W,)`` shares of the words' occurrences in a language; a small share is 0. ``None`` for another kind."""
        if kind not in self.languages:
            return None
        words = tuple(words)
        if words not in self._shares:
            shares = self._model.shares(words)
            self._shares[words] = np.where(shares < _LEAST_SHARE, 0.0, shares).T
        return self._shares[words][self.languages.index(kind)]

    def counts(
        self, sentences: Sequence[MaskedSentence], filled: Sequence[str], private: Sequence[str] | None = None
    ) -> Counter[str]:
        """Sums of the languages in filled lines; ``private``: the lines before masking, if known.

        Each fill gets its language in its line. ``match`` of ``places`` have the language of their place. ``same`` of
        ``word_places`` have the language of the masked word, or of the first one of several.
        """
        after, before = Mixing(self.languages), Mixing(self.languages)
        found = Counter(dict.fromkeys(("places", "match", "word_places", "same"), 0))
        read = self._tagged(filled)
        known: Sequence[TaggedLine | None] = [None] * len(read) if private is None else self._tagged(private)
        for sentence, line, original in zip(sentences, read, known, strict=True):
            after.add(line.languages)
            written = self._read_at(line, sentence)
            found["places"] += len(written)
            found["match"] += sum(each == slot.kind for each, slot in zip(written, sentence.slots, strict=True))
            if original is not None:
                before.add(original.languages)
                masked = self._read_at(original, sentence, masked=True)
                both = [pair for pair in zip(masked, written, strict=True) if pair[0] in self.languages]
                found["word_places"] += len(both)
                found["same"] += sum(one == other for one, other in both)
        for name, mixing in (("after", after), ("before", before)):
            found.update({f"{name} {field}": value for field, value in _sums(mixing).items()})
        return Counter({f"language {name}": count for name, count in found.items()})

    def measured(self, counts: Mapping[str, int]) -> dict[str, float | None]:
        """Figures for a report: shares of fills in the language of their place, and of the masked word. Also switches
        per pair of words, mean code-mixing index of lines and mean length of islands in words. The latter are after
        filling and, if the private text is known, also before masking."""

        def rate(part: str, whole: str) -> float | None:
            total = counts.get(f"language {whole}")
            return counts[f"language {part}"] / total if total else None

        rates = {"match_rate": rate("match", "places"), "word_match_rate": rate("same", "word_places")}
        for name, suffix in (("after", ""), ("before", "_before")):
            rates[f"switch_rate{suffix}"] = rate(f"{name} switches", f"{name} pairs")
            index = rate(f"{name} index", f"{name} lines")
            rates[f"code_mixing_index{suffix}"] = None if index is None else index / 100
            rates[f"mean_island{suffix}"] = rate(f"{name} words", f"{name} islands")
        return rates

    def _tagged(self, lines: Sequence[str]) -> list[TaggedLine]:
        return list(self._model.tag(map(self._divide, lines)))

    def _read_at(self, line: TaggedLine, sentence: MaskedSentence, *, masked: bool = False) -> list[str | None]:
        """The language of the first word of each fill in its line; ``masked``: in the line before masking, in which a
        slot may have several words."""
        text, found = "", []
        for index, before in enumerate(sentence.texts[: len(sentence.slots)]):
            text += before
            # In a script without spaces, a word may have become part of a fill.
            found.append(line.languages[min(len(self._divide(text + "x")), len(line.words)) - 1])
            text += " ".join(span.original for span in spans_of_slots(sentence)[index]) if masked else "x"
        return found

    def _of_markers(self, line: TaggedLine) -> list[str]:
        likeliest = line.around.argmax(axis=1).tolist()
        return [
            piece.language if piece.language in self.languages else self.languages[best]
            for word, best in zip(line.words, likeliest, strict=True)
            for piece in parse_masked(word)
            if isinstance(piece, Marker)
        ]


def _sums(mixing: Mixing) -> dict[str, int]:
    """Integer sums, so that the order of parts does not matter; the index in hundredths."""
    return {
        "lines": mixing.lines,
        "index": round(100 * mixing.index),
        "switches": mixing.switches,
        "pairs": mixing.pairs,
        "islands": len(mixing.lengths),
        "words": sum(mixing.lengths),
    }
