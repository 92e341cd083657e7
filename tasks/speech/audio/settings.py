"""Settings of recordings: where they come from and in which form."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tasks.languages.word_lists import Languages
from tasks.settings.base import Settings, SourcePath
from tasks.settings.seeds import Seed
from tasks.speech.synthesis.espeak import PITCH_LIMITS, RATE_LIMITS

VoiceSet = Literal["train", "dev", "test"]
NoiseKind = Literal["white", "pink", "babble"]


class SynthesisSettings(Settings):
    """Which sentences are spoken, by which voices, in what noise. The paper has none: it uses LibriSpeech and WSJ."""

    sentences: int | None = Field(default=None, ge=1)
    """At most so many sentences, drawn from the text by the seed; ``null`` for all."""
    minimum_words: int = Field(default=1, ge=1)
    """Shorter sentences are left out and counted."""
    maximum_words: int = Field(default=40, ge=1)
    """Longer sentences are left out and counted."""
    voice_set: VoiceSet = "test"
    """``train``, ``dev`` or ``test``: sets of voices that share no accent and no timbre."""
    minimum_rate: int = Field(default=140, ge=RATE_LIMITS[0], le=RATE_LIMITS[1])
    """Slowest speech, in words a minute."""
    maximum_rate: int = Field(default=200, ge=RATE_LIMITS[0], le=RATE_LIMITS[1])
    """Fastest speech, in words a minute."""
    minimum_pitch: int = Field(default=35, ge=PITCH_LIMITS[0], le=PITCH_LIMITS[1])
    """Lowest shift of the voice's own pitch, on eSpeak NG's scale from 0 to 99; 50 leaves it."""
    maximum_pitch: int = Field(default=65, ge=PITCH_LIMITS[0], le=PITCH_LIMITS[1])
    """Highest shift of the voice's own pitch."""
    minimum_pitch_range: int = Field(default=30, ge=PITCH_LIMITS[0], le=PITCH_LIMITS[1])
    """Least movement of the pitch, on eSpeak NG's scale from 0 (monotone) to 99."""
    maximum_pitch_range: int = Field(default=70, ge=PITCH_LIMITS[0], le=PITCH_LIMITS[1])
    """Most movement of the pitch."""
    noise_kinds: list[NoiseKind] = Field(default=["white", "pink", "babble"])
    """Kinds of noise, one of which is drawn for each utterance; ``babble`` has the spectrum of speech and moves like
    it. Empty for no noise."""
    minimum_signal_to_noise: float = Field(default=10.0, ge=-20, le=100)
    """Loudest noise, in dB below the speech."""
    maximum_signal_to_noise: float = Field(default=25.0, ge=-20, le=100)
    """Softest noise, in dB below the speech."""
    sample_rate: int = Field(default=16000, ge=8000, le=48000)
    """Samples in a second of what is written."""
    languages: Languages = Field(default=[], exclude_if=lambda languages: not languages)
    """Two languages or more in which the text is written, such as ``[en, es]``: each word is spoken by a voice of the
    language that it is told to have. Empty: all is English."""
    seed: Seed = 1
    """Seed of the sentences, voices and noise."""

    @model_validator(mode="after")
    def _limits_in_order(self) -> Self:
        for name in ("words", "rate", "pitch", "pitch_range", "signal_to_noise"):
            low, high = getattr(self, f"minimum_{name}"), getattr(self, f"maximum_{name}")
            if low > high:
                raise ValueError(f"minimum_{name} ({low!r}) is above maximum_{name} ({high!r})")
        return self


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


class KaldiSpeech(_Recordings):
    """A data folder of Kaldi's, as SEAME and MUCS come with or recipes make it; segments are cut out."""

    kind: Literal["kaldi"]
    source: SourcePath
    """Folder that holds ``text`` and ``wav.scp``, and ``segments`` and ``utt2spk`` where they are needed."""


class TimedLinesSpeech(_Recordings):
    """Lines with their times in recordings of whole conversations, such as Bangor Miami's, which are cut."""

    kind: Literal["timed_lines"]
    source: SourcePath
    """File of JSON lines with ``id``, ``document``, ``text``, ``ms`` (begin and end in milliseconds) and, if they are
    known, ``speaker`` and ``languages`` (a letter or code for each white-space word)."""
    recordings: str | None = None
    """Folder of the recordings, ``DOCUMENT.wav``, ``.flac`` or ``.mp3``; ``null``: that of the lines."""


class ParquetSpeech(_Recordings):
    """A data set of speech as Hugging Face's hub has it, such as ASCEND (Mandarin and English, CC BY-SA 4.0), whose
    columns are named below: Parquet files that hold the recordings themselves, which are written out."""

    kind: Literal["parquet"]
    source: SourcePath
    """One of the files, such as ``main/test-00000-of-00001.parquet``, or a folder of them: all of its parts."""
    name: str = "id"
    """Column of the utterances' names."""
    text: str = "transcription"
    """Column of what was said."""
    speaker: str | None = "original_speaker_id"
    """Column of the speakers; ``null``: not known."""


class SyntheticSpeech(Settings):
    """Speech synthesised from a text; marked as synthetic wherever it goes."""

    kind: Literal["synthetic"]
    source: SourcePath
    """UTF-8 text, one sentence a line."""
    synthesis: SynthesisSettings = SynthesisSettings()


RecordedSpeech = (
    ManifestSpeech
    | LibriSpeech
    | WallStreetJournalSpeech
    | SmsWsjSpeech
    | KaldiSpeech
    | TimedLinesSpeech
    | ParquetSpeech
)
SpeechSettings = Annotated[RecordedSpeech | SyntheticSpeech, Field(discriminator="kind")]
"""Recordings with their words, by ``kind``."""
