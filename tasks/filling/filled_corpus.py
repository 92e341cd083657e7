"""Filling of a whole corpus part by part, once or several times, with the counts for the report.

Filled text may still have private words that were not masked.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tasks.corpora.sidecar import read_sidecar
from tasks.corpora.text_lines import empty_text, is_stream, read_documents, write_lines
from tasks.corpora.words import fold
from tasks.errors import CorpusError
from tasks.files.clone_key import clone_key
from tasks.filling.filled_lines import FilledPart, Part, read_parts
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

    def add(self, part: FilledPart) -> None:
        """Count the lines of a part."""
        self.lines += len(part.lines)
        for sentence, fills in zip(part.sentences, part.fills, strict=True):
            self.markers += sentence.slots[-1].last_marker + 1 if sentence.slots else 0
            self.fills += len(fills)
            for slot, fill in zip(sentence.slots, fills, strict=True):
                self.fallbacks += fill.fallback
                self.off_list += not self.allowed_words.holds(fill.word, slot.kind)
                self.words.add(fold(fill.word))
        if self.restoration is not None:
            self.restoration.add(part.sentences, part.words, part.lines_before)
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
            "restoration_rate": overall.get("rate"),
            "expected_restoration_by_frequency": overall.get("expected_by_frequency"),
            "restoration": restoration,
            **self.counts,
            "filling_seconds": round(self.seconds, 3),
            "forward_seconds": None if self.forward_seconds is None else round(self.forward_seconds, 3),
        }


def fill_corpus(
    prepared: PreparedFill, corpus: Corpus, resources: ResourceSettings, advance: Callable[[int], object]
) -> FilledCorpus:
    """Write the filled text with its copies in sequence; ``advance`` is called with the number of slots just filled.

    Line numbers continue from copy to copy, so each copy has different draws. The first equals a single fill.
    Streams are always filled in this process, without the cluster of ``resources``. Raises ``CorpusError`` if no marker
    was found, so that no raw text becomes a fill.
    """
    files, method, words = corpus.files, prepared.method, prepared.words
    # With counted words, the report too may use the masked words only through the noisy counts.
    sidecar = None if method.counts_masked_words else files.sidecar

    def parts() -> Iterator[Part]:
        before = length = 0
        for _ in range(method.copies):
            before, length = before + length, 0
            spans = read_sidecar(sidecar) if sidecar else None
            documents = read_documents(files.documents) if files.documents else None
            for part in read_parts(corpus.lines(), spans, documents):
                length += len(part.lines)
                yield replace(part, first_line=before + part.first_line, lines_before=before)

    if any(map(is_stream, (files.input, files.output))):
        resources = resources.model_copy(update={"cluster": None})
    restoration = None
    if sidecar:
        generic = None
        if words.counts:
            generic = GenericWords(words.counts.off_list_probabilities(words.allowed_words), words.counts.ranks())
        restoration = Restoration(generic, method.copies)
    done, started = FilledCorpus(words.allowed_words, restoration), time.perf_counter()

    def lines() -> Iterator[str]:
        is_empty = True
        filled = computed(parts(), prepared.work, resources, uses_model=method.uses_filler, advance=advance)
        for part in filled:
            done.add(part)
            is_empty = is_empty and not any(map(str.strip, part.lines))
            yield from part.lines
        if is_empty:
            raise empty_text(files.input)
        if not done.markers:
            raise CorpusError(
                f"{files.input!r} has no marker such as [MASK], so filling would copy it unchanged; give a text that "
                "'palimpsest mask' wrote"
            )

    write_lines(files.output, lines(), private=True)
    done.seconds = time.perf_counter() - started
    return done
