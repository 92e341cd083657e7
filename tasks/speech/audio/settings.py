"""Settings of recordings: sources and formats."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings, SourcePath, refuse_out_of_order
from tasks.settings.seeds import Seed

VoiceSet = Literal["train", "dev", "test"]


class SynthesisSettings(Settings):
    """Sentences, voices and noise of synthetic speech. The paper has none: it uses LibriSpeech and WSJ.

    The noise of an utterance is white, pink, or has the spectrum and the loudness changes of speech (babble).
    """

    sentences: int | None = Field(default=None, ge=1)
    """At most so many sentences, drawn from the text by the seed; ``null`` for all."""
    minimum_words: int = Field(default=1, ge=1)
    """Shorter sentences are left out and counted."""
    maximum_words: int = Field(default=40, ge=1)
    """Longer sentences are left out and counted."""
    voice_set: VoiceSet = "test"
    """``train``, ``dev`` or ``test``: sets of voices that share no accent and no timbre."""
    minimum_signal_to_noise: float = Field(default=10.0, ge=-20, le=100)
    """Loudest noise, in dB below the speech."""
    maximum_signal_to_noise: float = Field(default=25.0, ge=-20, le=100)
    """Softest noise, in dB below the speech."""
    languages: Languages = Field(default=[], exclude_if=lambda languages: not languages)
    """At least two languages of the text, such as ``[en, es]``: each word is spoken by a voice of its inferred
    language. Empty: all is English."""
    seed: Seed = 1
    """Seed of the sentences, voices and noise."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        refuse_out_of_order(self, "minimum_words", "maximum_words")
        refuse_out_of_order(self, "minimum_signal_to_noise", "maximum_signal_to_noise")
        return self


class _Recordings(Settings):
    maximum_seconds: float = Field(default=120.0, gt=0)
    """Longer recordings are left out and counted; LibriSpeech's longest is 35 s."""


class ManifestSpeech(_Recordings):
    """A user's own recordings, listed in a manifest."""

    kind: Literal["manifest"]
    source: SourcePath
    """File of JSON lines with ``utterance_id``, ``audio`` (relative to the manifest's folder) and ``text``; or a
    manifest of NeMo, or cuts of Lhotse."""


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
    """Folder that holds the discs' folders, and the recordings as ``.wav`` or ``.flac``."""
    folders: list[str] = Field(default_factory=list)
    """Names of folders, such as ``si_et_20``, to choose recordings below them; empty for all."""


class KaldiSpeech(_Recordings):
    """A Kaldi data folder, such as those of SEAME and MUCS or of recipes; segments are cut out."""

    kind: Literal["kaldi"]
    source: SourcePath
    """Folder that holds ``text`` and ``wav.scp``, and if needed ``segments`` and ``utt2spk``."""


class SyntheticSpeech(Settings):
    """Speech synthesised from a text; always marked as synthetic."""

    kind: Literal["synthetic"]
    source: SourcePath
    """UTF-8 text, one sentence a line."""
    synthesis: SynthesisSettings = SynthesisSettings()


RecordedSpeech = ManifestSpeech | LibriSpeech | WallStreetJournalSpeech | KaldiSpeech
SpeechSettings = Annotated[RecordedSpeech | SyntheticSpeech, Field(discriminator="kind")]
"""Recordings with their words, by ``kind``."""
