"""The file of a system's errors by utterance: ids and numbers only, so that systems can be compared later.

The file is tab-separated: first ``# `` and the signature of the protocol, then the names of the columns, then the
utterances in the order of their ids. Masked words have three further columns for each technique:
``masked:allow_list:units``, ``masked:allow_list:errors`` and ``masked:allow_list:hits``.
"""

from pathlib import Path

import numpy as np

from tasks.corpora.text_lines import read_lines, write_lines
from tasks.errors import SpeechError
from tasks.language_model.evaluation.protocol import normalisation_name
from tasks.speech.word_errors.word_errors import MASKED, ErrorCounts, UtteranceErrors

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
