"""Surrogates: fills without any model, as anonymisers write them today (Faker, gazetteers), as a competitor.

A marker's class decides the pool: a name for ``[PERSON]``, a place for ``[LOCATION]``, other figures for figures. Where
the masked text has ``[MASK]``, the sidecar's label is the class; a word that has none there either (list techniques) is
drawn by its frequency among the words of its form (its ending: -s, -ed, -ing, -ly or none; capitals as it has them).
With the sidecar a surrogate follows its original: the same gender by the first name, else by the pronouns of the line;
the same kind of place; figures, capitals and initials where it has some; and markers that stand side by side get one
name of as many words, first name first. It may be the original itself, by chance: what is drawn depends on the form of
the original (its gender, kind, group, block of years) and not on which word of that form it is. So many surrogates of
one original tell its form, and nothing else. Were it left out, each would rule one word out: 18 surrogates of a year
told it in seven of ten cases (decision 0044). Without the sidecar the class alone decides. Every fill is one word, and
none is on the list of kept words where another one is found in so many attempts; where none is, it counts as a
fallback.

The same original gets the same surrogate within a line, within the line's document where that is known, or within the
corpus. For a line nothing but the place decides what is drawn. For a document or the corpus it is drawn by an HMAC
(SHA-256) of the folded original, and of the document's name, so that lines can be filled in any order. The key is the
seed and a secret that only the sidecar tells (``fill_secret``): nobody else can try out which original gives a
surrogate, but everybody sees which lines speak of the same thing. Two persons of a document may then get the same name
by chance, which cannot happen within a line. How the original is spelled, and where it stands, then decides the case of
the surrogate and nothing else: ``Zebra`` and ``zebra`` get the same word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import model_validator

from tasks.corpora.masked_text import CLASSES
from tasks.corpora.words import fold
from tasks.errors import ParameterError
from tasks.filling.masked_sentence import Casing
from tasks.filling.settings import FillingMethod, refuse_copies

if TYPE_CHECKING:
    from tasks.corpora.sidecar import MaskedSpan
    from tasks.filling.context import FillContext
    from tasks.filling.fill import FillFiles
    from tasks.filling.filled_corpus import BuiltFiller
    from tasks.filling.frequencies.word_frequencies import KeptWords, WordFrequencies
    from tasks.filling.marker_randomness import MarkerRandomness
    from tasks.filling.masked_sentence import Fill, MaskedSentence
    from tasks.filling.surrogates.values import SurrogateValues


class Surrogate(FillingMethod):
    """Names, places and figures from gazetteers by the class of the marker, as anonymisers write them; no model."""

    title: ClassVar[str] = "Surrogate"
    sentence: ClassVar[str] = "Made-up values of the marker’s class, without a model; not in the paper."
    needs_word_counts: ClassVar[bool] = True
    merges_markers: ClassVar[bool] = False
    """A name of two words is one surrogate of two words."""
    kind: Literal["surrogate"]
    consistent_within: Literal["line", "document", "corpus"] = "line"
    """Where the same original gets the same surrogate. ``document`` and ``corpus``: everybody sees which places speak
    of the same thing (see above)."""

    @model_validator(mode="after")
    def _copies_differ(self) -> Self:
        if self.consistent_within != "line":
            refuse_copies(
                self.copies,
                f"consistent_within={self.consistent_within!r} gives a word the same surrogate in each of them",
                "set consistent_within: line, or leave copies out",
            )
        return self

    @property
    def reads_documents(self) -> bool:
        """Where a word has the same surrogate in a whole document."""
        return self.consistent_within == "document"

    @property
    def follows_originals(self) -> bool:
        """Their form, always."""
        return True

    @property
    def tells_forms(self) -> bool:
        """Always."""
        return True

    def check(self, files: FillFiles) -> None:
        """What says which lines speak of the same thing."""
        super().check(files)
        for option, known in (("documents", "the document of each line"), ("sidecar", "what was masked")):
            if self.reads_documents and not getattr(files, option):
                raise ParameterError(
                    f"consistent_within='document': --{option} is needed to know {known}; give it, or set "
                    "consistent_within: line"
                )

    def build(self, context: FillContext) -> BuiltFiller:
        """No model, and words that are cased when they are drawn."""
        from tasks.filling.filled_corpus import BuiltFiller

        filler = SurrogateFiller(
            context.randomness, context.word_counts, context.kept, consistent_within=self.consistent_within
        )
        return BuiltFiller(filler, AsWritten())

    def measured(self, context: FillContext) -> dict[str, Any]:
        """How many surrogates one original gets, where the sidecar says what the originals are."""
        if not context.files.sidecar:
            return {}
        from tasks.corpora.sidecar import read_sidecar
        from tasks.corpora.text_lines import read_documents

        documents = read_documents(context.files.documents) if context.files.documents else None
        return {"surrogates_of_one_original": most_surrogates(self, read_sidecar(context.files.sidecar), documents)}


class AsWritten(Casing):
    """Leaves fills as they are: surrogates are cased when they are drawn."""

    def __init__(self) -> None:
        super().__init__({}, filler_is_cased=True)

    def write(self, texts: Sequence[str], words: Sequence[str]) -> list[str]:
        """The words themselves."""
        return list(words)


class SurrogateFiller:
    """Writes surrogates."""

    forward_seconds: float | None = None
    """There is no model."""

    def __init__(
        self,
        randomness: MarkerRandomness,
        frequencies: WordFrequencies | None = None,
        kept: KeptWords | None = None,
        *,
        consistent_within: Literal["line", "document", "corpus"] = "line",
        values: SurrogateValues | None = None,
    ) -> None:
        """``frequencies``: words for markers without any class. ``kept``: the list that no surrogate should be on."""
        from tasks.filling.frequencies.word_frequencies import KeptWords
        from tasks.filling.surrogates.line import SurrogateSources
        from tasks.filling.surrogates.values import SurrogateValues
        from tasks.filling.surrogates.words_by_frequency import WordsByFrequency

        kept = kept or KeptWords()
        self._sources = SurrogateSources(
            randomness,
            randomness.key,
            consistent_within == "corpus",
            values or SurrogateValues(),
            WordsByFrequency(frequencies, kept.off_list(frequencies.words)) if frequencies is not None else None,
            kept,
        )
        self.counts = self._sources.counts
        """``surrogates_with_original``, ``surrogates_by_class`` (no sidecar) and ``surrogates_by_frequency`` (no
        class), and among the first ``surrogates_repeated``: the original stood in the line before."""

    @cached_property
    def candidate_count(self) -> int:
        """How many different words the pools hold."""
        return len({word for label in CLASSES for word in map(fold, self._sources.values.words_of_class(label))})

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot. ``CorpusError`` names the line of a marker without a class where
        there are no word counts."""
        filled = []
        for sentence in sentences:
            filled.append([fill for _, fill in sorted(self.fills(sentence).items())])
            advance(len(sentence.slots))
        return filled

    def fills(self, sentence: MaskedSentence, slots: Collection[int] | None = None) -> dict[int, Fill]:
        """The surrogates of one sentence by the index of the slot, cased; of these slots at least, or of all. One that
        is on the list of kept words, where no other was found, is a fallback."""
        from tasks.filling.masked_sentence import Fill
        from tasks.filling.surrogates.line import SurrogateLine, marked_slots, runs_of

        line = SurrogateLine(self._sources, sentence)
        words: dict[int, str] = {}
        marked = marked_slots(sentence, folded=line.beyond_line)
        for run in runs_of(sentence, marked):
            if slots is None or any(slot.index in slots for slot in run):
                words.update(zip((slot.index for slot in run), line.fill(run), strict=True))
        return {index: Fill(word, fallback=self._sources.kept.holds(word)) for index, word in words.items()}


def most_surrogates(
    settings: Surrogate, records: Iterable[Sequence[MaskedSpan]], documents: Iterable[str] | None = None
) -> int:
    """How many surrogates one original gets at most, as the next power of ten: an exact number would tell of a line.

    ``records``: the sidecar's, line by line; ``documents``: the name of each line's document.
    """
    if settings.consistent_within == "corpus":
        return 1
    uses: Counter[tuple[str, str]] = Counter()
    seen: set[tuple[str, str]] = set()
    last: object = None
    for scope, spans in zip(documents if documents is not None else count(), records, strict=False):
        if scope != last:
            seen, last = set(), scope
        new = {(span.label, fold(span.original)) for span in spans} - seen
        uses.update(new)
        seen |= new
    most, power = max(uses.values(), default=0) * settings.copies, 1
    while power < most:
        power *= 10
    return power
