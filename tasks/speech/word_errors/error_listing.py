"""A system's errors to be read by eye: reference and hypothesis one above the other, utterance by utterance.

    84-121123-0001  4 errors in 7 words
      ref  the quilter *** is [anna] not here
      hyp  the quilt   her is ann    not ****
               S       I      S          D

Recognised utterances are left out. What a technique masks stands in brackets. The file holds what was said, so it is
private.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import line_writer
from tasks.language_model.normalisation import normalise
from tasks.speech.word_errors.alignment import DELETE, EQUAL, INSERT, Stretch, align_words
from tasks.speech.word_errors.word_errors import MaskedPlaces, UtteranceErrors

_WIDTH = 110
_MARKS = {EQUAL: "", DELETE: "D", INSERT: "I"}
_SUBSTITUTED = "S"


def write_listing(
    path: str | Path,
    errors: UtteranceErrors,
    references: Mapping[str, str],
    hypotheses: Mapping[str, str],
    masked: MaskedPlaces | None = None,
) -> int:
    """Write the utterances with errors, the worst first; mode 0600. Returns how many they are."""
    wrong = [index for index in np.argsort(-errors.errors, kind="stable") if errors.errors[index]]
    names = [errors.utterance_ids[index] for index in wrong]
    spoken = [normalise(references[name]) for name in names]
    heard = [normalise(hypotheses.get(name, "")) for name in names]
    with line_writer(path, private=True) as stream:
        stream.write(_heading(errors))
        alignments = align_words(spoken, heard)
        for index, name, said, got, stretches in zip(wrong, names, spoken, heard, alignments, strict=True):
            missing = ", no hypothesis" if errors.missing[index] else ""
            count = int(errors.errors[index])
            stream.write(f"\n{name}  {count} {'error' if count == 1 else 'errors'} in {len(said)} words{missing}\n")
            brackets = np.zeros(len(said), dtype=bool)
            for places in (masked or {}).values():
                brackets |= places[name]
            shown = [f"[{word}]" if bracket else word for word, bracket in zip(said, brackets, strict=True)]
            stream.writelines(f"  {line}\n" for line in _rows(shown, got, stretches))
    return len(names)


def _heading(errors: UtteranceErrors) -> str:
    wrong, words = int(errors.errors.sum()), int(errors.words.sum())
    return (
        f"{wrong:,} errors in {words:,} words ({wrong / words:.2%}): {errors.insertions.sum():,} insertions (I), "
        f"{errors.deletions.sum():,} deletions (D), {errors.substitutions.sum():,} substitutions (S)\n"
    )


def _columns(said: list[str], heard: list[str], stretches: Iterable[Stretch]) -> Iterator[tuple[str, str, str]]:
    for stretch in stretches:
        mark = _MARKS.get(stretch.kind, _SUBSTITUTED)
        above = [said[place] for place in stretch.reference]
        below = [heard[place] for place in stretch.hypothesis]
        for place in range(max(len(above), len(below))):
            one = above[place] if above else "*" * len(below[place])
            other = below[place] if below else "*" * len(above[place])
            yield one, other, mark


def _rows(said: list[str], heard: list[str], stretches: Iterable[Stretch]) -> Iterator[str]:
    """Three rows for each ``_WIDTH`` characters of an alignment."""
    rows = ["ref  ", "hyp  ", "     "]
    for column in _columns(said, heard, stretches):
        width = max(map(len, column))
        if len(rows[0]) + width > _WIDTH:
            yield from (row.rstrip() for row in rows)
            rows = ["ref  ", "hyp  ", "     "]
        rows = [f"{row}{cell:<{width}} " for row, cell in zip(rows, column, strict=True)]
    yield from (row.rstrip() for row in rows)
