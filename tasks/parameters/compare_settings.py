"""The section ``compare``: what is held against what."""

from typing import Literal

from pydantic import Field

from tasks.settings.base import Settings
from tasks.settings.seeds import Seed


class Tuning(Settings):
    """One filler to be fine-tuned on each masked corpus."""

    filler: str
    """The filler that comes out, a key of ``tuned_fillers``; its base's name with ``_tuned`` or ``_round_2`` behind."""
    base: str
    """The filler that it starts from; a large one may be there to be tuned alone (``large_techniques: []``)."""


class CompareSettings(Settings):
    """The dimensions of the experiment: what ``dvc.yaml`` builds its matrices from."""

    datasets: list[str] = Field(min_length=1)
    """Private corpora, keys of ``corpora``."""
    techniques: list[str] = Field(min_length=1)
    """Masking techniques, keys of ``masking``."""
    baselines: list[str]
    """Adaptation on the masked text itself: ``baseline0``, ``baseline1`` (paper 4.2)."""
    fillers: list[str]
    """Models that fill, keys of ``fillers``."""
    methods: list[str]
    """Ways to choose among a filler's candidates, keys of ``filling``."""
    language_model_methods: list[str] = Field(default_factory=list)
    """The same, for ways that ask the downstream language model too; their names begin with ``downstream``."""
    large_techniques: list[str] = Field(default_factory=list)
    """Those of ``techniques`` that the large fillers are for, which are too slow for all."""
    large_fillers: list[str] = Field(default_factory=list)
    """Other models that fill or are tuned, keys of ``fillers``."""
    large_methods: list[str] = Field(default_factory=list)
    """Ways to choose among their candidates, keys of ``filling``."""
    tunings: list[Tuning]
    """Fillers to fine-tune on each masked corpus (paper 3.2), from a base among ``fillers`` and ``large_fillers``."""
    tunings_again: list[Tuning]
    """Further rounds: the base is itself the filler of one of ``tunings`` or ``tunings_again``."""
    tuned_fillers: list[str]
    """Which of all these fill."""
    tuned_methods: list[str]
    """Ways to choose among their candidates, keys of ``filling``."""
    controls: list[str]
    """Ways to fill that use no model, keys of ``filling``."""
    seeds: list[Seed] = Field(min_length=1)
    """One complete repetition of filling and adaptation per seed."""
    speech_datasets: list[str] = Field(default_factory=list)
    """Those of ``datasets`` that have speech, keys of ``speech.corpora``: they have word error rates too."""
    rescored_datasets: list[str] = Field(default_factory=list)
    """Others of ``datasets``, which have n-best lists of another recogniser, keys of ``speech.nbest``: their word error
    rates come from rescoring."""
    recognisers: list[Literal["recogniser"]] = Field(default_factory=list)
    """``[recogniser]``: there is one to train; empty where no dataset has speech, or ``models/recogniser`` is yours."""
    taggers: list[str]
    """Taggers to train, keys of ``taggers``."""
    detectors: list[str]
    """Masking techniques that are held against labelled text, keys of ``masking``."""
    gold_sets: list[str]
    """Labelled texts, keys of ``masking_evaluation.gold_sets``."""
