"""How often the audit by held-out lines finds planted leaks, and how often it finds leaks where there are none.

    python -m benchmarks.held_out TEXT [TEXT ...]    # simulate, and write the results

Members, held-out lines and the lines of an unrelated release are drawn from TEXT. A coin divides members from held-out
lines. Some member lines are planted into the release word for word.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tasks.audit.held_out import RUNS, held_out_figures
from tasks.corpora.text_lines import read_corpus
from tasks.records.stage_report import write_json

RESULTS = Path(__file__).parent / "results" / "held_out.json"
SIZE, REPETITIONS = 2_000, 200
"""Members and held-out lines together."""
PLANTED = (0.0, 0.001, 0.01, 0.1)
LEVEL = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+", metavar="TEXT", help="text, one sentence a line")
    lines = [line for path in parser.parse_args().texts for line in read_corpus(path)]
    rows = []
    for row in simulated(sorted(set(lines))):
        rows.append(row)
        print(row, flush=True)
        write_json(RESULTS, rows)


def simulated(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The share of repetitions that find a leak, and the median bound of epsilon, of each planted share."""
    random = np.random.default_rng(1)
    for planted in PLANTED:
        found = [_figures(lines, SIZE, planted, random) for _ in range(REPETITIONS)]
        for name in RUNS:
            yield {
                "units": SIZE,
                "planted": planted,
                "figure": name,
                "found": float(np.mean([one[f"{name}_p"].value <= LEVEL for one in found])),
                "epsilon": float(np.median([one[f"{name}_epsilon"].value for one in found])),
                "repetitions": REPETITIONS,
            }


def _figures(lines: Sequence[str], size: int, planted: float, random: np.random.Generator) -> dict[str, Any]:
    drawn = [lines[number] for number in random.choice(len(lines), size + size // 2, replace=False)]
    is_member = random.random(size) < 0.5
    members = [line for line, one in zip(drawn[:size], is_member, strict=True) if one]
    held_out = [line for line, one in zip(drawn[:size], is_member, strict=True) if not one]
    leaked = random.choice(len(members), round(planted * len(members)), replace=False)
    text = [*drawn[size:], *(members[number] for number in leaked)]
    names = [str(number) for number in range(size)]
    return held_out_figures((members, names[: len(members)]), (held_out, names[: len(held_out)]), text)


if __name__ == "__main__":
    main()
