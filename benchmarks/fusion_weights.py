"""Word error rates of whole runs, and their differences to Oracle, for several ways to tune the weights of fusion.

    python -m benchmarks.fusion_weights --scores here=results/scores/chat other=../other/results/scores/chat

Each folder has the counted errors of a run that is finished. Rates and differences are in per cent, with intervals, of
all words and of masked ones. The rows of the results that draw dev again and again are of an earlier commit.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.frame import ROOT
from tasks.records.stage_report import write_json
from tasks.speech.word_errors.error_counts_file import read_errors
from tasks.speech.word_errors.word_errors import ALL, MASKED, mean_over_seeds, paired_difference_over_seeds

RESULTS = ROOT / "benchmarks/results/fusion_weights.json"
ORACLE = "oracle-1"


def paired(folder: Path) -> dict[str, Any]:
    """Of a run: for each model the word error rate, its difference to Oracle, and the ends of the interval."""
    paths = sorted(folder.glob("**/*.errors.tsv"))
    found = {path.name.removesuffix(".errors.tsv"): read_errors(path) for path in paths}

    def numbers(errors: Any, group: str) -> list[float]:
        rate, *_ = mean_over_seeds([errors], 1000, 0.95, 1, group)
        difference = paired_difference_over_seeds([(errors, found[ORACLE])], 1000, 0.95, 1, group)
        return [round(100 * float(part or 0), 2) for part in (rate, *difference)]

    groups = {"wer": ALL, "masked_by_allow_list": f"{MASKED}:allow_list"}
    return {name: {key: numbers(one, group) for key, group in groups.items()} for name, one in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--scores", nargs="+", required=True, metavar="NAME=FOLDER", help="counted errors of whole runs"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="all else in it stays")
    options = parser.parse_args()
    document = json.loads(options.output.read_text()) if options.output.exists() else {}
    runs = {name: paired(Path(folder)) for name, _, folder in (one.partition("=") for one in options.scores)}
    write_json(options.output, {**document, "runs": {**document.get("runs", {}), **runs}})


if __name__ == "__main__":
    main()
