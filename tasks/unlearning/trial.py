"""What ways to forget are tried on: a private text with planted secrets, of which one part is to be forgotten.

Three parts of the corpus are drawn by lot: lines to forget, lines that nobody is ever trained on, and all others, which
are kept. What is planted is to be forgotten too. A secret is three common words behind words that lead up to them:
those of a template, or the beginning of a line of the corpus, so that nothing ordinary tells where it is (Meeus et al.
2025, "The Canary's Echo").
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

from tasks.audit.canaries import Canaries, Canary, Family, make_secrets
from tasks.corpora.masked_text import Marker, escape
from tasks.corpora.sidecar import MaskedSpan
from tasks.errors import CorpusError
from tasks.language_model.normalisation import normalise

if TYPE_CHECKING:
    from tasks.filling.context import FillContext
    from tasks.unlearning.settings import UnlearningSettings

_SECRET = " {common} {common} {common}"
_TEMPLATES = ("my code is" + _SECRET, "the words that open it are" + _SECRET)
_BEGINNINGS, _BEGINNING_WORDS, _ALIKE = 4, 4, 3


@dataclass(frozen=True)
class PrivateLine:
    """A line to forget, and what is private in it."""

    raw: str
    masked: str
    spans: Sequence[MaskedSpan]
    document: str = ""
    """That it stands in, where documents are drawn."""


@dataclass(frozen=True)
class Trial:
    """All parts, each in the order of the corpus."""

    secrets: Canaries
    planted: Sequence[PrivateLine]
    """Each as often as it stands in the text."""
    ordinary: Sequence[PrivateLine]
    """Lines of the corpus that are to be forgotten."""
    retained: Sequence[str]
    never_seen: Sequence[str]
    """As many as the ordinary ones, of the same draw."""
    alike: Sequence[str]
    """Sentences of the forms of the secrets that nobody is trained on, and nothing is ranked by."""

    @classmethod
    def drawn(
        cls,
        lines: Sequence[PrivateLine],
        ranks: Mapping[str, int],
        settings: "UnlearningSettings",
        seed: int,
    ) -> "Trial":
        """Equal arguments draw the same; ``CorpusError`` for a corpus that is too small or unlike any language."""
        chance = Random(f"{seed} forgetting")
        with_words = [line for line in lines if normalise(line.raw)]
        if len(with_words) < 4 * settings.lines:
            raise CorpusError(
                f"the corpus has {len(with_words):,} lines with a word, and half of it has to stay beside "
                f"{settings.lines:,} to forget and as many that nobody sees; set unlearning.lines to "
                f"{len(with_words) // 4:,} at most"
            )
        if settings.unit == "line":
            numbers = chance.sample(range(len(with_words)), 2 * settings.lines)
            forgotten, unseen = set(numbers[: settings.lines]), set(numbers[settings.lines :])
        else:
            forgotten, unseen = _of_documents([line.document for line in with_words], settings.lines, chance)
        retained = [line.raw for n, line in enumerate(with_words) if n not in forgotten and n not in unseen]
        forms: dict[Family, list[str]] = {"template": [*_TEMPLATES], "ordinary": list(_beginnings(retained, chance))}
        drawn = make_secrets(ranks, forms, settings.secrets, settings.repetitions, settings.references + _ALIKE, seed)
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
        """All lines to forget."""
        return [*self.planted, *self.ordinary]

    def in_turn(self, requests: int, seed: int) -> list[list[PrivateLine]]:
        """Lines to forget, in so many parts; equal lines are of one."""
        if requests == 1:
            return [self.forgotten]
        texts = list(dict.fromkeys(line.raw for line in self.forgotten))
        Random(f"{seed} requests").shuffle(texts)
        part = {text: number % requests for number, text in enumerate(texts)}
        return [[line for line in self.forgotten if part[line.raw] == number] for number in range(requests)]

    @staticmethod
    def refilled(forgotten: Sequence[PrivateLine], context: "FillContext", copies: int) -> list[str]:
        """Lines to forget with other words in the private places, in so many copies."""
        from tasks.filling.filled_corpus import Shard

        lines = list(forgotten) * copies
        # Lines behind those of the corpus, each a document of its own: no draw is one of the corpus' own.
        names = [f"forgotten {number}" for number in range(len(lines))]
        masked, spans = [line.masked for line in lines], [list(line.spans) for line in lines]
        shard = Shard(0, 1 + len(context.masked), masked, spans, names)
        return context.corpus_filler().fill_shard(shard).lines


def _of_documents(documents: Sequence[str], lines: int, chance: Random) -> tuple[set[int], set[int]]:
    """Numbers of the lines of documents drawn by lot, twice: as many documents as have so many lines."""
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
        raise CorpusError(f"the corpus has {len(found)} lines of eight words and more, and {_BEGINNINGS} are needed")
    for words in chance.sample(found, _BEGINNINGS):
        yield " ".join(words) + _SECRET


def _private(secret: Canary) -> PrivateLine:
    """A planted line, whose drawn words are private; they are the last ones, one blank between two."""
    words = secret.text[secret.drawn[0] :].split(" ")
    spans = [
        MaskedSpan(start, start + len(word), Marker().label, "planted", word, number)
        for number, (start, word) in enumerate(zip(secret.drawn, words, strict=True))
    ]
    masked = escape(secret.text[: secret.drawn[0]]) + " ".join(str(Marker()) for _ in words)
    return PrivateLine(secret.text, masked, spans)
