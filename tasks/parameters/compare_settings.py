"""The section ``compare``: the compared data sets, techniques, methods and models."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tasks.language_model.settings import DifferentialPrivacy
from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings, SourcePath
from tasks.settings.seeds import Seed

Baseline = Literal["baseline0", "baseline1", "redacted", "dropped"]
"""Adaptations on the masked text itself: the paper's two (4.2), plain redaction, and the lines without a marker."""


class Fills(Settings):
    """Fills of one filler, or of none: each method fills the masked text of each technique, once per seed."""

    filler: str | None = None
    """A key of ``fillers`` or ``tuned_fillers``; left out for controls, the methods without a model."""
    methods: list[str] = Field(min_length=1)
    """Keys of ``filling``: ways to choose among its candidates."""
    techniques: list[str] | None = Field(default=None, min_length=1)
    """The techniques of ``compare.techniques`` to fill, if the filler is too slow for all (default: all)."""
    audited: list[str] = Field(default_factory=list)
    """The ones of ``methods`` whose text and language model are attacked; a twin of the model is trained for that."""

    @model_validator(mode="after")
    def _audited_are_compared(self) -> Self:
        if others := [name for name in self.audited if name not in self.methods]:
            raise ValueError(f"audited: {others[0]!r} is none of methods ({', '.join(self.methods)})")
        return self


class Conclusion(Settings):
    """Test of a labelled corpus: is the association of language and label still there after masking and filling?"""

    languages: Languages = Field(min_length=2)
    """Languages of the corpus (ISO 639-1); the test is on each label's share of lines mainly in the first one."""
    language_labels: SourcePath | None = None
    """File of lines whose words have languages, for training, as for ``palimpsest languages --labels``."""


class CompareSettings(Settings):
    """The dimensions of the experiment, from which its cells follow."""

    datasets: list[str] = Field(min_length=1)
    """Private corpora, keys of ``corpora``."""
    techniques: list[str] = Field(min_length=1)
    """Masking techniques, keys of ``masking``."""
    baselines: list[Baseline]
    """Adaptations on the masked text itself, without a fill."""
    private: dict[str, DifferentialPrivacy] = Field(default_factory=dict)
    """Adaptations on the raw text with DP-SGD, next to Oracle, by the names of their cells; once per seed. For
    ``language_model.kind: transformer``."""
    fills: list[Fills]
    """Fills of the masked text, in the order of the tables. A tuned filler is fine-tuned on each masked corpus first,
    after its base."""
    seeds: list[Seed] = Field(min_length=1)
    """One complete repetition of filling and adaptation per seed."""
    unlearned: list[str] = Field(default_factory=list)
    """Unlearning methods, keys of ``unlearning.methods``, to test on each dataset, once per seed."""
    conclusions: dict[str, Conclusion] = Field(default_factory=dict)
    """Tests by data set of ``datasets`` whose corpus has a ``label_field``."""
    speech_datasets: list[str] = Field(default_factory=list)
    """The ones of ``datasets`` with speech, keys of ``speech.corpora``: they have word error rates too."""
    speech_techniques: list[str] | None = Field(default=None, min_length=1)
    """The ones of ``techniques`` with word error rates, if decoding with all takes too long (default: all)."""
    rescored_datasets: list[str] = Field(default_factory=list)
    """Others of ``datasets``, with n-best lists of another recogniser, keys of ``speech.nbest``: their word error rates
    come from rescoring."""
    recognisers: list[str] = Field(default_factory=list, max_length=1)
    """Name of the recogniser to train if a dataset has speech, a folder in ``models``; empty: ``models/recogniser`` is
    used as it is."""
    taggers: list[str]
    """Taggers to train, keys of ``taggers``."""
    detectors: list[str]
    """Masking techniques to evaluate on labelled text, keys of ``masking``."""
    gold_sets: list[str]
    """Labelled texts, keys of ``masking_evaluation.gold_sets``."""

    @property
    def recognised_techniques(self) -> list[str]:
        """The techniques with word error rates."""
        return [name for name in self.techniques if name in (self.speech_techniques or self.techniques)]

    def techniques_of(self, fills: Fills) -> list[str]:
        """The techniques that an entry of ``fills`` fills, in the order of the tables."""
        return [name for name in self.techniques if fills.techniques is None or name in fills.techniques]
