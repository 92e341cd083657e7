"""Settings of filling methods: ``filling.*`` in ``params.yaml`` (paper 3.2)."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from tasks.filling.masked_lm.order_of_filling import OrderName
from tasks.masking.settings import SpacyTagger, TaggerSettings
from tasks.settings.base import Settings


class RightContext(Settings):
    """How a causal language model, which reads from left to right, takes account of what stands behind a marker. A
    masked language model sees both sides and has no use for it."""

    words: int = Field(default=3, ge=0)
    """So many known words behind a marker are scored behind each candidate; 0: the left-hand context alone decides."""
    candidates: int = Field(default=8, ge=1)
    """Words that are scored in this way, K of ``top_k`` at least."""


class ClassCheck(Settings):
    """How fills are held against the classes of their markers, where ``classes`` is ``match``."""

    tagger: TaggerSettings = SpacyTagger(kind="spacy")
    """Whose entities say of which class a fill is."""
    attempts: int = Field(default=3, ge=0, le=10)
    """How often a fill of another class is drawn again before it becomes a surrogate."""


class _Method(Settings):
    title: ClassVar[str] = ""
    """What tables and pages call it."""
    colour: ClassVar[int | None] = None
    """Number of its colour in plots; ``None``: the next one that is free."""
    sentence: ClassVar[str] = ""
    """What the report page says of it."""

    copies: int = Field(default=1, ge=1, le=100)
    """How often the corpus is filled, each time by other draws, one copy behind the other: a model that is adapted on
    it for one epoch reads another fill in each pass over the corpus (decision 0039)."""


def _refuse_copies(copies: int, what: str, remedy: str) -> None:
    if copies > 1:
        raise ValueError(f"{what}, so that copies={copies} would be the same text {copies} times; {remedy}")


class _ClassAware(_Method):
    classes: Literal["ignore", "match"] = "ignore"
    """``match``: a fill has the class of its marker, or of the sidecar's label where the marker is ``[MASK]``, checked
    by a tagger (see ``class_check``)."""
    class_check: ClassCheck = ClassCheck()
    """How it is checked."""


class _MaskedLanguageModelMethod(_ClassAware):
    uses_filler: ClassVar[bool] = True
    batch_sentences: int = Field(default=64, ge=1)
    """Sentences per forward pass."""
    order: OrderName = "left_to_right"
    """In which order a masked language model fills the markers of a sentence, and so which fills it sees: one after
    the other as in the paper; all of them in one pass, none seeing another; or the one that it is surest of first."""
    merge_markers: bool = True
    """Whether a run of consecutive markers is merged into one before filling, as in the paper."""
    right_context: RightContext = RightContext()
    """What a causal language model does besides reading from left to right."""
    forbid_original: bool = False
    """Whether the word that was masked may never be its own substitute; needs the sidecar and a method that draws from
    all words, and leaks a bit for each place (see ``slot_originals``)."""


def _refuse_forbidding(what: str) -> None:
    raise ValueError(
        f"forbid_original is for methods that draw from all their words, and {what}, so that anyone who fills the "
        "masked text again sees at which places another word stands, and which word was avoided there: the masked "
        "one; leave forbid_original out, or use sample, log_linear or unigram"
    )


class Top1(_MaskedLanguageModelMethod):
    """The filler's best word."""

    title: ClassVar[str] = "Top-1"
    colour: ClassVar[int | None] = 2
    sentence: ClassVar[str] = "The filler’s best word, left to right."
    kind: Literal["top_1"]

    @model_validator(mode="after")
    def _draws_nothing(self) -> "Top1":
        if self.forbid_original:
            _refuse_forbidding("top_1 takes the best one")
        _refuse_copies(self.copies, "top_1 takes the best word", "use top_k, sample or log_linear, or leave copies out")
        return self


class TopK(_MaskedLanguageModelMethod):
    """A random one of the K best words, drawn again while it is on the list of kept words."""

    title: ClassVar[str] = "Top-K"
    colour: ClassVar[int | None] = 3
    sentence: ClassVar[str] = "A random one of the filler’s K best, drawn again while it is on the list of kept words."
    kind: Literal["top_k"]
    k: int = Field(default=10, ge=1)
    """K: candidates per marker."""

    @model_validator(mode="after")
    def _hides_what_is_forbidden(self) -> "TopK":
        if self.forbid_original:
            _refuse_forbidding("top_k takes the one of the k best that is off the list where there is no second")
        if self.k == 1:
            _refuse_copies(self.copies, "top_k with k=1 takes the best word", "raise k, or leave copies out")
        return self


class Sample(_MaskedLanguageModelMethod):
    """A draw from the filler's whole distribution over words that are not on the list of kept words."""

    title: ClassVar[str] = "Sample"
    colour: ClassVar[int | None] = 4
    sentence: ClassVar[str] = "A draw from the filler’s whole distribution off the list; not in the paper."
    kind: Literal["sample"]
    temperature: float = Field(default=1.0, gt=0)
    """Below 1 sharpens the distribution, above 1 flattens it."""


class LogLinearWeights(Settings):
    """Weights of what ``log_linear`` knows of a word; ``null`` is learned from generic text, or follows from what is
    learned (see ``prior`` and ``choices.log_linear``)."""

    filler: float | None = None
    """Of the log-probability that the filler gives the word in its context."""
    frequency: float | None = None
    """Of the log of its frequency in the word counts."""
    average: float | None = None
    """Of the log of its mean probability over places of generic text, with a minus sign: what the filler always says
    is no news."""


_MOST_NOISE = 100.0


class NoisyCounts(Settings):
    """How the masked words are counted where ``prior`` is ``counted`` (see ``counted_frequencies``).

    The fill is then made of the masked text, public data, the seed and the noisy counts, and of nothing else:
    epsilon is about the masked words of a line or document, for those who have masked text, fill and report.

    Noise moves a count by 2 L / epsilon places on the average, by 100 at most: with more of it only words that hundreds
    of units have stand out at all, and the time that ``count_posterior`` takes grows as it does: at 100, a minute or
    two for 76,000 words.
    """

    epsilon: float = Field(default=4.0, ge=0.02, le=64)
    """Of differential privacy, for a unit: other words behind its markers change the probability of no fill by more
    than a factor of exp(epsilon). At 0.02 one word of a unit has all the noise that is allowed; at 64 there
    is as good as none."""
    unit: Literal["line", "document"] = "line"
    """Whose words epsilon protects: those of a line, or of all lines of a document (``--documents``), which may be a
    conversation or what one person wrote."""
    words_per_unit: int = Field(default=1, ge=1, le=1000)
    """L: so many masked words of a unit are counted at most. More of them need more noise: L is 50 epsilon at most."""
    names: Literal["leave_out", "count"] = "leave_out"
    """Whether words that public text writes with a capital nearly always are counted one by one. What a thousand lines
    name is not hidden by the noise that hides one of them."""

    @model_validator(mode="after")
    def _noise_leaves_something(self) -> "NoisyCounts":
        noise = 2 * self.words_per_unit / self.epsilon
        if noise > _MOST_NOISE * (1 + 1e-9):
            raise ValueError(
                f"words_per_unit={self.words_per_unit} with epsilon={self.epsilon:g} moves each count by {noise:,.0f} "
                f"places on the average, and {_MOST_NOISE:.0f} are allowed; lower words_per_unit to "
                f"{max(1, int(self.epsilon * _MOST_NOISE / 2 + 1e-9))}, or raise epsilon to "
                f"{2 * self.words_per_unit / _MOST_NOISE:g}"
            )
        return self


class _CountingMethod(_ClassAware):
    counts: NoisyCounts | None = None
    """How masked words are counted for ``prior: counted``, and for nothing else."""

    @model_validator(mode="before")
    @classmethod
    def _counts_have_defaults(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("prior") == "counted" and values.get("counts") is None:
            return {**values, "counts": {}}
        return values

    @model_validator(mode="after")
    def _counts_are_of_use(self) -> "_CountingMethod":
        prior = getattr(self, "prior", None)
        if self.counts is not None and prior != "counted":
            raise ValueError(
                f"counts is for prior 'counted', and prior is {prior!r}; leave counts out, or change prior"
            )
        return self

    @model_validator(mode="after")
    def _epsilon_is_of_the_fill(self) -> "_CountingMethod":
        if getattr(self, "prior", None) == "counted":
            if getattr(self, "forbid_original", False):
                raise ValueError(
                    "prior 'counted' with forbid_original=True: epsilon would not hold for the fill, which would say "
                    "of each place a word that was not masked there; leave forbid_original out, or take prior 'domain'"
                )
            if self.classes == "match":
                raise ValueError(
                    "prior 'counted' with classes='match': epsilon would not hold for the fill, which would have the "
                    "classes and forms of the masked words; leave classes out, or take prior 'domain'"
                )
        return self


class LogLinear(_CountingMethod):
    """A draw that weighs the filler's probabilities against how frequent words are."""

    uses_filler: ClassVar[bool] = True
    title: ClassVar[str] = "Log-linear"
    sentence: ClassVar[str] = (
        "The filler’s probability, less its own prior, times the frequency of words in a domain like this one; "
        "not in the paper."
    )
    kind: Literal["log_linear"]
    order: OrderName = "left_to_right"
    """In which order the markers of a sentence are filled, as for the other methods."""
    weights: LogLinearWeights = LogLinearWeights()
    """How much each of these counts."""
    beyond_vocabulary: bool = False
    """Whether words that the filler has not as one piece are drawn too, by their share of the frequency (see
    ``choices.beyond_vocabulary``)."""
    batch_sentences: int = Field(default=64, ge=1)
    """Sentences per forward pass."""
    merge_markers: bool = True
    """Whether a run of consecutive markers is merged into one before filling, as in the paper."""
    forbid_original: bool = False
    """Whether the word that was masked may never be its own substitute, as for the other methods."""
    tuning_places: int = Field(default=1000, ge=1)
    """At most so many masked words of generic text are guessed to learn the weights."""
    tuning_share: float = Field(default=0.15, gt=0, lt=1)
    """Share of the words of generic text to mask where the technique has no list of kept words."""
    tuning_seed: int = Field(default=1, ge=0)
    """Seed of their choice, apart from the seed of the fill."""
    prior: Literal["word_counts", "domain", "counted", "tuning_text"] = "word_counts"
    """How frequent words are taken to be where nothing is known of the context: as in the word counts; as in the
    private domain, by generic text that is like what was not masked (see ``domain_frequencies``); the same, and as
    noisy counts of the masked words say (see ``counted_frequencies``; needs the sidecar); or as learned, for private
    text that is like the tuning text."""
    prior_steps: int = Field(default=0, ge=0, le=100)
    """How many EM steps adjust the frequencies of words to the masked text (Saerens et al. 2002); 0: none."""
    prior_places: int = Field(default=3000, ge=1)
    """From at most so many of its places; ``prior: counted`` looks at as many, so that the fills have its counts."""
    prior_smoothing: float = Field(default=1000.0, gt=0)
    """The generic frequencies count as much as so many places."""

    @model_validator(mode="after")
    def _one_way_to_find_frequencies(self) -> "LogLinear":
        if self.prior == "counted" and self.prior_steps:
            raise ValueError(
                "prior 'counted' writes words as often as they were counted, and "
                f"prior_steps={self.prior_steps} changes that by what the filler likes; leave prior_steps out, or take "
                "prior 'domain'"
            )
        return self

    @model_validator(mode="after")
    def _classes_are_matched_among_candidates(self) -> "LogLinear":
        if self.beyond_vocabulary and self.classes == "match":
            raise ValueError(
                "beyond_vocabulary=True draws words whose class nothing says, and classes='match' wants a class; leave "
                "one of the two out"
            )
        return self


class Free(_ClassAware):
    """A causal language model writes the whole sentence, and its words at the markers are taken (paper 3.2)."""

    title: ClassVar[str] = "Free"
    sentence: ClassVar[str] = "A causal language model writes the whole sentence; its words at the markers are taken."
    uses_filler: ClassVar[bool] = True
    kind: Literal["free"]
    batch_sentences: int = Field(default=64, ge=1)
    """Sentences per forward pass."""
    merge_markers: bool = True
    """Whether a run of consecutive markers is merged into one before filling."""
    attempts: int = Field(default=2, ge=0)
    """How often a sentence is written again, now by chance, where the best sentence has other words than the known ones
    or not one word for each marker."""
    temperature: float = Field(default=0.7, gt=0)
    """Of these further attempts."""
    fallback: Literal["constrained", "unigram"] = "constrained"
    """What fills a sentence when all attempts have failed: the same model with the known words forced, or words off the
    list of kept words by their frequency in the word counts."""
    right_context: RightContext = RightContext()
    """Of the constrained fallback."""
    forbid_original: bool = False
    """Not allowed: the first sentence is written without chance."""

    @model_validator(mode="after")
    def _draws_nothing(self) -> "Free":
        if self.forbid_original:
            _refuse_forbidding("free writes the model's best sentence")
        _refuse_copies(
            self.copies,
            "free takes the model's best sentence",
            "use top_k or sample, where the known words are forced, or leave copies out",
        )
        return self


class Unigram(_CountingMethod):
    """Control without context: a word off the list, drawn by its frequency in the generic corpus."""

    title: ClassVar[str] = "Unigram"
    colour: ClassVar[int | None] = 5
    sentence: ClassVar[str] = "Control: a word off the list by its frequency, without any context; not in the paper."
    uses_filler: ClassVar[bool] = False
    kind: Literal["unigram"]
    prior: Literal["word_counts", "domain", "counted"] = "word_counts"
    """By its frequency in generic text, in the private domain (see ``domain_frequencies``), or by noisy counts of the
    masked words (see ``counted_frequencies``; needs the sidecar)."""
    merge_markers: bool = True
    """Whether a run of consecutive markers is merged into one before filling, as for the other methods."""
    forbid_original: bool = False
    """Whether the word that was masked may never be its own substitute, as for the other methods."""


class Surrogate(_Method):
    """Names, places and figures from gazetteers by the class of the marker, as anonymisers write them; no model."""

    title: ClassVar[str] = "Surrogate"
    sentence: ClassVar[str] = "Made-up values of the marker’s class, without a model; not in the paper."
    uses_filler: ClassVar[bool] = False
    classes: ClassVar[str] = "ignore"
    """A surrogate is of its class already."""
    kind: Literal["surrogate"]
    forbid_original: bool = False
    """Refused: surrogates that keep clear of their original tell it together (decision 0044)."""
    consistent_within: Literal["line", "document", "corpus"] = "line"
    """Where the same original gets the same surrogate. ``document`` and ``corpus``: everybody sees which places speak
    of the same thing (see ``surrogate``)."""
    merge_markers: bool = False
    """Whether a run of consecutive markers is merged into one; a name of two words is one surrogate of two words."""

    @model_validator(mode="after")
    def _copies_differ(self) -> "Surrogate":
        if self.forbid_original:
            raise ValueError(
                "several surrogates that are never the original tell it by what is missing; leave forbid_original out"
            )
        if self.consistent_within != "line":
            _refuse_copies(
                self.copies,
                f"consistent_within={self.consistent_within!r} gives a word the same surrogate in each of them",
                "set consistent_within: line, or leave copies out",
            )
        return self


FillingSettings = Annotated[Top1 | TopK | Sample | LogLinear | Free | Unigram | Surrogate, Field(discriminator="kind")]
