"""The data of a comparison: a private text with planted secrets, of which one part is to be forgotten.

The corpus is divided at random into lines to forget, lines of no training text, and all others, which are retained.
Planted lines are also to be forgotten. A secret is three common words after a context: a template, or the beginning of
a line of the corpus. So no unusual context reveals its place (Meeus et al. 2025, "The Canary's Echo").
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from tasks.audit.canaries import Canaries, Canary, Family, make_canaries
from tasks.corpora.masked_text import Marker, escape
from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import CorpusError
from tasks.language_model.normalisation import normalise

if TYPE_CHECKING:
    from tasks.filling.prepared_fill import PreparedFill
    from tasks.unlearning.settings import UnlearningSettings

_SECRET = " {common} {common} {common}"
_TEMPLATES = ("my code is" + _SECRET, "the words that open it are" + _SECRET)
_BEGINNINGS, _BEGINNING_WORDS, _ALIKE = 4, 4, 3


@dataclass(frozen=True)
class PrivateLine:
    """A line to forget, its masked form and its private spans."""

    raw: str
    masked: str
    spans: Sequence[MaskedSpan]
    document: str = ""
    """Name of its document, where documents are drawn."""


@dataclass(frozen=True)
class Trial:
    """All parts of the corpus, each in the order of the corpus."""

    secrets: Canaries
    planted: Sequence[PrivateLine]
    """Planted lines, each repeated as often as it occurs in the text."""
    ordinary: Sequence[PrivateLine]
    """Lines of the corpus to forget."""
    retained: Sequence[str]
    never_seen: Sequence[str]
    """Lines of no training text, as many as the ordinary ones and drawn with them."""
    alike: Sequence[str]
    """Sentences of the secrets' forms that are in no training text and in no ranking."""

    @classmethod
    def drawn(
        cls,
        lines: Sequence[PrivateLine],
        ranks: Mapping[str, int],
        settings: "UnlearningSettings",
        seed: int,
    ) -> "Trial":
        """Draw a trial, the same for equal arguments; ``CorpusError`` for a corpus too small or unlike a language."""
        chance = Random(f"{seed} forgetting")
        with_words = [line for line in lines if normalise(line.raw)]
        if len(with_words) < 4 * settings.lines:
            raise CorpusError(
                f"the corpus has {len(with_words):,} lines with a word, and unlearning.lines {settings.lines!r} needs "
                f"{4 * settings.lines:,}: a quarter to forget, a quarter unseen, half to retain. Set it to "
                f"{len(with_words) // 4:,} at most"
            )
        if settings.unit == "line":
            numbers = chance.sample(range(len(with_words)), 2 * settings.lines)
            forgotten, unseen = set(numbers[: settings.lines]), set(numbers[settings.lines :])
        else:
            forgotten, unseen = _of_documents([line.document for line in with_words], settings.lines, chance)
        retained = [line.raw for n, line in enumerate(with_words) if n not in forgotten and n not in unseen]
        forms: dict[Family, list[str]] = {"template": [*_TEMPLATES], "ordinary": list(_beginnings(retained, chance))}
        wanted = settings.secrets, settings.repetitions, settings.references + _ALIKE
        drawn = make_canaries(ranks, *wanted, None, seed, forms)
        if not drawn.planted:
            raise CorpusError(
                "the word counts have too few common words for secrets; give counts of the text's language"
            )
        references = {form: sentences[_ALIKE:] for form, sentences in drawn.references.items()}
        secrets = replace(drawn, references=references)
        return cls(
            secrets=secrets,
            planted=[_private(secret) for secret in secrets.planted for _ in range(secret.repetitions)],
            ordinary=[with_words[n] for n in sorted(forgotten)],
            retained=retained,
            never_seen=[with_words[n].raw for n in sorted(unseen)],
            alike=[sentence for sentences in drawn.references.values() for sentence in sentences[:_ALIKE]],
        )

    @property
    def forgotten(self) -> list[PrivateLine]:
        """All lines to forget: planted and ordinary ones."""
        return [*self.planted, *self.ordinary]

    def refilled(self, prepared: "PreparedFill", corpus_lines: int, copies: int) -> list[str]:
        """The lines to forget with other words in the private places, in this many copies."""
        from tasks.filling.filled_lines import Part

        lines = self.forgotten * copies
        # Numbered after the lines of the corpus, each its own document: no draw repeats one of the corpus.
        names = [f"forgotten {number}" for number in range(len(lines))]
        masked, spans = [line.masked for line in lines], [list(line.spans) for line in lines]
        return prepared.fill(Part(1 + corpus_lines, masked, spans, names))


def _of_documents(documents: Sequence[str], lines: int, chance: Random) -> tuple[set[int], set[int]]:
    """Draw documents at random twice, each time until they have enough lines; returns the numbers of their lines."""
    by_name: dict[str, list[int]] = {}
    for number, name in enumerate(documents):
        by_name.setdefault(name, []).append(number)
    names = chance.sample(list(by_name), len(by_name))
    drawn: tuple[set[int], set[int]] = set(), set()
    for part in drawn:
        while len(part) < lines:
            part.update(by_name[names.pop()])
    return drawn


def _beginnings(lines: Sequence[str], chance: Random) -> Iterator[str]:
    found = list(dict.fromkeys(tuple(words[:_BEGINNING_WORDS]) for words in map(normalise, lines) if len(words) > 7))
    if len(found) < _BEGINNINGS:
        raise CorpusError(f"the corpus has {len(found)} lines of at least eight words and needs {_BEGINNINGS}")
    for words in chance.sample(found, _BEGINNINGS):
        yield " ".join(words) + _SECRET


def _private(secret: Canary) -> PrivateLine:
    """A planted line with its drawn words as private spans; they are the last words, separated by single blanks."""
    words = secret.text[secret.drawn[0] :].split(" ")
    spans = [
        MaskedSpan(start, start + len(word), Marker().label, "planted", word, number)
        for number, (start, word) in enumerate(zip(secret.drawn, words, strict=True))
    ]
    masked = escape(secret.text[: secret.drawn[0]]) + " ".join(str(Marker()) for _ in words)
    return PrivateLine(secret.text, masked, spans)
