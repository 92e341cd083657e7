"""What the reports of ``palimpsest evaluate-masking`` say of each technique on each gold set."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.errors import CorpusError
from tasks.results.summary.summary_table import technique_name

STAGE = "evaluate_masking"


@dataclass(frozen=True)
class DetectorResult:
    """One technique on one gold set; ``None`` is undefined."""

    technique: str
    """Name for people; with the model where one name stands for several."""
    kind: str
    """``list``, ``tagger`` or ``combination``."""
    gold_set: str
    splits: tuple[str, ...]
    f2: float | None
    """F2 over words."""
    f2_interval: tuple[float, float] | None
    confidence: float
    """Level of the interval."""
    f2_in_scope: float | None
    """The same without masked words of classes that the gold set does not annotate."""
    recall: float | None
    precision: float | None
    span_f2: float | None
    document_recall: float | None
    over_masking: float | None
    """Share of words masked in lines that hold nothing private."""
    words_per_second: float | None
    peak_memory_bytes: int
    model_bytes: int | None
    lines: int
    words: int
    private_words: int
    signature: str
    machine: str
    """Processor and threads."""


def detector_results(reports: Iterable[Mapping[str, Any]]) -> list[DetectorResult]:
    """The results in the reports of that stage, by gold set and then by F2, the best first.

    Raises ``CorpusError`` where there is none, where two follow different protocols, and where a technique has two
    results on one gold set that its model does not tell apart.
    """
    found = [report for report in reports if report["stage"] == STAGE]
    if not found:
        raise CorpusError(
            "the reports hold no evaluation of masking; write some with 'palimpsest evaluate-masking --report FILE'"
        )
    signatures = {report["measured"]["signature"] for report in found}
    if len(signatures) > 1:
        raise CorpusError(
            f"the evaluations of masking follow different protocols ({', '.join(sorted(signatures))}); run them again"
        )
    names = Counter((_name(report), report["measured"]["gold_set"]) for report in found)
    shared = {name for (name, _), count in names.items() if count > 1}
    results = [_result(report, with_model=_name(report) in shared) for report in found]
    for (name, gold_set), count in Counter((result.technique, result.gold_set) for result in results).items():
        if count > 1:
            raise CorpusError(f"the reports hold {count} evaluations of {name!r} on {gold_set!r}; keep one of them")
    return sorted(results, key=lambda result: (result.gold_set, -(result.f2 or 0.0), result.technique))


def _name(report: Mapping[str, Any]) -> str:
    return technique_name(report["measured"]["technique"])


def _model(settings: Mapping[str, Any]) -> str:
    """Model, list or parts of a technique, to tell two of one name apart."""
    tagger = settings.get("tagger")
    if tagger:
        return _base(tagger["model"])
    if "parts" in settings:
        parts = [part.get("tagger", part)["kind"] for part in settings["parts"]]
        return f"{settings['rule']} of {', '.join(parts)}"
    if settings.get("path"):
        return _base(settings["path"])
    return str(settings.get("kept_words", "shipped list"))


def _base(model: str) -> str:
    """A hub name as it is, of a longer path its last part: where a folder lies on a machine is nobody's business."""
    return model if model.count("/") < 2 and not model.startswith((".", "/", "~")) else Path(model).name


def _kind(settings: Mapping[str, Any]) -> str:
    if settings["kind"] == "combination":
        return "combination"
    return "tagger" if "tagger" in settings else "list"


def _result(report: Mapping[str, Any], *, with_model: bool) -> DetectorResult:
    measured, settings = report["measured"], report["parameters"]["technique"]
    token = measured["token"]
    interval = token["f2_ci"]
    threads = measured["threads"]
    return DetectorResult(
        technique=_name(report) + (f" ({_model(settings)})" if with_model else ""),
        kind=_kind(settings),
        gold_set=measured["gold_set"],
        splits=tuple(dict.fromkeys(file["split"] for file in measured["files"] if file["split"])),
        f2=token["f2"],
        f2_interval=(interval[0], interval[1]) if interval else None,
        confidence=measured["confidence"],
        f2_in_scope=measured["token_in_scope"]["f2"],
        recall=token["recall"],
        precision=token["precision"],
        span_f2=measured["span"]["f2"],
        document_recall=measured["document"]["recall"],
        over_masking=measured["lines_without_private_words"]["masked_share"],
        words_per_second=measured["words_per_second"],
        peak_memory_bytes=measured["peak_memory_bytes"],
        model_bytes=measured["model_bytes"],
        lines=measured["lines"],
        words=measured["words"],
        private_words=measured["private_words"],
        signature=measured["signature"],
        machine=f"{report['environment']['processor']}, {threads} thread{'s' if threads > 1 else ''}",
    )
