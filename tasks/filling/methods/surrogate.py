"""Surrogates: fills without a model, as current anonymisers write them (Faker, gazetteers), for comparison.

A marker's class selects the pool: names for ``[PERSON]``, places for ``[LOCATION]``, figures for figures. For
``[MASK]`` the sidecar's label is the class. A word without a label (list techniques) is drawn by frequency among the
words of its form (ending -s, -ed, -ing, -ly or none; capitals).

With the sidecar, a surrogate follows its original. It has the gender of the first name (else of the line's pronouns),
the kind of place, figures, capitals and initials. Consecutive markers get one name of as many words, first name first.
The draw depends only on the form of the original (gender, kind, group, block of years), so it may give the original
itself. Any number of surrogates of one original then reveal only its form. Without the original in the draw, each
surrogate would rule out one word: 18 surrogates of a year revealed it in seven of ten cases (decision 0044). Without
the sidecar, only the class counts. Every fill is one word. A fill on the list of never-masked words is redrawn a
limited number of times. If it remains on the list, it counts as a fallback.

The same original gets the same surrogate within a line, within a document, or within the corpus. Within a line, the
draw depends on the place. Within a document or the corpus, it is an HMAC (SHA-256) of the folded original and of the
document's name. So lines can be filled in any order. The key is the seed and a secret from the sidecar
(``fill_secret``). So nobody without the sidecar can test which original gives a surrogate, but every reader sees which
lines mention the same thing. Two persons of a document may then get the same name by chance; within a line they cannot.
Spelling and position of the original then only decide the case: ``Zebra`` and ``zebra`` get the same word.
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
    from tasks.filling.fill import FillFiles
    from tasks.filling.frequencies.word_frequencies import AllowedWords, WordFrequencies
    from tasks.filling.marker_randomness import MarkerRandomness
    from tasks.filling.masked_sentence import Fill, MaskedSentence
    from tasks.filling.prepared_fill import PreparedFill
    from tasks.filling.surrogates.values import SurrogateValues


class Surrogate(FillingMethod):
    """Names, places and figures from gazetteers by the class of the marker, like those of anonymisers; no model."""

    title: ClassVar[str] = "Surrogate"
    sentence: ClassVar[str] = "Made-up values of the marker’s class, without a model; not in the paper."
    needs_word_counts: ClassVar[bool] = True
    merges_markers: ClassVar[bool] = False
    """False: a name of two words becomes one surrogate of two words."""
    kind: Literal["surrogate"]
    consistent_within: Literal["line", "document", "corpus"] = "line"
    """Scope in which the same original gets the same surrogate. With ``document`` and ``corpus``, every reader sees
    which places mention the same thing (see above)."""

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
        """Whether surrogates are consistent within a document."""
        return self.consistent_within == "document"

    @property
    def follows_originals(self) -> bool:
        """Always true: surrogates have the form of their originals."""
        return True

    def check(self, files: FillFiles) -> None:
        """Also check the files for surrogates that are consistent within a document."""
        super().check(files)
        for option, known in (("documents", "the document of each line"), ("sidecar", "the masked words")):
            if self.reads_documents and not getattr(files, option):
                raise ParameterError(
                    f"consistent_within='document' needs {known}; give --{option}, or set consistent_within: line"
                )

    def build(self, prepared: PreparedFill) -> tuple[SurrogateFiller, Casing]:
        """The filler, and a casing that does not change its words."""
        words = prepared.words
        filler = SurrogateFiller(
            prepared.randomness, words.counts, words.allowed_words, consistent_within=self.consistent_within
        )
        return filler, AsWritten()

    def measured(self, files: FillFiles) -> dict[str, Any]:
        """Maximum number of surrogates of one original, if there is a sidecar."""
        if not files.sidecar:
            return {}
        from tasks.corpora.sidecar import read_sidecar
        from tasks.corpora.text_lines import read_documents

        documents = read_documents(files.documents) if files.documents else None
        return {"surrogates_of_one_original": most_surrogates(self, read_sidecar(files.sidecar), documents)}


class AsWritten(Casing):
    """A casing that does not change fills: surrogates get their case in the draw."""

    def __init__(self) -> None:
        super().__init__({}, filler_is_cased=True)

    def write(self, texts: Sequence[str], words: Sequence[str]) -> list[str]:
        """The unchanged words."""
        return list(words)


class SurrogateFiller:
    """Filler that writes surrogates."""

    forward_seconds: float | None = None
    """``None``: there is no model."""

    def __init__(
        self,
        randomness: MarkerRandomness,
        frequencies: WordFrequencies | None = None,
        allowed_words: AllowedWords | None = None,
        *,
        consistent_within: Literal["line", "document", "corpus"] = "line",
        values: SurrogateValues | None = None,
    ) -> None:
        """``frequencies``: words for markers without a class. ``allowed_words``: words that surrogates should avoid."""
        from tasks.filling.frequencies.word_frequencies import AllowedWords
        from tasks.filling.surrogates.line import SurrogateSources
        from tasks.filling.surrogates.values import SurrogateValues
        from tasks.filling.surrogates.words_by_frequency import WordsByFrequency

        allowed_words = allowed_words or AllowedWords()
        self._sources = SurrogateSources(
            randomness,
            randomness.key,
            consistent_within == "corpus",
            values or SurrogateValues(),
            WordsByFrequency(frequencies, allowed_words.off_list(frequencies.words))
            if frequencies is not None
            else None,
            allowed_words,
        )
        self.counts = self._sources.counts
        """``surrogates_with_original``, ``surrogates_by_class`` (no sidecar) and ``surrogates_by_frequency`` (no
        class). The first includes ``surrogates_repeated``: the original already occurred in the line."""

    @cached_property
    def candidate_count(self) -> int:
        """Number of different words in the pools."""
        return len({word for label in CLASSES for word in map(fold, self._sources.values.words_of_class(label))})

    def fill(self, sentences: Sequence[MaskedSentence], advance: Callable[[int], object]) -> list[list[Fill]]:
        """The fills of each sentence, one per slot. Raises ``CorpusError`` with the line for a marker without a class
        if there are no word counts."""
        filled = []
        for sentence in sentences:
            filled.append([fill for _, fill in sorted(self.fills(sentence).items())])
            advance(len(sentence.slots))
        return filled

    def fills(self, sentence: MaskedSentence, slots: Collection[int] | None = None) -> dict[int, Fill]:
        """From slot index to surrogate in its case, for one sentence; at least for ``slots``, or for all. A surrogate
        on the list of never-masked words is a fallback."""
        from tasks.filling.masked_sentence import Fill
        from tasks.filling.surrogates.line import SurrogateLine, marked_slots, runs_of

        line = SurrogateLine(self._sources, sentence)
        words: dict[int, str] = {}
        marked = marked_slots(sentence, folded=line.beyond_line)
        for run in runs_of(sentence, marked):
            if slots is None or any(slot.index in slots for slot in run):
                words.update(zip((slot.index for slot in run), line.fill(run), strict=True))
        return {index: Fill(word, fallback=self._sources.allowed_words.holds(word)) for index, word in words.items()}


def most_surrogates(
    settings: Surrogate, records: Iterable[Sequence[MaskedSpan]], documents: Iterable[str] | None = None
) -> int:
    """Maximum number of surrogates of one original, as the next power of ten: an exact number would reveal a line.

    ``records``: spans of the sidecar, line by line; ``documents``: the name of each line's document.
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
