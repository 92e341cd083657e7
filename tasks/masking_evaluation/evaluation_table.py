"""The scores of an evaluation as a table for the terminal, and a private file of errors.

The file has the words on which a technique and the gold disagree, in context, for developers: private text, mode 0600.
JSON lines: ``{"file", "line", "kind", "word", "label", "class", "source", "reason", "context"}``. ``kind`` is
``missed`` (private, not masked) or ``over-masked`` (masked, not private); the word is in double brackets.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.corpora.text_lines import write_lines
from tasks.masking_evaluation.evaluation import GoldFile
from tasks.masking_evaluation.judged_line import JudgedLine

_LEVELS = (
    ("token", "token"),
    ("token_in_scope", "token, in scope"),
    ("span", "span"),
    ("entity", "entity"),
    ("document", "document"),
    ("typed", "token, right class"),
)


def evaluation_table(measured: Mapping[str, Any]) -> str:
    """Levels, labels and costs, one below the other, without a line end at the end."""
    lines = [
        f"{measured['technique']} on {measured['gold_set']}: {measured['lines']:,} lines, {measured['words']:,} words, "
        f"{measured['private_words']:,} private, {measured['token']['masked_words']:,} masked",
        "",
        f"{'':<22}{'recall':>8}{'precision':>11}{'F2':>8}",
    ]
    for key, name in _LEVELS:
        scores = measured[key]
        row = f"{name:<22}{_rate(scores['recall']):>8}{_rate(scores['precision']):>11}{_rate(scores['f2']):>8}"
        interval = scores.get("f2_ci")
        if interval:
            row += f"  [{interval[0]:.3f}, {interval[1]:.3f}]"
        lines.append(row)
    lines += ["", f"{'label':<22}{'class':<15}{'token recall':>13}{'span recall':>13}{'spans':>8}"]
    for label, row_of in measured["per_type"].items():
        lines.append(
            f"{label:<22}{row_of['class'] or 'none':<15}{_rate(row_of['token_recall']):>13}"
            f"{_rate(row_of['span_recall']):>13}{row_of['spans']:>8,}"
        )
    lines += ["", _over_masked("lines without private words", measured["lines_without_private_words"])]
    if measured["clean_text"]:
        lines.append(_over_masked("clean text", measured["clean_text"]))
    if measured["token_in_scope"]["classes_out_of_scope"]:
        lines.append(
            f"{measured['token_in_scope']['words_out_of_scope']:,} masked words are of classes that the gold does not "
            f"annotate: {', '.join(measured['token_in_scope']['classes_out_of_scope'])}"
        )
    if measured["spans_without_words"]:
        lines.append(f"{measured['spans_without_words']:,} gold spans cover no word and are not counted")
    lines += [
        f"{_count(measured['words_per_second'])} words/s, loaded in {measured['load_seconds']:.1f} s, "
        f"peak memory {_megabytes(measured['peak_memory_bytes'])}, model {_megabytes(measured['model_bytes'])}",
        measured["signature"],
    ]
    return "\n".join(lines)


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _megabytes(value: int | None) -> str:
    if value is None:
        return "–"
    return f"{value / 1e6:,.0f} MB" if value >= 1_000_000 else f"{value / 1e3:,.0f} kB"


def _over_masked(where: str, counts: Mapping[str, Any]) -> str:
    masked = "undefined" if counts["masked_share"] is None else f"{counts['masked_share']:.2%}"
    return f"over-masking, {where}: {masked} ({counts['masked_words']:,} of {counts['words']:,} words)"


_CONTEXT = 60


def write_errors(path: str, files: Sequence[GoldFile], judged: Sequence[Sequence[JudgedLine]]) -> None:
    """Write one line per word."""
    records = (
        {"file": file.path, **record}
        for file, lines in zip(files, judged, strict=True)
        for line in lines
        for record in errors_of(line)
    )
    write_lines(path, (json.dumps(record, ensure_ascii=False) for record in records), private=True)


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
