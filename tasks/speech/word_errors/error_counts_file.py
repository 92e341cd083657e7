"""Files of a system's errors: ids and numbers only, so that systems can be compared later, and the errors themselves.

The file of numbers is tab-separated: first ``# `` and the signature of the protocol, then the names of the columns,
then the utterances in the order of their ids. Masked words have three further columns for each technique:
``masked:allow_list:units``, ``masked:allow_list:errors`` and ``masked:allow_list:hits``.

In the other, to be read by eye, reference and hypothesis stand one above the other, utterance by utterance.

    84-121123-0001  4 errors in 7 words
      ref  the quilter *** is [anna] not here
      hyp  the quilt   her is ann    not ****
               S       I      S          D

Recognised utterances are left out. What a technique masks stands in brackets. This file holds what was said, so it is
private.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import line_writer, read_lines, write_lines
from tasks.errors import SpeechError
from tasks.language_model.evaluation.protocol import normalisation_name
from tasks.language_model.normalisation import normalise
from tasks.speech.word_errors.word_errors import (
    DELETE,
    EQUAL,
    INSERT,
    MASKED,
    ErrorCounts,
    MaskedPlaces,
    Stretch,
    UtteranceErrors,
    align_words,
)

COLUMNS = (
    "words", "hits", "insertions", "deletions", "substitutions", "characters", "character_errors", "missing",
)  # fmt: skip
_ENDS = ("units", "errors", "hits")


def signature(errors: UtteranceErrors) -> str:
    """The protocol in one line: fields with their names, divided by ``|``; numbers compare where it is the same."""
    return "|".join(
        (
            "wer",
            "unit=word",
            f"norm={normalisation_name()}",
            "alignment=fewest_edits",
            "missing=deleted",
            f"utterances={len(errors.utterance_ids)}",
            f"empty_references={errors.empty_references}",
        )
    )


def write_errors(path: str | Path, errors: UtteranceErrors) -> None:
    """Write the counts of every utterance; mode 0600.

    Raises ``SpeechError`` where an id holds a tab or a line end.
    """
    for name in errors.utterance_ids:
        if set(name) & set("\t\r\n"):
            raise SpeechError(f"utterance_id {name!r} holds a tab or a line end; rename the utterance")
    columns = {name: getattr(errors, name).astype(np.int64) for name in COLUMNS}
    for name, counts in errors.groups.items():
        columns |= {f"{name}:{end}": getattr(counts, end) for end in _ENDS}
    rows = zip(errors.utterance_ids, *(map(str, column.tolist()) for column in columns.values()), strict=True)
    header = "\t".join(["utterance_id", *columns])
    write_lines(path, [f"# {signature(errors)}", header, *("\t".join(row) for row in rows)], private=True)


def read_errors(path: str | Path) -> tuple[UtteranceErrors, str]:
    """Read a file of errors: the counts and the signature of the protocol they follow.

    Raises ``SpeechError`` with the line that is not what it should be.
    """
    if not Path(path).is_file():
        raise SpeechError(f"file of errors {str(path)!r} does not exist; give one written with --counts")
    lines = list(read_lines(path))
    names = lines[1].split("\t") if len(lines) > 1 else []
    fixed = ["utterance_id", *COLUMNS]
    groups = list(dict.fromkeys(name.rpartition(":")[0] for name in names[len(fixed) :]))
    wanted = [*fixed, *(f"{group}:{end}" for group in groups for end in _ENDS)]
    fits = names == wanted and all(group.startswith(f"{MASKED}:") for group in groups)
    if len(lines) < 3 or not lines[0].startswith("# wer|") or not fits:
        raise SpeechError(f"{str(path)!r} is no file of errors; 'palimpsest word-error-rate --counts FILE' writes one")
    mark = lines[0][2:]
    ids, rows = [], []
    for number, line in enumerate(lines[2:], start=3):
        name, *cells = line.split("\t")
        try:
            rows.append([int(cell) for cell in cells])
        except ValueError:
            rows.append([])
        if len(rows[-1]) != len(wanted) - 1:
            raise SpeechError(
                f"{str(path)!r}: line {number} does not hold the {len(wanted) - 1} counts of an utterance"
            )
        ids.append(name)
    table = dict(zip(wanted[1:], np.array(rows, dtype=np.int64).T, strict=True))
    fields = dict(part.partition("=")[::2] for part in mark.split("|"))
    errors = UtteranceErrors(
        utterance_ids=tuple(ids),
        **{name: table[name] for name in COLUMNS if name != "missing"},
        missing=table["missing"] > 0,
        empty_references=int(fields.get("empty_references", 0)),
        groups={group: ErrorCounts(*(table[f"{group}:{end}"] for end in _ENDS)) for group in groups},
    )
    return errors, mark


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
