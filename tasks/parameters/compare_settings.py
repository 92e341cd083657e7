"""The section ``compare``: what is held against what."""

from typing import Literal, Self

from pydantic import Field, model_validator

from tasks.language_model.settings import DifferentialPrivacy
from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings, SourcePath
from tasks.settings.seeds import Seed

Baseline = Literal["baseline0", "baseline1", "redacted", "dropped"]
"""Adaptations on the masked text itself: the paper's two (4.2), plain redaction, and the lines without a marker."""


class Fills(Settings):
    """Fills of one filler, or of none: what each technique masks is filled by each method, once per seed."""

    filler: str | None = None
    """A key of ``fillers`` or ``tuned_fillers``; left out for controls, the methods that use no model."""
    methods: list[str] = Field(min_length=1)
    """Ways to choose among its candidates, keys of ``filling``."""
    techniques: list[str] | None = Field(default=None, min_length=1)
    """Those of ``compare.techniques`` that it fills, where it is too slow for all (default: all)."""
    audited: list[str] = Field(default_factory=list)
    """Those of ``methods`` whose text and language model are attacked; a twin of the model is trained for that."""

    @model_validator(mode="after")
    def _audited_are_compared(self) -> Self:
        if others := [name for name in self.audited if name not in self.methods]:
            raise ValueError(f"audited: {others[0]!r} is none of methods ({', '.join(self.methods)})")
        return self


class Conclusion(Settings):
    """Of a labelled corpus: does it still show, after masking and filling, which language goes with which label?"""

    languages: Languages = Field(min_length=2)
    """Those of the corpus (ISO 639-1); of each label the share of lines that are mainly in the first one is tested."""
    language_labels: SourcePath | None = None
    """Lines whose words have languages, to learn these from, as for ``palimpsest languages --labels``."""


class CompareSettings(Settings):
    """The dimensions of the experiment: which cells there are follows from them."""

    datasets: list[str] = Field(min_length=1)
    """Private corpora, keys of ``corpora``."""
    techniques: list[str] = Field(min_length=1)
    """Masking techniques, keys of ``masking``."""
    baselines: list[Baseline]
    """Adaptations on the masked text itself, without a fill."""
    private: dict[str, DifferentialPrivacy] = Field(default_factory=dict)
    """Adaptations on the raw text with DP-SGD, beside Oracle, by what their cells are called; once per seed. For
    ``language_model.kind: transformer``."""
    fills: list[Fills]
    """What fills the masked text, in the order of the tables. A tuned filler is fine-tuned on each masked corpus first,
    and its base is made for it."""
    seeds: list[Seed] = Field(min_length=1)
    """One complete repetition of filling and adaptation per seed."""
    unlearned: list[str] = Field(default_factory=list)
    """Ways to make a model forget, keys of ``unlearning.methods``, that are tried on each dataset, once per seed."""
    conclusions: dict[str, Conclusion] = Field(default_factory=dict)
    """Those of ``datasets`` whose corpus has a ``label_field``, and what is tested on them."""
    speech_datasets: list[str] = Field(default_factory=list)
    """Those of ``datasets`` that have speech, keys of ``speech.corpora``: they have word error rates too."""
    speech_techniques: list[str] | None = Field(default=None, min_length=1)
    """Those of ``techniques`` that have word error rates, where decoding with all takes too long (default: all)."""
    rescored_datasets: list[str] = Field(default_factory=list)
    """Others of ``datasets``, which have n-best lists of another recogniser, keys of ``speech.nbest``: their word error
    rates come from rescoring."""
    recognisers: list[str] = Field(default_factory=list, max_length=1)
    """Name of the recogniser that is trained where a dataset has speech, a folder in ``models``; empty where
    ``models/recogniser`` is yours."""
    taggers: list[str]
    """Taggers to train, keys of ``taggers``."""
    detectors: list[str]
    """Masking techniques that are held against labelled text, keys of ``masking``."""
    gold_sets: list[str]
    """Labelled texts, keys of ``masking_evaluation.gold_sets``."""

    def techniques_of(self, fills: Fills) -> list[str]:
        """The techniques that an entry of ``fills`` fills, in the order of the tables."""
        return [name for name in self.techniques if fills.techniques is None or name in fills.techniques]
