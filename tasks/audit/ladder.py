"""The ladder of attackers of masked words: each has one more source than the one below (docs/audit.md).

All guess the same masked places as ``reidentification``, so their differences are paired. g(w) is the guesser's score
of a word. A language model of a rung reorders the 20 best guesses by

    log g(w) + 1/2 (log p(line with w) - log p_base(line with w))

p_base is the model before its adaptation, as in "recollect and rank" (Meng et al. 2025). The model of ``released``
seldom finds more than no model, so each half of the lines has it only if it finds more words on the other half, and
later rungs do not use it. The blind figure of a rung is the same attack with nothing to find in its new source:
without the model, or with the neighbours or passages of another line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tasks.audit.attacked import AttackedText
from tasks.audit.background import Passages, read_passages
from tasks.audit.figure import Figure, share_difference, share_figure
from tasks.audit.line_scores import score_references
from tasks.audit.masked_places import MaskedPlace
from tasks.audit.reranking import Contested
from tasks.audit.rungs import PUBLIC, RUNGS
from tasks.corpora.text_lines import read_documents, read_lines
from tasks.corpora.word_counts import count_lines
from tasks.corpora.words import fold
from tasks.errors import ParameterError
from tasks.language_model.divided_model import DividedModel

TOPS = (1, 10)
_LINES_AROUND = 2
"""Neighbouring lines on each side that are read as context."""
_PASSAGES = 10
"""Passages for each line."""
_WEIGHT = 0.5
"""Weight of a language model."""


@dataclass(frozen=True)
class Attacker:
    """The knowledge of an attacker."""

    places: Sequence[MaskedPlace]
    counts: Sequence[tuple[str, int]]
    """Cased words with their counts: the candidates and their frequency."""
    model: str | None = None
    """The language model that reorders the best guesses."""
    has_fills: bool = False
    """Whether the model was adapted on the fills. It then favours a place's fill, which says nothing of its word."""


Pair = tuple[Attacker, Attacker]
"""The attacker of a rung, and the one whose new source has nothing to find."""


def released(attacked: AttackedText, below: Attacker) -> Pair:
    """Has the language model that was adapted on the text."""
    return _with_model(attacked, below, "released", attacked.files.released_model)


def raw(attacked: AttackedText, below: Attacker) -> Pair:
    """Has a language model that was adapted on the private text."""
    return _with_model(attacked, below, "raw", attacked.files.raw_model)


def _with_model(attacked: AttackedText, below: Attacker, rung: str, model: str | None) -> Pair:
    if model is None or attacked.files.base is None:
        raise ParameterError(
            f"audit.ladder: rung {rung!r} needs the model and the one before its adaptation; give --{rung}-model and "
            f"--base, or leave {rung!r} out"
        )
    return replace(below, model=model, has_fills=rung == "released"), replace(below, model=None)


def author(attacked: AttackedText, below: Attacker) -> Pair:
    """Reads the released lines around each line, of the same document."""
    lines, documents = list(read_lines(attacked.path)), attacked.files.documents
    names: Sequence[object] = list(read_documents(documents)) if documents else range(len(lines))

    def around(place: MaskedPlace) -> tuple[str, str]:
        here = place.line - 1
        before = range(max(0, here - _LINES_AROUND), here)
        after = range(here + 1, min(len(names), here + 1 + _LINES_AROUND))
        own = [[lines[n] for n in part if names[n] == names[here]] for part in (before, after)]
        return "".join(f"{line} " for line in own[0]), "".join(f" {line}" for line in own[1])

    return _of_places(below, [{"around": around(place)} for place in below.places])


def background(attacked: AttackedText, below: Attacker) -> Pair:
    """Has documents on the same people, and finds passages of them for each line."""
    texts = read_passages(str(attacked.settings.background))
    index = Passages(texts)
    known = [{"passages": index.words_for("".join(place.open.texts), _PASSAGES)} for place in below.places]
    return _of_places(replace(below, counts=[*below.counts, *count_lines(texts).items()]), known)


def _of_places(below: Attacker, known: Sequence[Mapping[str, Any]]) -> Pair:
    """Adds fields to the places; the blind attacker has those of another place."""
    half = len(known) // 2
    fields = known, [*known[half:], *known[:half]]
    own, other = ([replace(place, **more) for place, more in zip(below.places, of, strict=True)] for of in fields)
    below = replace(below, model=None)
    return replace(below, places=own), replace(below, places=other)


ADDED: tuple[Callable[[AttackedText, Attacker], Pair], ...] = (released, author, background, raw)
"""The functions of ``RUNGS``, by name and in order."""


def ladder(attacked: AttackedText) -> dict[str, Figure]:
    """``reidentified_RUNG_1`` and ``_10`` of each asked rung: the share of masked words among so many best guesses;
    ``reidentified_RUNG_gain``: the first less that of the rung below, on the same places."""
    settings, places = attacked.settings, attacked.places
    if not settings.ladder or not places:
        return {}
    lines = np.unique([place.line for place in places], return_inverse=True)[1]
    counted = np.bincount(lines).tolist()
    attacker, has, found = Attacker(places, attacked.guesser.counts), settings.attacker, {}
    ranks, below = _ranks(attacked, attacker), PUBLIC
    for add in ADDED:
        rung = add.__name__
        if rung not in settings.ladder:
            continue
        attacker, blind = add(attacked, attacker)
        before, ranks = ranks, _ranks(attacked, attacker)
        unknowing = _ranks(attacked, blind)
        has += f"; {RUNGS[rung]}"
        for top in TOPS:
            hits, reached = np.bincount(lines, ranks <= top).tolist(), float((unknowing <= top).mean())
            found[f"reidentified_{rung}_{top}"] = share_figure(hits, counted, has, reached)
        gained = np.bincount(lines, np.subtract(ranks <= 1, before <= 1, dtype=np.float64)).tolist()
        found[f"reidentified_{rung}_gain"] = share_difference(gained, counted, f"{has}; less rung {below!r}")
        below = rung
    return found


def _ranks(attacked: AttackedText, attacker: Attacker) -> np.ndarray:
    """The rank that an attacker gives each place's word (N,), from 1; infinite if it is no candidate."""
    reading = attacked.guesser.reading(attacker.places, attacker.counts)
    plain = np.where(reading.is_listed, reading.ranks, np.inf)
    if attacker.model is None or not reading.contested:
        return plain
    models = [DividedModel(name, attacked.resources) for name in (attacker.model, str(attacked.files.base))]
    after, before = (score_references(model, reading.lines).values() for model in models)
    gains = [_WEIGHT * (new - old) for new, old in zip(after, before, strict=True)]
    if attacker.has_fills:
        words, contested = list(reading.reader.words.index), reading.contested.values()
        gains = [_without_fill(gain, place, words) for gain, place in zip(gains, contested, strict=True)]
    ranks = np.where(reading.is_listed, reading.reordered(gains), np.inf)
    if attacker.has_fills:
        return better_ranks(ranks, plain, np.array([place.line for place in attacker.places]))
    return ranks


def _without_fill(gain: np.ndarray, place: Contested, words: Sequence[str]) -> np.ndarray:
    """The gains (B,) of a place's best guesses, that of its fill at most their median."""
    fill = fold(place.place.substitute or "")
    return np.where([words[index] == fill for index in place.best], np.minimum(gain, np.median(gain)), gain)


def better_ranks(ranks: np.ndarray, without: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Ranks (N,) of places: in each half of the lines (N,) those that find more words on the other half."""
    half = np.unique(lines, return_inverse=True)[1] % 2 == 0
    found, plain = ranks <= 1, without <= 1
    is_used = np.where(half, found[~half].sum() > plain[~half].sum(), found[half].sum() > plain[half].sum())
    return np.where(is_used, ranks, without)
