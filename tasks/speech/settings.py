"""The section ``speech`` of ``params.yaml``: recordings, the recogniser, and how language models join it."""

from pydantic import Field

from tasks.corpora.sources.mixture import AnyCorpus
from tasks.settings.base import Settings
from tasks.speech.audio.settings import SpeechSettings
from tasks.speech.recogniser.settings import RecogniserSettings
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
    """What the weights are tuned on."""
    test: SpeechSettings
    """What is measured, once."""


class SpeechSection(Settings):
    """``speech`` in ``params.yaml``."""

    text: AnyCorpus
    """Text that the recogniser's training speech is synthesised from."""
    recogniser: RecogniserSettings
    corpora: dict[str, SpokenCorpus] = Field(default_factory=dict)
    """Recordings by the name of the private corpus whose language they are in."""
    search: SearchSettings = SearchSettings()
    fusion: FusionSettings = FusionSettings()
    nbest: dict[str, NbestCorpus] = Field(default_factory=dict)
    """Lists of another recogniser by the name of the private corpus whose language they are in."""
    rescoring: RescoringSettings = RescoringSettings()
    """How language models choose among them."""
    word_errors: WordErrorSettings = WordErrorSettings()
