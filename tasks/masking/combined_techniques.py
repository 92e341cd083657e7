"""Several techniques at once: mask the words that any, all or most of them find (paper, future work).

All techniques find words of ``tasks.corpora.words``. So two findings are the same word if start and end are the same.
With n techniques a word is masked if at least m of them find it:

- **union**: m = 1. No finding of any technique is missed.
- **intersection**: m = n. A list alone masks too much; a tagger must confirm the word.
- **majority**: more than half, m = n // 2 + 1; with two techniques that is their intersection.

**Class** of a word that several techniques find: a tagger goes before a list, since a list knows only the word's shape.
A class goes before ``MASK``; among equals the earlier part decides. The source names all parts that found the word.

**Never-masked words.** The off-list rule of filling (paper 3.2) needs them: a masked word was not on the list. Here a
word is never masked, by any tagger, if fewer than m parts can find it. That is so if at least n - m + 1 lists hold it:
for a union of lists the words on all of them, for an intersection the words on any of them. With fewer lists than that,
the taggers alone can mask any word, so there are no never-masked words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import tee, zip_longest
from typing import Any, Literal

from tasks.corpora.words import word_spans
from tasks.errors import ModelError
from tasks.masking.technique import Explained, Finding, KeptWord, Technique

Rule = Literal["union", "intersection", "majority"]


class CombinedTechniques(Technique):
    """Mask the words that enough techniques find."""

    def __init__(self, parts: Sequence[Technique], rule: Rule) -> None:
        """``parts``: two or more; the earlier part decides about classes."""
        self.name = "combination"
        self._parts, self._rule = list(parts), rule
        self._needed = {"union": 1, "intersection": len(parts), "majority": len(parts) // 2 + 1}[rule]
        self.allowed_words = _never_masked(self._parts, self._needed)
        self.is_by_line = all(part.is_by_line for part in parts)
        self.is_costly = any(part.is_costly for part in parts)
        # Languages that every part knows, among the parts that declare their languages.
        known = [set(part.languages) for part in parts if part.languages]
        self.languages = tuple(sorted(set.intersection(*known))) if known else ()
        self.mixes = next((part.mixes for part in parts if part.mixes), ())

    def findings(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding]]]:
        """Each line with the words that enough parts find.

        The parts read one stream in step: each yields a line before any yields its next. So memory holds only the lines
        that the part with the largest batches has read ahead, for a stream of any length.
        """
        streams = tee(lines, len(self._parts))
        results = [part.findings(stream) for part, stream in zip(self._parts, streams, strict=True)]
        for line, of_parts in self._in_step(results):
            found: dict[tuple[int, int], list[tuple[int, Finding]]] = {}
            for index, findings in enumerate(of_parts):
                for finding in findings:
                    found.setdefault((finding.start, finding.end), []).append((index, finding))
            enough = (by_parts for _, by_parts in sorted(found.items()) if len(by_parts) >= self._needed)
            yield line, list(map(self._joined, enough))

    def learn(self, lines: Iterable[str]) -> None:
        """Let each part learn."""
        held = list(lines)
        for part in self._parts:
            part.learn(held)

    def explain(self, lines: Iterable[str]) -> Iterator[tuple[str, Explained]]:
        """Each line with all of its words and every part's reason."""
        streams = tee(lines, len(self._parts))
        results = [part.explain(stream) for part, stream in zip(self._parts, streams, strict=True)]
        for line, of_parts in self._in_step(results):
            explained: Explained = []
            for span, judgements in zip(word_spans(line), zip(*of_parts, strict=True), strict=True):
                by_parts = [(index, word) for index, word in enumerate(judgements) if isinstance(word, Finding)]
                said = "; ".join(map(_said, judgements))
                reason = f"found by {len(by_parts)} of {len(self._parts)}, {self._needed} needed: {said}"
                if len(by_parts) >= self._needed:
                    joined = self._joined(by_parts)
                    explained.append(replace(joined, reason=reason))
                else:
                    explained.append(KeptWord(*span, reason))
            yield line, explained

    def _in_step(self, results: list[Iterator[tuple[str, Any]]]) -> Iterator[tuple[str, list[Any]]]:
        """Each line with the result of each part; ``ModelError`` where a part lost or changed a line."""
        for number, of_parts in enumerate(zip_longest(*results, fillvalue=(None, None)), start=1):
            lines, found = zip(*of_parts, strict=True)
            for part, line in zip(self._parts, lines, strict=True):
                if line is None or line != lines[0]:
                    raise ModelError(
                        f"combination: line {number}: the part {part.name} or an earlier one did not give back the "
                        "line that it read; its model or plug-in is damaged"
                    )
            yield lines[0], list(found)

    def _joined(self, by_parts: list[tuple[int, Finding]]) -> Finding:
        """One finding from those of several parts for one word."""
        _, decisive = min(by_parts, key=lambda item: (self._rank(item), item[0]))
        if len(by_parts) == 1:
            return decisive
        source = "+".join(finding.source for _, finding in by_parts)
        reason = "; ".join(finding.reason for _, finding in by_parts if finding.reason)
        language = next((finding.language for _, finding in by_parts if finding.language), None)
        return replace(decisive, source=source, reason=reason, language=language)

    def _rank(self, item: tuple[int, Finding]) -> int:
        """0 for a class from a tagger, 1 for a class from the word's shape, 2 for ``MASK``."""
        index, finding = item
        if finding.label == "MASK":
            return 2
        return 0 if self._parts[index].allowed_words is None else 1

    def announcements(self) -> list[str]:
        """The announcements of the parts."""
        return list(dict.fromkeys(line for part in self._parts for line in part.announcements()))


def _never_masked(parts: Sequence[Technique], needed: int) -> frozenset[str] | None:
    """The words on so many lists that too few parts are left to mask them; ``None`` with too few lists."""
    lists = [part.allowed_words for part in parts if part.allowed_words is not None]
    holders = len(parts) - needed + 1
    if len(lists) < holders:
        return None
    counts = Counter(word for allowed_words in lists for word in allowed_words)
    return frozenset(word for word, count in counts.items() if count >= holders)


def _said(word: Finding | KeptWord) -> str:
    """A part's reason for a word, with its score."""
    score = f" ({word.score:.2f})" if isinstance(word, Finding) and word.score is not None else ""
    return f"{word.reason}{score}"
