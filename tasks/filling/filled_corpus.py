"""Filling of a whole corpus part by part, once or several times, with the counts for the report.

Filled text may still have private words that were not masked.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tasks.corpora.masked_text import count_markers
from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import empty_text, read_documents, write_lines
from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.files.clone_key import clone_key
from tasks.filling.filled_lines import FilledPart, parts_of
from tasks.filling.frequencies.word_frequencies import AllowedWords
from tasks.filling.prepared_fill import Corpus, PreparedFill
from tasks.filling.restoration import GenericWords, Restoration, Rounding
from tasks.parts import computed
from tasks.settings.resources import ResourceSettings


@dataclass
class FilledCorpus:
    """Counts of a filled corpus."""

    allowed_words: AllowedWords
    restoration: Restoration | None
    """``None`` if no sidecar is read."""
    lines: int = 0
    markers: int = 0
    fills: int = 0
    fallbacks: int = 0
    off_list: int = 0
    words: set[str] = field(default_factory=set)
    """Different fills, folded."""
    counts: Counter[str] = field(default_factory=Counter)
    """Counts of the filler."""
    candidate_words: int | None = None
    """Number of words that the filler chooses from."""
    seconds: float = 0.0
    forward_seconds: float | None = None
    """Seconds in the model, summed over workers; ``None`` without a model."""

    def add(self, part: FilledPart, in_copy: int) -> None:
        """Count the lines of a part; ``in_copy``: number of lines in the earlier copies of the corpus."""
        self.lines += len(part.lines)
        for sentence, fills in zip(part.sentences, part.fills, strict=True):
            self.markers += sentence.slots[-1].last_marker + 1 if sentence.slots else 0
            self.fills += len(fills)
            for slot, fill in zip(sentence.slots, fills, strict=True):
                self.fallbacks += fill.fallback
                self.off_list += not self.allowed_words.holds(fill.word, slot.language)
                self.words.add(fold(fill.word))
        if self.restoration is not None:
            self.restoration.add(part.sentences, part.words, in_copy)
        self.counts.update(part.counts)
        self.candidate_words = part.candidate_words
        if part.forward_seconds is not None:
            self.forward_seconds = (self.forward_seconds or 0.0) + part.forward_seconds

    def measured(self) -> dict[str, Any]:
        """Figures for the report. Figures that need the sidecar are rounded."""
        restoration, overall = None, {}
        if self.restoration is not None:
            sums = {name: getattr(self, name) for name in ("lines", "markers", "fills", "fallbacks", "off_list")}
            counted = {
                **sums,
                "words": sorted(self.words),
                "counts": dict(self.counts),
                "candidate_words": self.candidate_words,
                "restoration": self.restoration.counted(),
            }
            restoration = self.restoration.measured(Rounding(clone_key("restoration"), counted))
            overall = restoration["overall"]
        return {
            "lines": self.lines,
            "markers": self.markers,
            "fills": self.fills,
            "fallback_count": self.fallbacks,
            "distinct_fills": len(self.words),
            "off_list_share": self.off_list / self.fills if self.fills and self.allowed_words else None,
            "allowed_words": len(self.allowed_words),
            "candidate_words": self.candidate_words,
            "restoration_rate": overall.get("rate"),
            "expected_restoration_by_frequency": overall.get("expected_by_frequency"),
            "restoration": restoration,
            **self.counts,
            **self._class_match_rates(),
            "filling_seconds": round(self.seconds, 3),
            "markers_per_second": round(self.markers / self.seconds, 1) if self.markers else None,
            "forward_seconds": None if self.forward_seconds is None else round(self.forward_seconds, 3),
        }

    def _class_match_rates(self) -> dict[str, float | None]:
        """Shares of the slots with a class whose fill has it, after the first choice and at the end; empty without a
        check of classes."""
        slots = self.counts.get("class_slots")
        if slots is None:
            return {}
        names = ("class_match_rate_first", "class_matches_first"), ("class_match_rate", "class_matches")
        return {rate: self.counts[matches] / slots if slots else None for rate, matches in names}


def fill_corpus(
    prepared: PreparedFill, corpus: Corpus, resources: ResourceSettings, advance: Callable[[int], object]
) -> FilledCorpus:
    """Write the filled text with its copies in sequence; ``advance`` is called with the number of slots just filled.

    Line numbers continue from copy to copy, so each copy has different draws. The first equals a single fill. Raises
    ``CorpusError`` if there is no marker, so that no raw text becomes a fill.
    """
    files, method, words, lines = corpus.files, prepared.method, prepared.words, corpus.masked
    if not any(map(str.strip, lines)):
        raise empty_text(files.input)
    if not any(map(count_markers, lines)):
        raise CorpusError(
            f"{files.input!r} has no marker such as [MASK], so filling would copy it unchanged; give a text that "
            "'palimpsest mask' wrote"
        )
    # With counted words, the report too may use the masked words only through the noisy counts.
    spans = list(read_sidecar(files.sidecar)) if files.sidecar and not method.counts_masked_words else None
    documents = list(read_documents(files.documents)) if files.documents else None
    restoration = None
    if spans is not None:
        generic = None
        if words.counts:
            generic = GenericWords(words.counts.off_list_probabilities(words.allowed_words), words.counts.ranks())
        restoration = Restoration(generic, method.copies)
    done, started = FilledCorpus(words.allowed_words, restoration), time.perf_counter()
    before = range(0, method.copies * len(lines), len(lines))
    parts = (part for first in before for part in parts_of(lines, spans, documents, first + 1))

    def filled() -> Iterator[str]:
        for part in computed(parts, prepared.work, resources, uses_model=method.uses_filler, advance=advance):
            done.add(part, done.lines // len(lines) * len(lines))
            yield from part.lines

    write_lines(files.output, filled(), private=True)
    done.seconds = time.perf_counter() - started
    return done
