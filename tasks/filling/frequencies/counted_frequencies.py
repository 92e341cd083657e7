"""Differentially private counts of the masked words of a corpus (Dwork et al. 2006; decision 0041).

With ``prior: counted`` a method reads the sidecar once, counts, adds noise, and then sees only the noisy counts. Fill
and report are a function of the masked text, public data, the seed and the noisy counts. So epsilon covers a release:
*the masked words of a line (or document), given the masked text*.

- **Categories**: every word of the public word counts, all names together, and all other words. So a word that only
  the private text has cannot come out. ``NAMES_OF_NOBODY`` are capitalised words that are counted one by one.
- **Contribution of a unit**: at most L = ``words_per_unit`` masked words of a line or document, drawn at random, one
  for each marker.
- **Noise**: P(X = k) proportional to exp(-|k| / b), b = 2 L / epsilon, for integers k: the geometric mechanism (Ghosh,
  Roughgarden and Sundararajan 2009). Other words at the markers of one unit change the counts by at most 2 L in sum.
- **Use**: noisy counts and frequencies without counts (``prior: domain``) are combined word by word (``noise``). A word
  is *taken* if noise alone is expected to reach its count for at most one of all words. A fill by context writes each
  taken word, all names together and all other words together as often as counted (``masked_lm.weighing``).

The noise is derived from a secret key (``clone_key``) and from everything counted. The same fill has the same noise, so
a repetition reveals nothing new. Any other counts have other noise, and the epsilons of all released sets add up.
"""

import hashlib
import hmac
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tasks.corpora.sidecar import MaskedSpan, read_sidecar
from tasks.corpora.text_lines import read_documents
from tasks.corpora.words import fold, folded_words
from tasks.errors import CorpusError
from tasks.files.clone_key import clone_key, key_id
from tasks.filling.filled_lines import lines_with_spans
from tasks.filling.frequencies.noise import noise, posterior_rates, threshold
from tasks.filling.frequencies.word_frequencies import AllowedWords, EstimatedFrequencies, WordFrequencies
from tasks.filling.masked_lm.candidate_words import is_letter
from tasks.filling.masked_sentence import read_masked_line, spans_of_slots
from tasks.filling.settings import NoisyCounts
from tasks.made_up.pools import shipped_words

if TYPE_CHECKING:
    from tasks.filling.opened_filler import Words
    from tasks.filling.prepared_fill import Corpus

NAMES_OF_NOBODY = frozenset(
    fold(word) for kind in ("word_before_name", "weekday", "month") for word in shipped_words()[kind]
) - {"april", "may", "june", "august"}
"""Folded words with a capital that are no names, and hardly ever parts of names."""
_LEAST_SHARE = 0.01
"""Minimum share of all places for all names together, and for all counted words: noise may leave no place for them."""
_SCALE = 1000.0
"""Integer count for one place: a scale at which rounding is negligible."""
_Lines = Iterable[tuple[str, Sequence[MaskedSpan]]]
"""Masked lines with their spans."""


def count_masked_words(
    words: "Words", corpus: "Corpus", before: WordFrequencies, settings: NoisyCounts
) -> EstimatedFrequencies:
    """The noisy counts of the words at a fill's markers. ``before``: as for ``counted_frequencies``.

    Raises ``ParameterError`` if earlier releases of the corpus leave too little of the epsilon budget."""
    from tasks.privacy.earlier_releases import shared_with
    from tasks.privacy.ledger import check_budget, check_key, read_ledger

    files, allowed, planted, public = corpus.files, corpus.release, corpus.planted, words.frequencies

    def own_lines() -> _Lines:
        return lines_with_spans(corpus.masked, read_sidecar(str(files.sidecar)))

    documents = read_documents(files.documents) if files.documents else iter(())
    if planted is not None:
        # These counts are not released, so they need no budget.
        lines = chain(own_lines(), lines_with_spans(planted.lines, planted.spans))
        documents = chain(documents, planted.documents if files.documents else ())
        key = clone_key("noise of an audit")
        return counted_frequencies(before, words.allowed_words, lines, settings, key, documents, public=public)
    releases = read_ledger()
    earlier = shared_with(_private_lines(own_lines()) if releases else (), releases)
    releases = earlier.among(releases, corpus.cell.dataset)
    check_key(releases, key=key_id(), other_keys=allowed.other_keys)
    key = clone_key("noise")
    counted = counted_frequencies(before, words.allowed_words, own_lines(), settings, key, documents, public=public)
    counted.measured["key"] = key_id()
    total = earlier.spent(releases, counted.measured["counts"], settings.epsilon, settings.unit)
    check_budget(releases, total=total, epsilon=settings.epsilon, budget=allowed.epsilon_budget)
    return counted


def _private_lines(lines: _Lines) -> Iterator[tuple[str, list[MaskedSpan]]]:
    """The lines with their original words, except for white space between the words of a merged marker."""
    for number, (line, spans) in enumerate(lines, start=1):
        sentence = replace(read_masked_line(line, number, merge_markers=False), spans=tuple(spans))
        text, found = sentence.texts[0], list[MaskedSpan]()
        for following, originals in zip(sentence.texts[1:], spans_of_slots(sentence), strict=True):
            for index, span in enumerate(originals):
                text += " " if index else ""
                found.append(replace(span, start=len(text), end=len(text) + len(span.original)))
                text += span.original
            text += following
        yield text, found


def counted_frequencies(
    before: WordFrequencies,
    allowed_words: AllowedWords,
    lines: _Lines,
    settings: NoisyCounts,
    key: bytes,
    documents: Iterable[str] = (),
    *,
    public: WordFrequencies,
) -> EstimatedFrequencies:
    """Frequencies by the noisy counts of the masked words.

    ``before``: the counted words, and the frequencies of the words that are not taken; its counts follow from masked
    and public text. ``lines``: every masked line and its spans. ``key``: the secret for the noise. ``documents``: a
    name for the document of each line, read if the unit is a document. ``public``: the public word counts, which show
    the names. Raises ``CorpusError`` if the number of documents differs from the number of lines, or if each line is a
    separate document.
    """
    cells = Cells(before, allowed_words, public, count_names=settings.names == "count")
    noisy = noisy_counts(cells, lines, settings, key, documents)
    ratio = math.exp(-settings.epsilon / (2 * settings.words_per_unit))
    least = threshold(cells.counted, ratio)
    taken = noisy.counts >= least
    taken[cells.counted :] = False
    places = _places(cells, noisy, ratio)
    off = cells.of_form >= 0
    cell, counts = cells.of_form[off], before.counts.copy()
    # The forms of a word share its places as in public text. Words on the list do not change.
    counts[off] = np.maximum(1, np.rint(_SCALE * places[cell] * before.counts[off] / cells.prior[cell]))
    # Each taken word is a group, then all names, then all other words.
    group = np.where(taken, np.cumsum(taken) - 1, np.count_nonzero(taken) + 1)  # (C,)
    group[cells.counted] = np.count_nonzero(taken)
    groups = np.where(off, group[cells.of_form], -1)
    return EstimatedFrequencies(
        WordFrequencies(before.words, counts, groups),
        {
            "epsilon": settings.epsilon,
            "unit": settings.unit,
            "words_per_unit": settings.words_per_unit,
            "names": settings.names,
            "counts": noisy.name,
            "counted_words": cells.counted,
            "threshold": least,
            "taken_words": int(np.count_nonzero(taken)),
            "taken_share": float(places[taken].sum() / places.sum()) if places.sum() else None,
            "counted_places": noisy.places,
        },
    )


class Cells:
    """The counted categories: each word, then all names together, then all words that public text does not have."""

    def __init__(
        self, before: WordFrequencies, allowed_words: AllowedWords, public: WordFrequencies, *, count_names: bool
    ) -> None:
        off_list = allowed_words.off_list(before.words)
        folded = [fold(word) for word in before.words]
        candidates = {word for word, off in zip(folded, off_list, strict=True) if off}
        names = {word for word in candidates - NAMES_OF_NOBODY if word in public.usual_forms and not is_letter(word)}
        self.names = [] if count_names else sorted(names)
        self.words = sorted(candidates.difference(self.names))
        self.counted = len(self.words)
        """Number of words that are counted one by one; they are the first cells."""
        self._index = dict.fromkeys(self.names, self.counted) | {word: cell for cell, word in enumerate(self.words)}
        self.of_form = np.array([self.of(word) if off else -1 for word, off in zip(folded, off_list, strict=True)])
        """Cell of each form of ``before`` (F,), int64; -1 where it is on the list."""
        off = self.of_form >= 0
        self.prior = np.bincount(self.of_form[off], weights=before.counts[off], minlength=len(self))
        """Public count of each cell (C,)."""

    def __len__(self) -> int:
        return self.counted + 2

    def of(self, word: str) -> int:
        """The cell of a folded word."""
        return self._index.get(word, self.counted + 1)


@dataclass(frozen=True)
class NoisyCountsOfCells:
    """The released information about the masked words."""

    name: str
    """Keyed id of the counted text."""
    counts: np.ndarray
    """``(C,)`` int64 with noise."""
    places: int
    """Number of counted words."""


def noisy_counts(
    cells: Cells, lines: _Lines, settings: NoisyCounts, key: bytes, documents: Iterable[str] = ()
) -> NoisyCountsOfCells:
    """Count at most L masked words of each unit, and add the noise."""
    originals: list[list[str]] = []
    """The folded words of each marker."""
    line_of: list[int] = []
    line_count = 0
    for line_count, (_, spans) in enumerate(lines, start=1):
        by_marker: dict[int, list[str]] = {}
        for span in spans:
            by_marker.setdefault(span.marker, []).extend(folded_words(span.original) or [fold(span.original)])
        originals += by_marker.values()
        line_of += [line_count - 1] * len(by_marker)
    units = np.array(line_of, dtype=np.int64)
    if settings.unit == "document":
        units = _documents(documents, line_count)[units]
    secret = _secret(key, settings, cells, originals, units)

    def derived(purpose: str, length: int) -> bytes:
        return hashlib.shake_256(secret + purpose.encode()).digest(length)

    random = np.random.default_rng(np.frombuffer(derived("choice", 32), dtype=np.uint64))
    # At most L markers of each unit, drawn at random.
    order = np.lexsort((random.random(len(units)), units))
    first = np.searchsorted(units[order], units[order], side="left")
    chosen = np.sort(order[np.arange(len(units)) - first < settings.words_per_unit])
    counts = np.zeros(len(cells), dtype=np.int64)
    for marker in chosen.tolist():
        words = originals[marker]
        counts[cells.of(words[random.integers(len(words))])] += 1
    ratio = math.exp(-settings.epsilon / (2 * settings.words_per_unit))
    added = noise(len(cells), ratio, derived("noise", 16 * len(cells)))
    return NoisyCountsOfCells(derived("name", 8).hex(), counts + added, len(chosen))


def _secret(key: bytes, settings: NoisyCounts, cells: Cells, originals: list[list[str]], units: np.ndarray) -> bytes:
    """The secret of the noise: the key's HMAC of the settings, the counted words and names, and the unit and the words
    of each marker. So other counts have other noise."""
    digest = hmac.new(key, digestmod="sha256")
    digest.update(json.dumps([settings.model_dump(mode="json"), cells.words, cells.names]).encode())
    digest.update(units.astype("<i8").tobytes())
    digest.update(json.dumps(originals).encode())
    return digest.digest()


def _documents(names: Iterable[str], lines: int) -> np.ndarray:
    """``(lines,)`` int64: a number for the document of each line; equal names have equal numbers."""
    numbers: dict[str, int] = {}
    found = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    if len(found) != lines:
        raise CorpusError(
            f"the sidecar has {lines:,} lines and the documents file {len(found):,}; give the document of every line"
        )
    if len(numbers) == lines:
        raise CorpusError(
            f"each of {lines:,} lines is a separate document ({len(numbers):,} documents), so unit: document would "
            "protect a line; name the documents of the corpus (document_field), or set unit: line"
        )
    return found


def _places(cells: Cells, noisy: NoisyCountsOfCells, ratio: float) -> np.ndarray:
    """``(C,)`` float64: the estimated places of each cell among all counted places; 0 for words not in public text."""
    counts, total = noisy.counts, noisy.places
    places = np.zeros(len(cells))
    least = max(1.0, _LEAST_SHARE * total)
    names, unlisted = (max(0.0, float(counts[cell])) for cell in (cells.counted, cells.counted + 1))
    if cells.prior[cells.counted] > 0:
        places[cells.counted] = max(least, names)
    if not cells.counted:
        return places
    left = max(least, total - names - unlisted)
    words = slice(0, cells.counted)
    rates = posterior_rates(counts[words], left * cells.prior[words] / cells.prior[words].sum(), ratio)
    places[words] = left * rates / rates.sum()
    return places
