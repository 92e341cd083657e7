"""How often the masked words themselves occur, counted with noise: differential privacy (Dwork et al. 2006).

What a fill lacks most is which rare words a corpus has, and no unmasked text says so. The masked words do. Their counts
may leave the private zone where no line decides anything in them: with ``prior: counted`` a method reads the
sidecar once, counts, adds noise, and sees nothing but the noisy counts. Fill and report are made of the masked text,
public data, the seed and these, so that epsilon is about what leaves: *the masked words of a line (or document), given
the masked text*. That a line is there, and what it shows without them, the masked text says (decision 0041).

- **What is counted**: words of the public word counts that are off the list of kept words. A word that nobody but the
  private text has is never counted, so it cannot come out. With ``names: leave_out`` words that public text writes with
  a capital are not counted one by one either: noise hides that a line has a name, not that a thousand lines have it.
  Titles, weekdays and months that are nobody's name are counted all the same (``NAMES_OF_NOBODY``).
- **What a unit adds**: the unit of privacy is a line, or a document: a conversation, or what one person wrote. At most
  L = ``words_per_unit`` of its masked words are counted, drawn at random, one for each marker.
- **The noise**: each count c becomes c + X with P(X = k) proportional to exp(-|k| / b), b = 2 L / epsilon, in whole
  numbers: the geometric mechanism (Ghosh, Roughgarden and Sundararajan 2009). Putting other words behind the markers of
  one unit moves the counts by 2 L at most in sum, and so changes the probability of no outcome by more than a factor of
  exp(epsilon). The number of markers counts as known: the masked text shows it.
- **What becomes of them**: what noisy counts say and what is expected without counts (``prior: domain``) are weighed
  word by word (``noise``). This reads no private text, so it costs nothing.
  Single letters are words here. A fill by context writes each word that noise alone would give such a count for one of
  all words or fewer (*taken*) as often as that comes to, names together as often as theirs, and all other words in the
  rest (``groups``, see ``masked_lm.estimation``).

The noise comes from a secret key (``clone_key``) and from all that is counted: the same fill has the same noise, so
repeating it tells nothing new, and whoever knows seeds and parameters cannot take it off again. Counts of another
technique, another epsilon, by another key or of a corpus that has grown are another set, and the epsilons of all sets
that leave add up. Over units epsilons add up too: what a person says in n lines, or in n documents, is protected by n
times epsilon.

The words behind the markers of a corpus, in a few numbers for each marker and each word's text once.

A corpus of a million sentences masks some millions of words; as Python's strings and lists they would take a hundred
bytes each, here it is twenty.
"""

import hashlib
import hmac
import json
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tasks.corpora.sidecar import MaskedSpan, read_sidecar
from tasks.corpora.text_lines import read_documents
from tasks.corpora.words import fold, folded_words
from tasks.errors import CorpusError
from tasks.files.clone_key import clone_key, key_id
from tasks.filling.filled_corpus import lines_with_spans
from tasks.filling.frequencies.noise import noise, posterior_rates, threshold
from tasks.filling.frequencies.word_frequencies import KeptWords, WordFrequencies
from tasks.filling.masked_lm.candidate_words import is_letter
from tasks.filling.masked_sentence import read_masked_line, usual_forms
from tasks.filling.settings import NoisyCounts
from tasks.filling.surrogates.groups import MONTHS, TITLES, WEEKDAYS

NAMES_OF_NOBODY = frozenset(map(fold, (*TITLES, *WEEKDAYS, *MONTHS))) - {"april", "may", "june", "august"}
"""Folded words with a capital that are no names, and hardly ever parts of one."""


class WordsBehindMarkers:
    """M markers, in the order of the lines; each has one word at least."""

    def __init__(self, lines: Iterable[Sequence[MaskedSpan]]) -> None:
        """``lines``: the spans of every line of a sidecar; read once."""
        self._lines, self._ends, self._words = array("q"), array("q"), array("i")
        self.line_count = 0
        numbers: dict[str, int] = {}
        for number, spans in enumerate(lines):
            self.line_count += 1
            behind: dict[int, list[str]] = {}
            for span in spans:
                behind.setdefault(span.marker, []).extend(folded_words(span.original) or [fold(span.original)])
            for words in behind.values():
                self._words.extend(numbers.setdefault(word, len(numbers)) for word in words)
                self._lines.append(number)
                self._ends.append(len(self._words))
        self._texts = list(numbers)

    @property
    def lines(self) -> np.ndarray:
        """The line of each marker, from 0: (M,) int64, ascending."""
        return np.array(self._lines, dtype=np.int64)

    def of(self, marker: int) -> list[str]:
        """The folded words behind a marker."""
        begin = self._ends[marker - 1] if marker else 0
        return [self._texts[word] for word in self._words[begin : self._ends[marker]]]

    def json_pieces(self) -> Iterator[str]:
        """The pieces of a JSON list of the words behind each marker."""
        quoted = list(map(json.dumps, self._texts))
        begin = 0
        for index, end in enumerate(self._ends):
            yield f"{', ' if index else '['}[{', '.join(quoted[word] for word in self._words[begin:end])}]"
            begin = end
        yield "]" if len(self._ends) else "[]"


if TYPE_CHECKING:
    from tasks.filling.context import FillContext

_LEAST_SHARE = 0.01
"""All names together, and all counted words together, have so much of all places at least: noise may leave nothing."""
_SCALE = 1000.0
"""Counts are whole numbers: so many for each place, and rounding loses nothing that matters."""


@dataclass(frozen=True)
class CountedFrequencies:
    """Word frequencies of a private text, and what their noise is like."""

    frequencies: WordFrequencies
    """The same words as before, other counts."""
    measured: dict[str, Any]
    """What a report says of it: nothing that is not in the noisy counts or in the masked text."""


def count_masked_words(context: "FillContext", before: WordFrequencies, settings: NoisyCounts) -> CountedFrequencies:
    """The noisy counts of what a fill's markers stand for; ``ParameterError`` where too much of the corpus has left for
    them to. ``before``: as for ``counted_frequencies``."""
    from tasks.privacy.earlier_releases import shared_with
    from tasks.privacy.ledger import check_budget, check_key, read_ledger

    files, cell, allowed, planted = context.files, context.cell, context.release, context.planted
    lines = lines_with_spans(context.masked, read_sidecar(str(files.sidecar)))
    documents = read_documents(files.documents) if files.documents else ()
    if planted is not None:
        # Nobody is given these counts: they are no release, and no budget is asked.
        lines = chain(lines, lines_with_spans(planted.lines, planted.spans))
        documents = chain(documents, planted.documents) if files.documents else ()
        key = clone_key("noise of an audit")
        return counted_frequencies(before, context.kept, lines, settings, key, documents, public=context.frequencies)
    before_this = read_ledger()
    private = _private_lines(lines_with_spans(context.masked, read_sidecar(str(files.sidecar)))) if before_this else ()
    earlier = shared_with(private, before_this)
    before_this = earlier.among(before_this, cell.dataset)
    check_key(before_this, key=key_id(), other_keys=allowed.other_keys)
    counted = counted_frequencies(
        before,
        context.kept,
        lines,
        settings,
        clone_key("noise"),
        documents,
        public=context.frequencies,
    )
    counted.measured["key"] = key_id()
    total = earlier.spent(before_this, counted.measured["counts"], settings.epsilon, settings.unit)
    check_budget(before_this, total=total, epsilon=settings.epsilon, budget=allowed.epsilon_budget)
    return counted


def _private_lines(
    lines: Iterable[tuple[str, Sequence[MaskedSpan]]],
) -> Iterator[tuple[str, list[MaskedSpan]]]:
    """The lines with their words back in the place of markers, but for white space between those that were merged."""
    for number, (line, spans) in enumerate(lines, start=1):
        behind: dict[int, list[MaskedSpan]] = {}
        for span in spans:
            behind.setdefault(span.marker, []).append(span)
        text, found = "", list[MaskedSpan]()
        for marker, piece in enumerate(read_masked_line(line, number, merge_markers=False).texts):
            if marker:
                for index, span in enumerate(behind.get(marker - 1, ())):
                    text += " " if index else ""
                    found.append(replace(span, start=len(text), end=len(text) + len(span.original)))
                    text += span.original
            text += piece
        yield text, found


def counted_frequencies(
    before: WordFrequencies,
    kept: KeptWords,
    lines: Iterable[tuple[str, Sequence[MaskedSpan]]],
    settings: NoisyCounts,
    key: bytes,
    documents: Iterable[str] = (),
    *,
    public: WordFrequencies | None = None,
) -> CountedFrequencies:
    """Frequencies by the noisy counts of what was masked.

    ``before`` says which words are counted and how frequent those are that are not taken; its counts follow from masked
    and public text. ``lines``: every masked line and its spans; ``key``: the secret that noise is made of;
    ``documents``: the document of each line by any name, read where the unit is one. ``public``: the word counts
    themselves, which say what is a name (``before`` if ``None``). Raises ``CorpusError`` where documents are more or
    fewer than lines, or each line is one of its own.
    """
    cells = Cells(before, kept, public or before, count_names=settings.names == "count")
    noisy = noisy_counts(cells, lines, settings, key, documents)
    ratio = math.exp(-settings.epsilon / (2 * settings.words_per_unit))
    least = threshold(cells.counted, ratio)
    taken = noisy.counts >= least
    taken[cells.counted :] = False
    places = _places(cells, noisy, ratio)
    return CountedFrequencies(
        WordFrequencies(before.words, _as_counts(before, cells, places), _groups(cells, taken)),
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


@dataclass(frozen=True)
class NoisyCountsOfCells:
    """All that is ever seen of the masked words."""

    name: str
    """Keyed id of all that was counted."""
    counts: np.ndarray
    """``(C,)`` int64 with noise."""
    places: int
    """How many words were counted."""


def noisy_counts(
    cells: "Cells",
    lines: Iterable[tuple[str, Sequence[MaskedSpan]]],
    settings: NoisyCounts,
    key: bytes,
    documents: Iterable[str] = (),
) -> NoisyCountsOfCells:
    """Count at most L masked words of each unit, and add the noise."""
    behind = WordsBehindMarkers(spans for _, spans in lines)
    units = behind.lines
    if settings.unit == "document":
        units = _documents(documents, behind.line_count)[units]
    secret = _secret(key, settings, cells, behind, units)
    random = np.random.default_rng(np.frombuffer(_derived(secret, "choice", 32), dtype=np.uint64))
    chosen = _some_of_each(units, settings.words_per_unit, random).tolist()
    added = np.empty(len(chosen), dtype=np.int64)
    for index, marker in enumerate(chosen):
        words = behind.of(marker)
        added[index] = cells.of(words[random.integers(len(words))])
    ratio = math.exp(-settings.epsilon / (2 * settings.words_per_unit))
    counts = np.bincount(added, minlength=len(cells))
    return NoisyCountsOfCells(
        _derived(secret, "name", 8).hex(),
        counts + noise(len(cells), ratio, _derived(secret, "noise", 16 * len(cells))),
        len(chosen),
    )


class Cells:
    """What is counted apart: each word, then all names together, then all that public text does not have."""

    def __init__(self, before: WordFrequencies, kept: KeptWords, public: WordFrequencies, *, count_names: bool) -> None:
        off_list = kept.off_list(before.words)
        folded = [fold(word) for word in before.words]
        candidates = {word for word, off in zip(folded, off_list, strict=True) if off}
        capitals = usual_forms(zip(public.words, public.counts.tolist(), strict=True))
        names = {word for word in candidates - NAMES_OF_NOBODY if word in capitals and not is_letter(word)}
        self._names = set() if count_names else names
        self.words = sorted(candidates - self._names)
        self.names = sorted(self._names)
        self.counted = len(self.words)
        """Words that are counted one by one: the first so many cells."""
        self._index = {word: index for index, word in enumerate(self.words)}
        self.of_form = np.array([self.of(word) if off else -1 for word, off in zip(folded, off_list, strict=True)])
        """Cell of each form of ``before`` (F,), int64; -1 where it is on the list."""
        off = self.of_form >= 0
        self.prior = np.bincount(self.of_form[off], weights=before.counts[off], minlength=len(self))
        """Public count of each cell (C,)."""

    def __len__(self) -> int:
        return self.counted + 2

    def of(self, word: str) -> int:
        """The cell of a folded word."""
        return self._index.get(word, self.counted if word in self._names else self.counted + 1)


def _documents(names: Iterable[str], lines: int) -> np.ndarray:
    """``(lines,)`` int64: a number for each line's document, the same for the same name."""
    numbers: dict[str, int] = {}
    found = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
    if len(found) != lines:
        raise CorpusError(
            f"the sidecar has {lines:,} lines and the documents file {len(found):,}; give the document of every line"
        )
    if len(numbers) == lines:
        raise CorpusError(
            f"each of {lines:,} lines is a document of its own ({len(numbers):,} documents), so unit: document would "
            "protect a line; name the documents of the corpus (document_field), or set unit: line"
        )
    return found


def _secret(key: bytes, settings: NoisyCounts, cells: Cells, behind: WordsBehindMarkers, units: np.ndarray) -> bytes:
    """What chance is made of here: nobody can tell it without the key, and other counts have other noise.

    It is the key's HMAC of the settings, the counted words and names, the unit of each marker and the words behind it.
    """
    digest = hmac.new(key, digestmod="sha256")
    digest.update(json.dumps([settings.model_dump(mode="json"), cells.words, cells.names]).encode())
    digest.update(units.astype("<i8").tobytes())
    for piece in behind.json_pieces():
        digest.update(piece.encode())
    return digest.digest()


def _derived(secret: bytes, purpose: str, length: int) -> bytes:
    return hashlib.shake_256(secret + purpose.encode()).digest(length)


def _some_of_each(unit: np.ndarray, most: int, random: np.random.Generator) -> np.ndarray:
    """Indices of at most ``most`` markers of each unit, drawn at random."""
    order = np.lexsort((random.random(len(unit)), unit))
    first = np.searchsorted(unit[order], unit[order], side="left")
    return np.sort(order[np.arange(len(unit)) - first < most])


def _places(cells: Cells, noisy: NoisyCountsOfCells, ratio: float) -> np.ndarray:
    """``(C,)`` float64: of all counted places, how many each cell is taken to have; 0 for what public text does not."""
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


def _as_counts(before: WordFrequencies, cells: Cells, places: np.ndarray) -> np.ndarray:
    """``(F,)`` int64: the forms of a word share its places as they do in public text; those on the list stay."""
    off = cells.of_form >= 0
    cell = cells.of_form[off]
    counts = before.counts.copy()
    counts[off] = np.maximum(1, np.rint(_SCALE * places[cell] * before.counts[off] / cells.prior[cell]))
    return counts


def _groups(cells: Cells, taken: np.ndarray) -> np.ndarray:
    """``(F,)`` int64: words that were taken one by one, then all names, then all others; -1 for those on the list."""
    group = np.cumsum(taken) - 1  # (C,)
    names = int(np.count_nonzero(taken))
    group[~taken] = names + 1
    group[cells.counted] = names
    return np.where(cells.of_form >= 0, group[cells.of_form], -1)
