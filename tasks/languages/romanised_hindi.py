"""Romanised Hindi, as people type it in Latin letters, from words in Devanagari: code ``hi-Latn`` (BCP 47).

There is no standard spelling, so a word has several spellings, which share its published frequency. The inherent vowel
is left out at the end of a word. It is also left out between two consonants with vowels on their other sides, from
right to left (schwa deletion; Ohala 1983, "Aspects of Hindi Phonology").
"""

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice, product

_CONSONANTS = dict(
    zip(
        "कखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसह",
        "k kh g gh n ch chh j jh n t th d dh n t th d dh n p ph b bh m y r l v sh sh s h".split(),
        strict=True,
    )
)
_DOTTED = {"क": "q", "ख": "kh", "ग": "g", "ज": "z", "ड": "d", "ढ": "dh", "फ": "f"}
_SIGNS = dict(zip("ािीुूृेैोौॉॅ", "A i I u U ri e ai o au o e".split(), strict=True))
_VOWELS = dict(zip("अआइईउऊऋएऐओऔऑ", "a A i I u U ri e ai o au o".split(), strict=True))
_NASAL, _ASPIRATED, _DOT, _NONE = "ंँ", "ः", "़", "्"
_INHERENT = "ə"
_SPELLINGS = {
    "A": ("a", "aa"),
    "I": ("i", "ee"),
    "U": ("u", "oo"),
    "ñ": ("n", ""),
    "eñ": ("en", "e", "ein", "ei"),
    "ai": ("ai", "e"),
    "jh": ("jh", "j"),
    "v": ("v", "w"),
    "ph": ("ph", "f"),
    "chh": ("chh", "ch"),
    "z": ("z", "j"),
}
"""Spellings of sounds that have several, the most frequent first."""
_HEAVY = ("r", "y", "v")
"""Consonants that need a vowel after another consonant."""
_MOST = 8
"""Maximum number of spellings of a word."""


def romanised(frequencies: Mapping[str, float]) -> dict[str, float]:
    """Turn frequencies of Devanagari words into ones of spellings, most frequent first; other words are left out."""
    found: defaultdict[str, float] = defaultdict(float)
    for word, frequency in frequencies.items():
        sounds = _sounds(word.replace("\u200d", "").replace("\u200c", ""))
        written = product(*(_SPELLINGS.get(sound, (sound,)) for sound in sounds)) if sounds else ()
        spellings = list(dict.fromkeys(map("".join, islice(written, _MOST))))
        for spelling in spellings:
            found[spelling] += frequency / len(spellings)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _sounds(word: str) -> list[str]:
    """Consonants and vowels; empty for a word in another script. ``ñ`` is a nasal that may be unwritten."""
    sounds: list[str] = []
    for character in word:
        if character in _CONSONANTS:
            sounds += [_CONSONANTS[character], _INHERENT]
        elif character == _DOT and len(sounds) > 1:
            letter = next((own for own, plain in _CONSONANTS.items() if plain == sounds[-2] and own in _DOTTED), "")
            sounds[-2] = _DOTTED.get(letter, sounds[-2])
        elif character == _NONE or character in _SIGNS:
            if sounds and sounds[-1] == _INHERENT:
                sounds.pop()
            sounds += [_SIGNS[character]] if character in _SIGNS else []
        elif character in _VOWELS:
            sounds.append(_VOWELS[character])
        elif character in _NASAL:
            sounds[-1:] = ["eñ"] if sounds[-1:] == ["e"] else [*sounds[-1:], "ñ"]
        elif character == _ASPIRATED:
            sounds.append("h")
        else:
            return []
    # The final vowel remains where the word cannot be pronounced without it: mitra, rajya.
    is_said = len(sounds) > 2 and sounds[-2] in _HEAVY and not _is_vowel(sounds[-3]) and sounds[-3] != "ñ"
    if len(sounds) > 2 and sounds[-1] == _INHERENT and not is_said:
        sounds.pop()
    for place in range(len(sounds) - 3, 1, -1):
        around = sounds[place - 2], sounds[place - 1], sounds[place + 1], sounds[place + 2]
        if sounds[place] == _INHERENT and [_is_vowel(sound) for sound in around] == [True, False, False, True]:
            del sounds[place]
    return ["a" if sound == _INHERENT else sound for sound in sounds]


def _is_vowel(sound: str) -> bool:
    return sound[0] in "aAeiIouUə"
