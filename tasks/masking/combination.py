"""Several techniques at once: what any of them, all of them, or most of them find (paper, future work).

All techniques find words of ``tasks.corpora.words``, so what they find is the same word where start and end are the
same. With n techniques a word is masked if at least m of them find it:

- **union**: m = 1. Nothing that one technique finds is missed.
- **intersection**: m = n. A list alone masks too much; what a tagger says as well is left.
- **majority**: more than half, m = n // 2 + 1; with two techniques that is their intersection.

**Class** of a word that several find: a tagger has seen the sentence and goes before a list, which knows the word's
shape alone; a class goes before ``MASK``; among equals the earlier part decides. The source names all that found it.

**Kept words.** The off-list rule of filling (paper 3.2) rests on this: a masked word was not on the list. Here a word
is never masked, whatever the taggers say, if fewer than m parts can find it, which is so if at least n - m + 1 lists
hold it. Those are the kept words of the whole: for a union of lists the words on all of them, for an intersection the
words on any of its lists. Where there are fewer lists than that, the taggers alone are enough to mask any word: there
are no kept words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import tee
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union

from pydantic import Field, model_validator

from tasks.corpora.words import word_spans
from tasks.errors import ModelError
from tasks.languages.segmentation import DIVIDED
from tasks.masking.every_tagger import EveryTagger
from tasks.masking.lists.allow_list import AllowList
from tasks.masking.lists.language_lists import LanguageLists
from tasks.masking.lists.vocabulary_threshold import VocabularyThreshold
from tasks.masking.settings import TechniqueSettings
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.masking.technique import Finding, KeptWord, Technique
from tasks.settings.base import any_of

Rule = Literal["union", "intersection", "majority"]
GROUP = "palimpsest.techniques"
"""Entry points of other packages: settings classes of techniques."""
PARTS = (AllowList, VocabularyThreshold, LanguageLists, EntityTagger, EveryTagger)
"""What can be a part of a combination, beside the techniques of other packages and combinations."""
if TYPE_CHECKING:
    AnyPart = TechniqueSettings
else:
    AnyPart = Annotated[Union[any_of(GROUP, PARTS), "Combination"], Field(discriminator="kind")]


class Combination(TechniqueSettings):
    """Mask by several techniques at once: what any of them, all of them, or most of them find."""

    sentence: ClassVar[str] = "Mask what any, all or most of several techniques find."
    kind: Literal["combination"]
    rule: Rule
    """``majority``: more than half of the parts."""
    parts: list[AnyPart] = Field(min_length=2)
    """The techniques, each with its settings; combinations may be among them."""

    @model_validator(mode="after")
    def _parts_write_no_markers(self) -> "Combination":
        if any("markers" in part.model_fields_set for part in self.parts):
            raise ValueError("parts: 'markers' is a setting of the combination, not of its parts")
        if any(isinstance(part, LanguageLists) and DIVIDED.intersection(part.lists) for part in self.parts):
            raise ValueError("parts: language_lists divides Chinese and Japanese as no other part does; it masks alone")
        return self

    def build(self, word_counts: str | None, threads: int) -> "CombinedTechniques":
        """With all parts ready."""
        return CombinedTechniques([part.build(word_counts, threads) for part in self.parts], self.rule)

    @property
    def files(self) -> list[str]:
        """Those of all parts."""
        return [file for part in self.parts for file in part.files]

    @property
    def reads_word_counts(self) -> bool:
        """Whether any part does."""
        return any(part.reads_word_counts for part in self.parts)


class CombinedTechniques(Technique):
    """Mask what enough techniques find."""

    def __init__(self, parts: Sequence[Technique], rule: Rule) -> None:
        """``parts`` in the order that decides about classes; two or more."""
        self.name = "combination"
        self._parts, self._rule = list(parts), rule
        self._needed = {"union": 1, "intersection": len(parts), "majority": len(parts) // 2 + 1}[rule]
        self.kept_words = _never_masked(self._parts, self._needed)
        self.is_by_line = all(part.is_by_line for part in parts)
        self.is_costly = any(part.is_costly for part in parts)
        self._found: Counter[int] = Counter()
        # Of the parts that know their languages, those that all of them know.
        known = [set(part.languages) for part in parts if part.languages]
        self.languages = tuple(sorted(set.intersection(*known))) if known else ()
        self.mixes = next((part.mixes for part in parts if part.mixes), ())
        self._agreements: Counter[int] = Counter()

    def findings(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding]]]:
        """The words that enough parts find.

        The parts read one stream in step: each gives one line before any gives its next. What is held of the text is
        what the part with the largest batches has read ahead, however long the stream is.
        """
        for part in self._parts:
            part.lines_before = self.lines_before
        streams = tee(lines, len(self._parts))
        results = [part.findings(stream) for part, stream in zip(self._parts, streams, strict=True)]
        for line, of_parts in self._in_step(results):
            found: dict[tuple[int, int], list[tuple[int, Finding]]] = {}
            for index, findings in enumerate(of_parts):
                self._found[index] += len(findings)
                for finding in findings:
                    found.setdefault((finding.start, finding.end), []).append((index, finding))
            self._agreements.update(map(len, found.values()))
            yield (
                line,
                [self._joined(by_parts) for _, by_parts in sorted(found.items()) if len(by_parts) >= self._needed],
            )

    def explain(self, lines: Iterable[str]) -> Iterator[tuple[str, list[Finding | KeptWord]]]:
        """Each line with all of its words, and what every part says of them."""
        streams = tee(lines, len(self._parts))
        results = [part.explain(stream) for part, stream in zip(self._parts, streams, strict=True)]
        for line, of_parts in self._in_step(results):
            explained: list[Finding | KeptWord] = []
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
        """Each line with what each part says of it; ``ModelError`` where a part lost a line or changed one."""
        missing = ("", None)
        number = self.lines_before
        while True:
            number += 1
            of_parts = [next(result, missing) for result in results]
            if all(result is missing for result in of_parts):
                return
            line = next(result for result in of_parts if result is not missing)[0]
            for part, result in zip(self._parts, of_parts, strict=True):
                if result is missing or result[0] != line:
                    raise ModelError(
                        f"combination: line {number}: the part {part.name} did not give back the line that it read; "
                        "its model or plug-in is damaged"
                    )
            yield line, [result[1] for result in of_parts]

    def _joined(self, by_parts: list[tuple[int, Finding]]) -> Finding:
        """One finding of those that several parts have of one word."""
        _, decisive = min(by_parts, key=lambda item: (self._rank(item), item[0]))
        if len(by_parts) == 1:
            return decisive
        source = "+".join(finding.source for _, finding in by_parts)
        reason = "; ".join(finding.reason for _, finding in by_parts if finding.reason)
        language = next((finding.language for _, finding in by_parts if finding.language), None)
        return replace(decisive, source=source, reason=reason, language=language)

    def _rank(self, item: tuple[int, Finding]) -> int:
        """0 for a class that a tagger gives, 1 for one by the word's shape, 2 for ``MASK``."""
        index, finding = item
        if finding.label == "MASK":
            return 2
        return 0 if self._parts[index].kept_words is None else 1

    def in_force(self) -> dict[str, Any]:
        """The rule, how often the parts agreed, and what each part worked with."""
        return {
            "rule": self._rule,
            "parts_needed": self._needed,
            "words_found_by_parts": {str(count): self._agreements[count] for count in range(1, len(self._parts) + 1)},
            "parts": [
                {"technique": part.name, "found_words": self._found[index], **part.in_force()}
                for index, part in enumerate(self._parts)
            ],
        }

    def counters(self) -> list[Counter[Any]]:
        """Words by part, agreements, and what the parts count."""
        return [self._found, self._agreements, *(counter for part in self._parts for counter in part.counters())]

    def announcements(self) -> list[str]:
        """Those of the parts."""
        return list(dict.fromkeys(line for part in self._parts for line in part.announcements()))


def _never_masked(parts: Sequence[Technique], needed: int) -> frozenset[str] | None:
    """Words on so many lists that too few parts are left to mask them; ``None`` where there are too few lists."""
    lists = [part.kept_words for part in parts if part.kept_words is not None]
    holders = len(parts) - needed + 1
    if len(lists) < holders:
        return None
    counts = Counter(word for kept_words in lists for word in kept_words)
    return frozenset(word for word, count in counts.items() if count >= holders)


def _said(word: Finding | KeptWord) -> str:
    """What a part says of a word, with its score."""
    score = f" ({word.score:.2f})" if isinstance(word, Finding) and word.score is not None else ""
    return f"{word.reason}{score}"
