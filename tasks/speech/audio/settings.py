"""Settings of recordings: where they come from and in which form."""

from typing import Annotated, Literal

from pydantic import Field

from tasks.settings.base import Settings, SourcePath
from tasks.speech.synthesis.settings import SynthesisSettings


class _Recordings(Settings):
    maximum_seconds: float = Field(default=120.0, gt=0)
    """Longer recordings are left out and counted; LibriSpeech's longest is 35 s."""


class ManifestSpeech(_Recordings):
    """A user's own recordings, listed in a manifest."""

    kind: Literal["manifest"]
    source: SourcePath
    """File of JSON lines with ``utterance_id``, ``audio`` (relative to the manifest's folder) and ``text``."""


class LibriSpeech(_Recordings):
    """Read audiobooks (LibriSpeech, CC BY 4.0, openslr.org/12), unpacked as published."""

    kind: Literal["librispeech"]
    source: SourcePath
    """Folder that holds ``test-clean`` and so on, at any depth."""
    parts: list[str] = Field(default_factory=list)
    """Names of parts, such as ``test-clean``; empty for all that are there."""


class WallStreetJournalSpeech(_Recordings):
    """Read newspaper text (WSJ0 LDC93S6A, WSJ1 LDC94S13A; licensed by the LDC), recordings converted by the user."""

    kind: Literal["wsj"]
    source: SourcePath
    """Folder that holds the discs' folders; recordings as ``.wav`` or ``.flac`` in place of, or beside, ``.wv1``."""
    lists: list[str] = Field(default_factory=list)
    """The publisher's index files (``doc/indices/test/nvp/si_et_20.ndx``), relative to ``source``: only the
    utterances in them; empty for all. The paper's test utterances, WSJ eval92, are this one."""
    folders: list[str] = Field(default_factory=list)
    """Only recordings below folders of these names, such as ``si_et_20``; empty for all."""


class SmsWsjSpeech(_Recordings):
    """The lists of SMS-WSJ (github.com/fgnt/sms_wsj), and the recordings that it made from WSJ."""

    kind: Literal["sms_wsj"]
    source: SourcePath
    """Its ``sms_wsj.json``."""
    dataset: Literal["train_si284", "cv_dev93", "test_eval92"] = "test_eval92"
    """Which of its lists."""
    signal: Literal["original_source", "speech_source", "speech_reverberation_early"] = "original_source"
    """``original_source``: the WSJ utterance itself, once, though it is in several mixtures; ``speech_source``: the
    same padded to the length of each mixture; ``speech_reverberation_early``: with the room's early reflections. The
    mixture of two speakers is no input for a recogniser of one."""


class SyntheticSpeech(Settings):
    """Speech synthesised from a text; marked as synthetic wherever it goes."""

    kind: Literal["synthetic"]
    source: SourcePath
    """UTF-8 text, one sentence a line."""
    synthesis: SynthesisSettings = SynthesisSettings()


SpeechSettings = Annotated[
    ManifestSpeech | LibriSpeech | WallStreetJournalSpeech | SmsWsjSpeech | SyntheticSpeech, Field(discriminator="kind")
]
"""Recordings with their words, by ``kind``."""
