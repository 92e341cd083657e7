"""The section ``speech`` of ``params.yaml``: recordings, the recogniser, fusion and rescoring."""

from pydantic import Field

from tasks.corpora.sources.mixture import AnyCorpus
from tasks.settings.base import Settings
from tasks.speech.audio.settings import SpeechSettings
from tasks.speech.recogniser.settings import TrainedRecogniser
from tasks.speech.rescoring.settings import (
    FusionSettings,
    NbestCorpus,
    RescoringSettings,
    SearchSettings,
    WordErrorSettings,
)


class SpokenCorpus(Settings):
    """Recordings of one private corpus."""

    dev: SpeechSettings
    """Speech that the weights are tuned on."""
    test: SpeechSettings
    """Speech that is measured, once."""


class SpeechSection(Settings):
    """The section ``speech`` of ``params.yaml``."""

    text: AnyCorpus
    """Source text of the recogniser's synthesised training speech."""
    recogniser: TrainedRecogniser
    corpora: dict[str, SpokenCorpus] = Field(default_factory=dict)
    """Recordings by the name of the private corpus in the same language."""
    search: SearchSettings = SearchSettings()
    fusion: FusionSettings = FusionSettings()
    nbest: dict[str, NbestCorpus] = Field(default_factory=dict)
    """Lists of another recogniser by the name of the private corpus in the same language."""
    rescoring: RescoringSettings = RescoringSettings()
    """Choice among these lists by language models."""
    word_errors: WordErrorSettings = WordErrorSettings()
