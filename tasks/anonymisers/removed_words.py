"""Words that an anonymised version lacks, as places that an attacker guesses.

The raw text and its version are aligned by their words (Ratcliff and Obershelp's matching, ``difflib``). A word without
a partner is removed. The attacker sees the words that are left, and how many words were removed at each place; so he
knows a little more than the version shows. He does not see the words that the version has instead.
"""

from tasks.audit.clear_text import missing_words
from tasks.audit.masked_places import MaskedPlace
from tasks.corpora.masked_text import MASK
from tasks.corpora.words import fold, word_spans
from tasks.filling.masked_lm.places import OpenPlace

_AROUND = 40
"""Words on each side of a place that the attacker reads."""
_NEAR = 200
"""Words on each side whose repetition the attacker expects."""


def removed_places(raw: str, version: str, number: int) -> list[MaskedPlace]:
    """A place for each removed word of a document; ``number`` is that of the document."""
    spans, missing = word_spans(raw), next(missing_words([raw], [version]))
    words = [fold(raw[start:end]) for start, end in spans]
    open_places = [place for place, span in enumerate(spans) if span in missing]
    hidden = set(open_places)
    places = []
    for place in open_places:
        first, last = max(0, place - _AROUND), min(len(spans), place + _AROUND + 1)
        slots = [other for other in range(first, last) if other in hidden]
        starts = [spans[first][0], *(spans[slot][1] for slot in slots)]
        ends = [*(spans[slot][0] for slot in slots), spans[last - 1][1]]
        texts = tuple(raw[start:end] for start, end in zip(starts, ends, strict=True))
        around = range(max(0, place - _NEAR), min(len(words), place + _NEAR))
        near = tuple(words[other] for other in around if other not in hidden)
        places.append(MaskedPlace(number, OpenPlace(texts, slots.index(place)), words[place], MASK, near))
    return places
