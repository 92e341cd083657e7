"""How fast this machine is: from the reports of stages that ran on it, from its GPU benchmark, or by assumption.

All training and scoring by models is counted in floating-point operations: 6 a parameter and token for training,
2 for scoring (Kaplan et al. 2020, section 2.1). A rate is what the machine reaches of them in practice.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.doctor.machine import Machine
from tasks.records.stage_report import environment

TRAINING_FACTOR, SCORING_FACTOR = 6, 2

_PEAKS = (
    ("B200", 2250e12),
    ("H200", 989e12),
    ("H100", 989e12),
    ("GH200", 989e12),
    ("A100", 312e12),
    ("L40S", 362e12),
    ("RTX 4090", 165e12),
    ("RTX 3090", 71e12),
    ("A10", 125e12),
    ("V100", 125e12),
    ("T4", 65e12),
)
"""Published dense bfloat16 (or float16) matrix rates in operations a second."""
_UNKNOWN_PEAK = 100e12
_TRAINING_SHARE, _FILLING_SHARE = 0.35, 0.15
"""Assumed shares of that peak that training and filling reach."""
_CORE_TRAINING, _CORE_FILLING = 1e11, 1e11
"""Assumed operations a second of one thread."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Operations or words a second, and where the number is from."""

    value: float
    basis: str


@dataclass(frozen=True, slots=True)
class Rates:
    """Of one process on this machine; training on several devices is faster by their number."""

    training: Rate
    """Operations a second of training."""
    filling: Rate
    """Operations a second of filling and scoring."""
    list_masking: Rate
    """Words a second."""
    tagging: dict[str, Rate]
    """Words a second by the kind of a tagger."""
    control_filling: Rate
    """Markers a second without a model."""


def measured_rates(machine: Machine, threads: int, root: Path) -> Rates:
    """The rates of one process with so many threads on this machine."""
    threads = min(threads, machine.cores)
    reports = list(_reports(root))
    training, filling = _training(machine, threads, reports, root), _filling(machine, threads, reports)
    return Rates(
        training=training,
        filling=filling,
        list_masking=_words(reports, "mask", ("allow_list", "vocabulary_threshold")) or Rate(1e6, "assumed"),
        tagging={
            "spacy": _words(reports, "mask", ("entity_tagger",), tagger="spacy") or Rate(5000, "assumed"),
            "presidio": _words(reports, "mask", ("entity_tagger",), tagger="presidio") or Rate(2000, "assumed"),
            "crf": _words(reports, "mask", ("entity_tagger",), tagger="crf") or Rate(20_000, "assumed"),
        },
        control_filling=Rate(5000, "assumed"),
    )


def _training(machine: Machine, threads: int, reports: list[dict[str, Any]], root: Path) -> Rate:
    if machine.gpus:
        measured = _benchmarked(machine, root)
        if measured is not None:
            return Rate(measured, f"measured by make bench-gpu on {machine.gpus[0].name}")
        peak = _peak(machine.gpus[0].name)
        return Rate(_TRAINING_SHARE * peak, f"assumed: {_TRAINING_SHARE:.0%} of {peak / 1e12:.0f} TFLOP/s")
    values = [
        TRAINING_FACTOR * report["measured"]["parameters_count"] * report["measured"]["tokens_per_second"]
        for report in reports
        if report["stage"] in ("pretrain", "adapt")
        and report["measured"].get("tokens_per_second")
        and report["measured"].get("parameters_count")
    ]
    if values:
        return Rate(_median(values), f"measured in {len(values)} reports of training here")
    return Rate(_CORE_TRAINING * threads, f"assumed: {_CORE_TRAINING / 1e9:.0f} GFLOP/s a thread")


def _filling(machine: Machine, threads: int, reports: list[dict[str, Any]]) -> Rate:
    if machine.gpus:
        peak = _peak(machine.gpus[0].name)
        return Rate(_FILLING_SHARE * peak, f"assumed: {_FILLING_SHARE:.0%} of {peak / 1e12:.0f} TFLOP/s")
    sizes = {
        report["cell"]["filler"]: report["measured"]["parameters"]
        for report in reports
        if report["stage"] == "train_filler" and report["measured"].get("parameters")
    }
    values = []
    for report in reports:
        measured, filler = report["measured"], report["cell"].get("filler")
        if report["stage"] == "fill" and filler in sizes and measured.get("markers_per_second"):
            values.append(SCORING_FACTOR * sizes[filler] * PIECES_PER_MARKER * measured["markers_per_second"])
    if values:
        return Rate(_median(values), f"measured in {len(values)} reports of filling here")
    return Rate(_CORE_FILLING * threads, f"assumed: {_CORE_FILLING / 1e9:.0f} GFLOP/s a thread")


PIECES_PER_MARKER = 20
"""Word pieces that a model reads for each marker that it fills, about: the sentence, once a marker."""


def _words(reports: list[dict[str, Any]], stage: str, kinds: tuple[str, ...], tagger: str | None = None) -> Rate | None:
    values = [
        report["measured"]["words_per_second"]
        for report in reports
        if report["stage"] == stage
        and report["parameters"].get("kind") in kinds
        and (tagger is None or (report["parameters"].get("tagger") or {}).get("kind") == tagger)
        and report["measured"].get("words_per_second")
    ]
    return Rate(_median(values), f"measured in {len(values)} reports here") if values else None


def _reports(root: Path) -> Iterator[dict[str, Any]]:
    """Reports of stages that ran on a processor like this one's."""
    here = environment()
    for path in sorted((root / "results" / "reports").rglob("*.json")):
        try:
            report = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if not isinstance(report, dict) or not {"stage", "measured", "cell", "parameters"} <= report.keys():
            continue
        where = report.get("environment") or {}
        if (where.get("processor"), where.get("cores")) == (here["processor"], here["cores"]):
            yield report


def _benchmarked(machine: Machine, root: Path) -> float | None:
    """Training operations a second that the GPU benchmark reached on a card of this name."""
    for path in sorted((root / "benchmarks" / "results").glob("gpu-*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if result.get("card") == machine.gpus[0].name and not result.get("tiny"):
            value = (result.get("training") or {}).get("ours", {}).get("operations_per_second")
            if value:
                return float(value)
    return None


def _peak(name: str) -> float:
    return next((peak for part, peak in _PEAKS if part in name), _UNKNOWN_PEAK)


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
