"""What there is to say of a private text while it is read: line ends that are none, and languages that are unknown."""

from collections.abc import Iterable, Iterator, Sequence

from tasks.corpora.languages import LineSample, language_shares

_FEWEST_WORDS = 20
"""Fewer words say nothing about the language of a text."""
MUCH_FOREIGN, _OF_A_SCRIPT = 0.2, 0.05
"""Shares of words in unknown languages and in unknown scripts that a reader must know of."""
_FEW_WORDS, _MUCH_OF_FEW = 200, 0.6
"""Of so few words a language is taken for another one now and then: there only most of them count."""
_SCRIPTS = {
    **{name: {"CYRILLIC"} for name in ("bg", "mk", "ru", "sr", "uk")},
    **{name: {"DEVANAGARI"} for name in ("hi", "mr", "ne", "sa")},
    **{"ar": {"ARABIC"}, "fa": {"ARABIC"}, "ur": {"ARABIC"}, "el": {"GREEK"}, "he": {"HEBREW"}, "ko": {"HANGUL"}},
    **{"zh": {"CJK"}, "ja": {"CJK", "HIRAGANA", "KATAKANA"}, "th": {"THAI"}, "ta": {"TAMIL"}, "bn": {"BENGALI"}},
}
"""Of languages that are not written in Latin letters."""


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
        """Sentences about the lines that have passed; ``known``: the languages of the technique, none: not known."""
        found = []
        if self._carriage_returns:
            found.append(
                f"{self._carriage_returns:,} carriage returns stand within lines: if they are line ends of an old Mac, "
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
                "stay in clear, and harmless ones be masked"
            )
