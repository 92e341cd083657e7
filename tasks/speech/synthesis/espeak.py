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
from typing import TYPE_CHECKING, Any

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
_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Voice:
    """Who speaks, and how."""

    accent: str
    """Variety of English, a file of eSpeak NG's such as ``en-US`` or ``en-GB-x-rp`` (``en`` is British English)."""
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

    def speak(self, text: str, voice: Voice) -> "numpy.ndarray":
        """The text spoken, int16 (samples,) at 22,050 Hz; empty where there is nothing to speak.

        Raises ``SpeechError`` where the voice is not there, ``ResourceError`` where the library cannot be loaded.
        """
        import numpy

        self._check(voice)
        with _lock:
            library = self._load()
            try:
                speech = self._speak(library, text, voice)
            finally:
                library.espeak_Terminate()
                _unload(library)
        return numpy.frombuffer(speech, dtype=numpy.int16)

    def _check(self, voice: Voice) -> None:
        # eSpeak NG speaks with its default where a timbre is not there.
        timbre = os.path.join(self._data, "voices", "!v", voice.timbre)
        accent = os.path.join(self._data, "lang", "gmw", voice.accent)
        for kind, value, path in (("timbre", voice.timbre, timbre), ("accent", voice.accent, accent)):
            if not value or os.sep in value or not os.path.isfile(path):
                folder = os.path.dirname(path)
                raise SpeechError(f"eSpeak NG has no {kind} {value!r}; its folder {folder!r} lists what it has")

    def _load(self) -> Any:
        if _is_loaded(self._library):
            raise ResourceError(
                "another part of this process has loaded eSpeak NG, whose state would change the speech; synthesise "
                "in a process of its own"
            )
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

    @staticmethod
    def _speak(library: Any, text: str, voice: Voice) -> bytes:
        pieces: list[bytes] = []

        def keep(samples: Any, count: int, _events: Any) -> int:
            if samples and count:
                pieces.append(ctypes.string_at(samples, 2 * count))
            return 0

        callback = _Callback(keep)
        library.espeak_SetSynthCallback(callback)
        if library.espeak_SetVoiceByName(f"gmw/{voice.name}".encode()):
            raise SpeechError(f"eSpeak NG cannot speak with the voice {voice.name!r}")
        numbers = ((_RATE, voice.rate), (_VOLUME, _QUIET), (_PITCH, voice.pitch), (_PITCH_RANGE, voice.pitch_range))
        for parameter, number in numbers:
            library.espeak_SetParameter(parameter, number, 0)
        library.espeak_ng_SetRandSeed(_SEED)
        ctypes.CDLL(None).srand(_SEED)
        # A NUL ends the text and other control characters are commands to eSpeak NG.
        encoded = "".join(character if character.isprintable() else " " for character in text).encode() + b"\0"
        if library.espeak_Synth(encoded, ctypes.c_size_t(len(encoded)), 0, 1, 0, _UTF8, None, None):
            return b""
        library.espeak_Synchronize()
        return b"".join(pieces)


def _is_loaded(path: str) -> bool:
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    _unload(library)
    return True


def _unload(library: Any) -> None:
    import _ctypes

    _ctypes.dlclose(library._handle)
