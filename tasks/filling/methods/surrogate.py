"""Surrogates: fills without a model, as current anonymisers write them (Faker, gazetteers), for comparison.

A marker's class selects the pool: names for ``[PERSON]``, places for ``[LOCATION]``, figures for figures. For
``[MASK]`` the sidecar's label is the class. A word without a label (list techniques) is drawn by frequency among the
words of its form (ending -s, -ed, -ing, -ly or none; capitals).

With the sidecar, a surrogate has the gender of the first name (else of the line's pronouns), the kind of place,
figures, capitals and initials of its original. Consecutive markers get one name of as many words. The draw depends only
on the form of the original, so it may give the original itself (decision 0044). A fill on the list of never-masked
words is redrawn a limited number of times, and then counts as a fallback.

Within a line, the draw depends on the place. Within a document or the corpus, it is an HMAC (SHA-256) of the folded
original and of the document's name, with a key from the seed and the sidecar (``fill_secret``). So nobody without the
sidecar can test which original gives a surrogate, but every reader sees which lines mention the same thing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from tasks.corpora.words import fold
from tasks.errors import ParameterError
from tasks.filling.settings import FillingMethod

if TYPE_CHECKING:
    from tasks.corpora.sidecar import MaskedSpan
    from tasks.filling.fill_files import FillFiles
    from tasks.filling.masked_sentence import Casing
    from tasks.filling.prepared_fill import PreparedFill
    from tasks.filling.surrogates.filler import SurrogateFiller


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

    def equal_copies(self) -> tuple[str, str] | None:
        """Beyond a line the draw depends on the word alone."""
        if self.consistent_within == "line":
            return None
        scope = f"consistent_within={self.consistent_within!r}"
        return f"{scope} gives a word the same surrogate in each of them", "set consistent_within: line"

    @property
    def reads_documents(self) -> bool:
        """Whether surrogates are consistent within a document."""
        return self.consistent_within == "document"

    @property
    def follows_originals(self) -> bool:
        """Always true: surrogates have the form of their originals."""
        return True

    def check(self, files: "FillFiles") -> None:
        """Also check the files for surrogates that are consistent within a document."""
        super().check(files)
        for option, known in (("documents", "the document of each line"), ("sidecar", "the masked words")):
            if self.reads_documents and not getattr(files, option):
                raise ParameterError(
                    f"consistent_within='document' needs {known}; give --{option}, or set consistent_within: line"
                )

    def build(self, prepared: "PreparedFill") -> "tuple[SurrogateFiller, Casing]":
        """The filler, and a casing that does not change its words."""
        from tasks.filling.surrogates.filler import AsWritten, SurrogateFiller

        words = prepared.words
        given = (prepared.randomness, words.counts, words.allowed_words)
        return SurrogateFiller(*given, consistent_within=self.consistent_within), AsWritten()

    def measured(self, files: "FillFiles") -> dict[str, Any]:
        """Maximum number of surrogates of one original, if there is a sidecar."""
        if not files.sidecar:
            return {}
        from tasks.corpora.sidecar import read_sidecar
        from tasks.corpora.text_lines import read_documents

        documents = read_documents(files.documents) if files.documents else None
        return {"surrogates_of_one_original": most_surrogates(self, read_sidecar(files.sidecar), documents)}


def most_surrogates(
    settings: Surrogate, records: "Iterable[Sequence[MaskedSpan]]", documents: Iterable[str] | None = None
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
