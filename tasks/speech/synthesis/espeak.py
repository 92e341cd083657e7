"""Speech from text by eSpeak NG, in this process, from the library and voices of the package ``espeakng-loader``.

The same text and voice give the same samples, whatever was spoken before. eSpeak NG keeps state between utterances
that no call resets (the phase of the wave generator, the position in its table of flutter, the C library's random
numbers), and lengths differ by some samples then. So the library is loaded anew for each utterance and its random
numbers are seeded; that costs two to six milliseconds. It also means that no other part of the process may hold the
library.
"""

import ctypes
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tasks.errors import ResourceError, SpeechError

if TYPE_CHECKING:
    import numpy

SAMPLE_RATE = 22050
"""Samples in a second of what eSpeak NG synthesises."""
RATE_LIMITS = (80, 450)
"""Words in a minute that eSpeak NG can speak."""
PITCH_LIMITS = (0, 99)

_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_UTF8 = 1
_RATE, _VOLUME, _PITCH, _PITCH_RANGE = 1, 2, 3, 4
_QUIET = 25
"""Volume at which no voice is clipped; 100 is the library's own."""
_SEED = 1
_lock = threading.Lock()
_WORD, _LAST_EVENT = 1, 0


class _Event(ctypes.Structure):
    """``espeak_EVENT`` of the library's ``speak_lib.h``."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


class Speech(NamedTuple):
    """A text spoken."""

    samples: "numpy.ndarray"
    """int16 (samples,) at 22,050 Hz."""
    words: dict[int, int]
    """Where words begin in the text, in characters, and the sample at which each begins. Two words that the library
    says as one (``of the``) have one entry."""


@dataclass(frozen=True, slots=True)
class Voice:
    """Who speaks, and how."""

    accent: str
    """Variety of a language, a file of eSpeak NG's such as ``en-US``, ``en-GB-x-rp`` or ``es-419`` (``en`` is British
    English)."""
    timbre: str
    """Vocal tract and larynx, a file of eSpeak NG's ``voices/!v`` such as ``f3`` or ``Andy``."""
    rate: int = 175
    """Words in a minute, 80 to 450."""
    pitch: int = 50
    """Shift of the timbre's own pitch, 0 to 99; 50 leaves it."""
    pitch_range: int = 50
    """How much the pitch moves, 0 (monotone) to 99."""

    @property
    def name(self) -> str:
        """The speaker: accent and timbre, ``en-US+f3``."""
        return f"{self.accent}+{self.timbre}"


class Synthesiser:
    """Speaks with eSpeak NG. Holds nothing open between utterances: it can be copied, pickled and forked."""

    def __init__(self) -> None:
        """Raises ``ResourceError`` where the package ``espeakng-loader`` is not installed."""
        try:
            import espeakng_loader
        except ImportError:
            raise ResourceError(
                "speech synthesis needs the package espeakng-loader; run: pip install 'palimpsest[synthesis]'"
            ) from None
        self._library = espeakng_loader.get_library_path()
        self._data = espeakng_loader.get_data_path()
        languages = Path(self._data, "lang")
        files = sorted(path for path in languages.rglob("*") if path.is_file())
        self._accents = {path.name: path.relative_to(languages).as_posix() for path in files}

    def speak(self, text: str, voice: Voice) -> "numpy.ndarray":
        """The text spoken, int16 (samples,) at 22,050 Hz; empty where there is nothing to speak.

        Raises what ``speak_words`` raises.
        """
        return self.speak_words(text, voice).samples

    def speak_words(self, text: str, voice: Voice) -> Speech:
        """The text spoken, and where its words begin.

        Raises ``SpeechError`` where it cannot speak with the voice, ``ResourceError`` where the library cannot be
        loaded. With a timbre that is not there eSpeak NG speaks with its default.
        """
        import numpy

        with _lock:
            library = self._load()
            try:
                speech, words = self._speak(library, text, voice)
            finally:
                library.espeak_Terminate()
                _unload(library)
        return Speech(numpy.frombuffer(speech, dtype=numpy.int16), words)

    def accents(self, language: str) -> list[str]:
        """Varieties of a language (``es``: ``es``, ``es-419``); ``SpeechError`` where there is none."""
        found = [name for name in self._accents if name == language or name.startswith(f"{language}-")]
        if not found:
            raise SpeechError(
                f"eSpeak NG has no voice for the language {language!r}; its folder "
                f"{os.path.join(self._data, 'lang')!r} lists what it has"
            )
        return found

    def _load(self) -> ctypes.CDLL:
        try:
            library = ctypes.CDLL(self._library)
        except OSError as error:
            raise ResourceError(f"eSpeak NG cannot be loaded ({error}); install espeakng-loader again") from None
        if library.espeak_Initialize(_SYNCHRONOUS, 0, os.fsencode(self._data), _DO_NOT_EXIT) != SAMPLE_RATE:
            _unload(library)
            raise ResourceError(
                f"eSpeak NG cannot read its data in {self._data!r}; install espeakng-loader again, into a folder "
                "with a path of fewer than 100 characters"
            )
        return library

    def _speak(self, library: ctypes.CDLL, text: str, voice: Voice) -> tuple[bytes, dict[int, int]]:
        pieces: list[bytes] = []
        words: dict[int, int] = {}

        def keep(samples: "ctypes._Pointer[ctypes.c_short]", count: int, events: "ctypes._Pointer[_Event]") -> int:
            if samples and count:
                pieces.append(ctypes.string_at(samples, 2 * count))
            place = 0
            while (event := events[place]).type != _LAST_EVENT:
                if event.type == _WORD:
                    # Of two words that begin at one place the library means the first.
                    words.setdefault(event.text_position - 1, event.sample)
                place += 1
            return 0

        callback = _Callback(keep)
        library.espeak_SetSynthCallback(callback)
        if library.espeak_SetVoiceByName(f"{self._accents[voice.accent]}+{voice.timbre}".encode()):
            raise SpeechError(f"eSpeak NG cannot speak with the voice {voice.name!r}")
        numbers = ((_RATE, voice.rate), (_VOLUME, _QUIET), (_PITCH, voice.pitch), (_PITCH_RANGE, voice.pitch_range))
        for parameter, number in numbers:
            library.espeak_SetParameter(parameter, number, 0)
        library.espeak_ng_SetRandSeed(_SEED)
        ctypes.CDLL(None).srand(_SEED)
        # A NUL ends the text and other control characters are commands to eSpeak NG.
        encoded = "".join(character if character.isprintable() else " " for character in text).encode() + b"\0"
        if library.espeak_Synth(encoded, ctypes.c_size_t(len(encoded)), 0, 1, 0, _UTF8, None, None):
            return b"", {}
        library.espeak_Synchronize()
        return b"".join(pieces), words


def _unload(library: ctypes.CDLL) -> None:
    import _ctypes

    _ctypes.dlclose(library._handle)
