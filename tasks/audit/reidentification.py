"""What a masked language model finds out about the words behind the markers, beside guesses by frequency alone.

The attacker knows the masked text, the list of kept words of the technique, and public word counts. His list of words
are those of the counts that are not kept words. The model reads the masked line; the lines round it, too, helped it
nothing in the chat corpus.
With p(w) their share of the counts, p(w | x) what the model says of the words that it has as one piece, and p_mean(w)
its mean over all attacked places, he takes

    p(w) * (p(w | x) + e p(w)) / (p_mean(w) + e p(w)),    e = 0.03

which puts the prior of masked words in the place of the model's own (Saerens et al. 2002, equation 2.4; as in
``log_linear``). Where the line says nothing the factor is 1 and the guess is the blind one. Words of several pieces
have their p(w), as in decision 0033. Where a technique has no list it is a tagger, and p(w) is weighed by how often
public text writes the word with a capital or a figure; by that which fits where a marker says its class. And a tenth
of p(w) is then what stands in clear near by in the document in such a form: a tagger misses some mentions of a name.

A masked word that is not on his list is never found: it ranks behind the whole list. A fill tells no more than the
masked text, of which it is a function, unless it follows the masked words: the word that one with ``forbid_original``
writes is ruled out, and one that writes words of the masked word's class says the class.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tasks.audit.clear_text import side_by_side
from tasks.audit.figure import Figure, share_figure
from tasks.audit.linkage import filled_lines, fills_of
from tasks.corpora.masked_text import MASK, parse_masked
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import read_lines
from tasks.corpora.word_counts import read_word_counts
from tasks.corpora.words import fold, words_of
from tasks.errors import ModelError
from tasks.filling.choice import with_spans
from tasks.filling.frequencies.word_frequencies import KeptWords
from tasks.filling.masked_lm.candidate_words import CandidateWords
from tasks.filling.masked_lm.estimation import mean_probabilities
from tasks.filling.masked_lm.places import OpenPlace, candidate_log_probabilities
from tasks.filling.masked_sentence import read_masked_line
from tasks.filling.settings import SHIPPED_FILLER

if TYPE_CHECKING:
    from tasks.filling.masked_lm.masked_language_model import MaskedLanguageModel

TOPS = (1, 10, 100)
REACH = 10
_NEAR = 0.1
"""Share of what stands near by; with 0.05 or 0.2 of it, and 3 or 30 lines, as much was found."""
_SMOOTHING = 0.03
"""e: of 0.03 to 1 the best on the chat corpus, by little."""
_OTHER_FORM = 0.01
"""Weight of a word that public text never writes in the form that its class has."""
_NAMES = frozenset(("PERSON", "LOCATION", "ORGANISATION", "GROUP", "WORK", "MISCELLANEOUS"))
_FIGURES = frozenset(("NUMBER", "MONEY", "CONTACT", "IDENTIFIER"))


@dataclass(frozen=True, slots=True)
class MaskedPlace:
    """A masked word and what is known of it."""

    line: int
    open: OpenPlace
    """Masks at all markers of the line."""
    original: str
    """Folded."""
    label: str
    """Class that the attacker sees; ``MASK`` where he sees none."""
    ruled_out: frozenset[str]
    """Folded words that cannot stand there."""
    near: tuple[str, ...] = ()
    """Folded words that stand in clear in the document at most ``REACH`` lines away."""
    favoured: frozenset[str] = frozenset()
    """Folded words that are tried before all others."""


def masked_places(
    masked: str | Path,
    sidecar: str | Path,
    most: int,
    seed: int,
    *,
    forbidding_fill: str | Path | None = None,
    returning_fill: str | Path | None = None,
    copies: int = 1,
    merge_markers: bool = True,
    classes_told: bool = False,
    documents: str | Path | None = None,
) -> list[MaskedPlace]:
    """So many of the masked words, each as likely as any other, drawn by ``seed`` without repetition.

    ``forbidding_fill``: a fill with ``forbid_original``, if that is what the attacker has, of so many ``copies`` and
    with the method's ``merge_markers``; ``returning_fill``: one that writes the masked word itself by design.
    ``classes_told``: whether the fill tells the class of each masked word. ``documents``: the name of each line's
    document; without it each line is one.
    """
    number = sum(len(spans) for spans in read_sidecar(sidecar))
    drawn = set(random.Random(seed).sample(range(number), min(most, number)))
    fill = forbidding_fill or returning_fill
    fills = filled_lines(masked, fill or masked, copies, merge_markers=merge_markers)
    lines = list(read_lines(masked))
    names: Sequence[object] = list(read_lines(documents)) if documents else range(len(lines))
    places: list[MaskedPlace] = []
    before = 0
    for line, spans, (merged, texts), name in side_by_side(lines, read_sidecar(sidecar), fills, names):
        chosen = [span for index, span in enumerate(spans, before) if index in drawn]
        before += len(spans)
        if not chosen:
            continue
        sentence = with_spans(read_masked_line(line, merged.number, merge_markers=False), spans)
        around = range(max(0, merged.number - 1 - REACH), min(len(lines), merged.number + REACH))
        near = tuple(word for other in around if names[other] == name for word in _clear_words(lines[other]))
        written: dict[int, set[str]] = {}
        for text in texts if fill else ():
            for slot, (start, end) in zip(merged.slots, fills_of(merged, text) or (), strict=False):
                for marker in range(slot.first_marker, slot.last_marker + 1):
                    written.setdefault(marker, set()).add(fold(text[start:end]))
        places += [
            MaskedPlace(
                sentence.number,
                OpenPlace(sentence.texts, span.marker),
                fold(span.original),
                span.label if classes_told else sentence.slots[span.marker].label,
                frozenset(written.get(span.marker, ()) if forbidding_fill else ()),
                near,
                frozenset(written.get(span.marker, ()) if returning_fill else ()),
            )
            for span in chosen
        ]
    return places


def _clear_words(masked_line: str) -> Iterator[str]:
    texts = (piece for piece in parse_masked(masked_line) if isinstance(piece, str))
    return (fold(word) for text in texts for word in words_of(text))


class WordList:
    """The words that the attacker guesses among, and how likely each is before he reads the line."""

    def __init__(self, counts: Iterable[tuple[str, int]], kept: KeptWords) -> None:
        """``counts`` of cased words in public text."""
        total, capital = Counter[str](), Counter[str]()
        for word, count in counts:
            folded = fold(word)
            if count > 0 and not kept.holds(folded):
                total[folded] += count
                capital[folded] += count if word != word.lower() else 0
        self.index = {word: number for number, word in enumerate(total)}
        self.has_kept_words = bool(kept)
        self._counts = np.array(list(total.values()), dtype=np.float64)
        self._capital = np.array([capital[word] for word in total]) / self._counts
        self._figure = np.array([any(map(str.isdigit, word)) for word in total], dtype=np.float64)
        self._by_label: dict[str, np.ndarray] = {}

    def prior(self, label: str = MASK) -> np.ndarray:
        """``(L,)`` probabilities of the words where a marker has this class."""
        if label not in self._by_label:
            known = label != MASK or not self.has_kept_words
            weighed = self._counts * (self._form(label) + _OTHER_FORM if known else 1)
            self._by_label[label] = weighed / weighed.sum()
        return self._by_label[label]

    def prior_near(self, label: str, near: Iterable[str]) -> np.ndarray:
        """``(L,)`` the same where these folded words stand in clear near by; where a list masks they are kept words,
        and nobody guesses them."""
        seen = np.bincount([self.index[word] for word in near if word in self.index], minlength=len(self.index))
        seen = np.where(self._form(label) > 0.5, seen, 0)
        prior = self.prior(label)
        return (1 - _NEAR) * prior + _NEAR * seen / seen.sum() if seen.any() else prior.copy()

    def _form(self, label: str) -> np.ndarray:
        return np.maximum(0 if label in _FIGURES else self._capital, 0 if label in _NAMES else self._figure)


@dataclass(frozen=True)
class Ranks:
    """Where the masked words stand in an attacker's guesses, from 1; one more than he has words where it is none of
    them."""

    reading: np.ndarray
    """``(N,)``: of one who reads the line."""
    blind: np.ndarray
    """``(N,)``: of one who goes by frequency."""
    listed: np.ndarray
    """``(N,)`` booleans: the masked word is among his words."""


def ranks_of(
    places: Sequence[MaskedPlace], model: "MaskedLanguageModel", candidates: CandidateWords, words: WordList
) -> Ranks:
    """The rank of each place's word; equally likely ones share theirs. Takes some 100 KB a place.

    Raises ``ModelError`` where the model has no word of the list as one piece.
    """
    column = np.array([words.index.get(fold(word), -1) for word in candidates.words])  # (W,)
    allowed = column >= 0
    if not allowed.any():
        raise ModelError(
            f"attacker {model.name!r} has no word of the word counts that a technique would mask: nothing to guess; "
            "take a model of the text's language"
        )
    column, inverse = np.unique(column[allowed], return_inverse=True)  # (C,), (A,)
    table = candidate_log_probabilities(model, candidates, allowed, [place.open for place in places])  # (N, A)
    forms = np.argsort(inverse, kind="stable")
    starts = np.searchsorted(inverse[forms], np.arange(len(column)))
    mean = np.add.reduceat(mean_probabilities(table)[forms], starts)  # (C,)
    smooth = words.prior()[column] / words.prior()[column].sum() * _SMOOTHING  # (C,)
    reading, blind = np.empty(len(places)), np.empty(len(places))
    targets = [words.index.get(place.original, -1) for place in places]
    for row, (place, target) in enumerate(zip(places, targets, strict=True)):
        guesses = words.prior_near(place.label, place.near)
        said = np.add.reduceat(np.exp(table[row, forms].astype(np.float64)), starts)  # (C,)
        weighed = guesses[column] * (said + smooth) / (mean + smooth)
        # The words that the model has share what they have by frequency.
        guesses[column] = weighed * (guesses[column].sum() / weighed.sum())
        guesses[[words.index[word] for word in place.ruled_out if word in words.index]] = -1
        guesses[[words.index[word] for word in place.favoured if word in words.index]] += 1
        reading[row], blind[row] = _rank(guesses, target), _rank(words.prior(place.label), target)
    return Ranks(reading, blind, np.array(targets, dtype=np.int64) >= 0)


def _rank(guesses: np.ndarray, target: int) -> float:
    """The rank of one among its equals, on the average; -1 is none."""
    if target < 0:
        return len(guesses) + 1
    return float(np.count_nonzero(guesses > guesses[target]) + (np.count_nonzero(guesses == guesses[target]) + 1) / 2)


def figures_of(places: Sequence[MaskedPlace], ranks: Ranks, attacker: str) -> dict[str, Figure]:
    """The figures of some places, one at least; a line's stand together in the intervals of shares."""
    lines = np.unique([place.line for place in places], return_inverse=True)[1]

    def share(hits: np.ndarray, blind: np.ndarray | None = None) -> Figure:
        reached = None if blind is None else float(blind.mean())
        return share_figure(np.bincount(lines, hits).tolist(), np.bincount(lines).tolist(), attacker, reached)

    reading, blind = (np.where(ranks.listed, of, np.inf) for of in (ranks.reading, ranks.blind))
    figures = {f"reidentified_{top}": share(reading <= top, blind <= top) for top in TOPS}
    figures["reidentified_listed"] = share(ranks.listed)
    # Ends by order statistics: 1.96 standard deviations of the number of ranks below the median.
    away = 0.98 / len(places) ** 0.5
    low, median, high = np.quantile(ranks.reading, [max(0, 0.5 - away), 0.5, min(1, 0.5 + away)]).tolist()
    figures["median_rank"] = Figure(median, (low, high), attacker, float(np.median(ranks.blind)), len(places))
    return figures


def reidentification(
    places: Sequence[MaskedPlace],
    kept_words: str | Path | None,
    word_counts: str | Path | None,
    filler: str = SHIPPED_FILLER,
    threads: int = 1,
) -> dict[str, Figure]:
    """``reidentified_1``, ``_10``, ``_100``: the share of masked words among so many best guesses;
    ``reidentified_listed``: among all of them, which no attack of this kind exceeds; ``median_rank``.

    ``kept_words``: of the technique, empty or ``None`` where it has no list. ``word_counts``: of public text, by
    default the published list. ``filler``: the attacker, any masked language model by hub name or folder.
    """
    from tasks.corpora.sources.published_frequencies import published_counts
    from tasks.filling.context import FillerModel
    from tasks.filling.masked_lm.candidate_words import candidate_words

    counts = read_word_counts(word_counts) if word_counts else published_counts()
    words = WordList(counts, KeptWords.read(kept_words))
    known = "words off the list of kept words"
    if not words.has_kept_words:
        known = "words, names and figures first, above all those in clear near by"
    attacker = f"{filler} reads the masked line, weighed by word counts; guesses {len(words.index):,} {known}"
    if any(place.ruled_out for place in places):
        attacker += "; not what the fill writes, which forbids the masked word"
    if any(place.favoured for place in places):
        attacker += "; first what the fill writes, which may be the masked word"
    if not places:
        names = [*(f"reidentified_{top}" for top in TOPS), "reidentified_listed", "median_rank"]
        return {name: Figure(None, None, attacker) for name in names}
    model = FillerModel(filler, threads).masked
    candidates = candidate_words(model.tokenizer, name=model.name, known_words=words.index.keys())
    return figures_of(places, ranks_of(places, model, candidates, words), attacker)
