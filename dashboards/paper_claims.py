"""The paper's claims held against the rows of the summary: what holds here, what does not, what was not measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.reports.estimate import direction, estimate
from tasks.reports.summary_table import Line, Table, technique_name

HOLDS, FAILS, MIXED, OPEN = "holds", "does not hold", "mixed", "not measured"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim and what this experiment says of it."""

    claim: str
    verdict: str
    """One of ``HOLDS``, ``FAILS``, ``MIXED``, ``OPEN``."""
    evidence: str


def verdicts(table: Table) -> list[Verdict]:
    """The eight claims of the paper, in its order."""
    return [
        Verdict("Every filling method beats both baselines.", *_fills_beat_baselines(table)),
        Verdict("Top-K beats Top-1.", *_top_k_beats_top_1(table)),
        Verdict("Fine-tuned fillers beat pretrained ones.", OPEN, "No fine-tuned filler is part of this comparison."),
        Verdict("The gap to Oracle is largest for the allow list.", *_largest_gap(table)),
        Verdict("RoBERTa is the best filler.", *_best_filler(table)),
        Verdict("LLaMA 2 Top-1 fine-tuned is competitive but behind.", OPEN, "No autoregressive filler is part of it."),
        Verdict("An adapted language model cuts the word error rate by more than 15 %.", OPEN, _NO_SPEECH),
        Verdict("The best filled word error rates lie 1 % and 5 % above Oracle.", OPEN, _NO_SPEECH),
    ]


_NO_SPEECH = "No recogniser is part of this comparison."


def _decide(outcomes: Sequence[bool | None], evidence: str) -> tuple[str, str]:
    """Holds where all outcomes are true, fails where none is; ``None`` is a difference within its interval."""
    if not outcomes:
        return OPEN, "The methods that the claim is about are not part of this comparison."
    if all(outcome is True for outcome in outcomes):
        return HOLDS, evidence
    if not any(outcome is True for outcome in outcomes):
        return FAILS, evidence
    return MIXED, evidence


def _value(line: Line, technique: str) -> float | None:
    number = estimate(line.by_technique[technique], "perplexity")
    return number.value if number else None


def _line(table: Table, method: str, filler: str | None = None) -> Line | None:
    return next((line for line in table.lines if (line.method, line.filler) == (method, filler)), None)


def _fills_beat_baselines(table: Table) -> tuple[str, str]:
    """Against Baseline1 by the interval of the paired ratio; against Baseline0 by the numbers themselves."""
    outcomes, failing = [], []
    zero, one = _line(table, "baseline0"), _line(table, "baseline1")
    for technique in table.techniques:
        for line in table.lines:
            value = _value(line, technique)
            if line.filler is None or value is None or one is None:
                continue
            beats_one = direction(line.by_technique[technique], "ratio_to_baseline1") == -1
            limit = _value(zero, technique) if zero else None
            beats_zero = limit is None or value < limit
            outcomes.append(beats_one and beats_zero)
            if not outcomes[-1]:
                failing.append(f"{line.label} ({technique_name(technique)})")
    count = sum(outcomes)
    text = f"{count} of {len(outcomes)} filled corpora are below both, Baseline1 by an interval that excludes 1."
    if failing:
        text += f" Not so: {', '.join(failing)}."
    return _decide(outcomes, text)


def _top_k_beats_top_1(table: Table) -> tuple[str, str]:
    outcomes, parts = [], []
    for line in table.lines:
        other = _line(table, "top_1", line.filler)
        if line.method != "top_k" or other is None:
            continue
        for technique in table.techniques:
            first, second = _value(line, technique), _value(other, technique)
            if first is not None and second is not None:
                outcomes.append(first < second)
                parts.append(f"{technique_name(technique)}: {first:.1f} against {second:.1f}")
    return _decide(outcomes, f"{'; '.join(parts)}. By the numbers alone: no interval of these differences was made.")


def _largest_gap(table: Table) -> tuple[str, str]:
    """By the geometric mean over all fillers' methods of the ratio to Oracle."""
    means = _by_technique(table, lambda line: line.filler is not None)
    if "allow_list" not in means or len(means) < 2:
        return OPEN, "It takes the allow list and another technique."
    largest = max(means, key=lambda technique: means[technique])
    parts = [f"{technique_name(technique)} {mean:.2f}" for technique, mean in means.items()]
    return (HOLDS if largest == "allow_list" else FAILS), f"Mean ratio to Oracle over fillers: {', '.join(parts)}."


def _by_technique(table: Table, wanted: Callable[[Line], bool]) -> dict[str, float]:
    means = {}
    for technique in table.techniques:
        ratios = [
            number.value
            for line in table.lines
            if wanted(line) and (number := estimate(line.by_technique[technique], "ratio_to_oracle")) is not None
        ]
        if ratios:
            product = 1.0
            for ratio in ratios:
                product *= ratio
            means[technique] = product ** (1 / len(ratios))
    return means


def _best_filler(table: Table) -> tuple[str, str]:
    fillers = {line.filler for line in table.lines if line.filler}
    if len(fillers) < 2:
        return OPEN, f"One filler is part of this comparison: {', '.join(sorted(fillers)) or 'none'}."
    best = []
    for technique in table.techniques:
        values = [(_value(line, technique), line.filler) for line in table.lines if line.filler]
        known = [(value, filler) for value, filler in values if value is not None]
        if known:
            best.append(f"{technique_name(technique)}: {min(known)[1]}")
    return OPEN, f"RoBERTa has to be named by its real name to be judged. Best here, {'; '.join(best)}."
