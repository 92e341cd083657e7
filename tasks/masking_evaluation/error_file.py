"""The words on which a technique and the gold disagree, in context, for developers: private text, mode 0600.

JSON lines: ``{"file", "line", "kind", "word", "label", "class", "source", "reason", "context"}``. ``kind`` is
``missed`` (private, not masked) or ``over-masked`` (masked, not private); the word stands in double brackets.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tasks.corpora.text_lines import write_lines
from tasks.masking_evaluation.evaluation import GoldFile
from tasks.masking_evaluation.judged_line import JudgedLine

_CONTEXT = 60


def write_errors(path: str, files: Sequence[GoldFile], judged: Sequence[Sequence[JudgedLine]]) -> int:
    """Write one line per word; returns how many."""
    records = (
        {"file": file.path, **record}
        for file, lines in zip(files, judged, strict=True)
        for line in lines
        for record in errors_of(line)
    )
    return write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records), private=True)


def errors_of(line: JudgedLine) -> Iterator[dict[str, Any]]:
    """The missed and the over-masked words of a line, in order."""
    for (start, end), span, finding in zip(line.words, line.gold, line.findings, strict=True):
        if (span is None) == (finding is None):
            continue
        before, after = line.text[max(start - _CONTEXT, 0) : start], line.text[end : end + _CONTEXT]
        yield {
            "line": line.number,
            "kind": "missed" if finding is None else "over-masked",
            "word": line.text[start:end],
            "label": span.label if span else None,
            "class": finding.label if finding else None,
            "source": finding.source if finding else None,
            "reason": finding.reason if finding else None,
            "context": f"{before}[[{line.text[start:end]}]]{after}",
        }
