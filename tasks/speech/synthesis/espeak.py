"""Speech synthesis by eSpeak NG in this process, from the library and voices of the package ``espeakng-loader``.

The same text and voice give the same samples, whatever was spoken before. eSpeak NG keeps state between utterances
that no call resets: the phase of the wave generator, the position in its table of flutter, and the C library's random
numbers. Lengths then differ by some samples. So the library is loaded again for each utterance and its random numbers
are seeded, which costs two to six milliseconds. Therefore no other part of the process may hold the library.
"""

import ctypes
import os
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import ResourceError, SpeechError

if TYPE_CHECKING:
    import numpy

SAMPLE_RATE = 22050
"""Sample rate of eSpeak NG in Hz."""

_SYNCHRONOUS = 2
_DO_NOT_EXIT = 0x8000
_UTF8 = 1
_RATE, _VOLUME, _PITCH, _PITCH_RANGE = 1, 2, 3, 4
_QUIET = 25
"""Volume at which no voice is clipped; the library's default is 100."""
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


@dataclass(frozen=True, slots=True)
class Voice:
    """A speaker with a speaking style."""

    accent: str
    """Variety of a language, an eSpeak NG file such as ``en-US``, ``en-GB-x-rp`` or ``es-419`` (``en`` is British
    English)."""
    timbre: str
    """Vocal tract and larynx, a file of eSpeak NG's ``voices/!v`` such as ``f3`` or ``Andy``."""
    rate: int = 175
    """Words in a minute, 80 to 450."""
    pitch: int = 50
    """Shift of the timbre's pitch, 0 to 99; 50 is none."""
    pitch_range: int = 50
    """Range of the pitch, from 0 (monotone) to 99."""

    @property
    def name(self) -> str:
        """The speaker: accent and timbre, such as ``en-US+f3``."""
        return f"{self.accent}+{self.timbre}"


def _installed() -> tuple[str, str]:
    """The library and its data; ``ResourceError`` without the package ``espeakng-loader``."""
    try:
        import espeakng_loader
    except ImportError:
        raise ResourceError(
            "speech synthesis needs the package espeakng-loader; run: pip install 'palimpsest[synthesis]'"
        ) from None
    return espeakng_loader.get_library_path(), espeakng_loader.get_data_path()


@cache
def _accents(data: str) -> dict[str, str]:
    """The file of each variety of a language."""
    languages = Path(data, "lang")
    files = sorted(path for path in languages.rglob("*") if path.is_file())
    return {path.name: path.relative_to(languages).as_posix() for path in files}


def accents_of(language: str) -> list[str]:
    """Varieties of a language (``es``: ``es``, ``es-419``); ``SpeechError`` if there is none."""
    _, data = _installed()
    found = [name for name in _accents(data) if name == language or name.startswith(f"{language}-")]
    if not found:
        raise SpeechError(
            f"eSpeak NG has no voice for the language {language!r}; its folder "
            f"{os.path.join(data, 'lang')!r} lists its voices"
        )
    return found


def speak(text: str, voice: Voice) -> "tuple[numpy.ndarray, dict[int, int]]":
    """Speech, int16 (samples,) at 22,050 Hz, empty if there is nothing to speak; and for the offset of each word in the
    text, the sample at which it begins. Two words that the library speaks as one (``of the``) have one entry.

    Raises ``SpeechError`` if it cannot speak with the voice, ``ResourceError`` if the library or its data is missing.
    For an unknown timbre eSpeak NG uses its default.
    """
    import numpy

    file, data = _installed()
    with _lock:
        library = _loaded(file, data)
        try:
            speech, words = _spoken(library, text, voice, _accents(data)[voice.accent])
        finally:
            library.espeak_Terminate()
            _unload(library)
    return numpy.frombuffer(speech, dtype=numpy.int16), words


def _loaded(file: str, data: str) -> ctypes.CDLL:
    library = ctypes.CDLL(file)
    if library.espeak_Initialize(_SYNCHRONOUS, 0, os.fsencode(data), _DO_NOT_EXIT) != SAMPLE_RATE:
        _unload(library)
        raise ResourceError(
            f"eSpeak NG cannot read its data in {data!r}; install espeakng-loader again, into a folder "
            "with a path of fewer than 100 characters"
        )
    return library


def _spoken(library: ctypes.CDLL, text: str, voice: Voice, accent: str) -> tuple[bytes, dict[int, int]]:
    pieces: list[bytes] = []
    words: dict[int, int] = {}

    def keep(samples: "ctypes._Pointer[ctypes.c_short]", count: int, events: "ctypes._Pointer[_Event]") -> int:
        if samples and count:
            pieces.append(ctypes.string_at(samples, 2 * count))
        place = 0
        while (event := events[place]).type != _LAST_EVENT:
            if event.type == _WORD:
                # If two words begin at one place, the library means the first.
                words.setdefault(event.text_position - 1, event.sample)
            place += 1
        return 0

    callback = _Callback(keep)
    library.espeak_SetSynthCallback(callback)
    if library.espeak_SetVoiceByName(f"{accent}+{voice.timbre}".encode()):
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
